//! The end of a network: its stages drained, each after those that send to it.

use super::network::Network;
use super::table::{Edge, Known};

impl Network {
    /// Drains all stages, each after those that send to it or call it, so that nothing is lost that a stage has let in: a stage goes on taking events until all
    /// that send to it have been drained. Stages that are made meanwhile are drained too.
    ///
    /// In a cycle the stage that was made first goes first, as if no stage of the cycle sent to it: what these send to it after that is refused, and is theirs to deal with.
    ///
    /// Paused stages go on, all of them at once, since one that is paused holds up those before it. A stage that has no handler yet ([`Declared`](super::Declared))
    /// is waited for until it has one, if anything is queued there. [Sockets](super::net) are to be closed and settled before; their own queues are passed over.
    ///
    /// To be called from outside of the stages: a handler would wait for itself.
    ///
    /// # Cancellation
    /// If the future is dropped, the stages that were drained let nothing in any more, nor does the one that was waited for; the others are open. Another call
    /// goes on from there.
    ///
    /// # Examples
    /// ```
    /// use tussah::stage::{Batch, Network};
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// let network = Network::on(runtime.handle(), "lengths");
    /// let sum = network.stage("sum").blocking(|_| Ok(|batch: &mut Batch<usize>| drop(batch.drain().sum::<usize>())))?;
    /// let len = network.stage("len").blocking(|edges| {
    ///     let sum = edges.to(&sum).queue(10)?;
    ///     Ok(move |batch: &mut Batch<&str>| batch.drain().for_each(|text| sum.try_send(text.len()).expect("there is room")))
    /// })?;
    /// runtime.block_on(len.sender().send("four"))?;
    /// runtime.block_on(network.drain());
    /// assert_eq!(sum.stats().finished, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn drain(&self) {
        for known in self.known().0 {
            known.stage.resume();
        }
        let mut drained = Vec::new();
        loop {
            let (mut stages, edges) = self.known();
            stages.retain(|known| !drained.contains(&known.id));
            let Some(at) = next(&stages, &edges) else {
                return;
            };
            let Known { id, stage, .. } = stages.swap_remove(at);
            drained.push(id);
            stage.drain().await;
        }
    }

    /// Drops what is queued, with its callbacks, and forgets all stages; returns how many events were dropped. Batches that run go on to their end, by themselves. The
    /// handlers go with them, also where stages refer to each other in a circle, or to the network: without this, or [`Stage::destroy`](super::Stage::destroy), such
    /// a network is never freed. [Sockets](super::net) are only forgotten.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use tussah::stage::{Batch, Network};
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// let network = Network::on(runtime.handle(), "circle");
    /// let held = Arc::new(());
    /// let (own, holds) = (network.clone(), Arc::clone(&held));
    /// network.stage("one").blocking(move |_| Ok({
    ///     let (own, holds) = (own.clone(), Arc::clone(&holds));
    ///     move |_: &mut Batch<u8>| drop((own.name(), &holds))
    /// }))?;
    /// network.close();
    /// drop(network);
    /// assert_eq!(Arc::strong_count(&held), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) -> u64 {
        let mut dropped = 0;
        for known in self.known().0 {
            dropped += known.stage.close();
            self.remove(known.id);
        }
        dropped
    }
}

/// Which of the stages is drained next: the first that nobody of them sends to, or that all send to who can come to it.
fn next(stages: &[Known], edges: &[Edge]) -> Option<usize> {
    let place = |name: &str| stages.iter().position(|known| &*known.name == name);
    let edges = edges.iter();
    let edges: Vec<_> = edges
        .filter_map(|edge| Some((place(&edge.from)?, place(&edge.to)?)))
        .collect();
    first(stages.len(), &edges)
}

/// The first of so many nodes from which all others can be reached that it can be reached from.
fn first(nodes: usize, edges: &[(usize, usize)]) -> Option<usize> {
    let reach: Vec<_> = (0..nodes).map(|from| reached(from, nodes, edges)).collect();
    (0..nodes).find(|&node| (0..nodes).all(|other| !reach[other][node] || reach[node][other]))
}

/// Which nodes can be reached from one, itself included.
fn reached(from: usize, nodes: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    let mut seen = vec![false; nodes];
    seen[from] = true;
    let mut to_do = vec![from];
    while let Some(node) = to_do.pop() {
        for &(_, to) in edges.iter().filter(|(from, _)| *from == node) {
            if !std::mem::replace(&mut seen[to], true) {
                to_do.push(to);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn those_that_send_come_first() {
        let check = |nodes, edges: &[_], expected| assert_eq!(first(nodes, edges), expected);
        check(0, &[], None);
        check(2, &[], Some(0));
        check(3, &[(1, 0), (2, 1)], Some(2));
        check(4, &[(3, 1), (3, 2), (1, 0), (2, 0)], Some(3));
        check(2, &[(0, 0), (0, 1)], Some(0));
        // A cycle, before what it sends to, and after what sends to it.
        check(3, &[(1, 2), (2, 1), (1, 0)], Some(1));
        check(4, &[(1, 2), (2, 1), (1, 0), (3, 2)], Some(3));
    }
}
