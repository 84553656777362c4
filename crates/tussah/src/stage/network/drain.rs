//! Draining and closing a network: each stage is drained after the stages that send to it.

use std::collections::{HashMap, HashSet};

use super::Network;
use super::table::{Edge, Known};

impl Network {
    /// Drains all stages, each after the stages that send to it or call it. A stage accepts events
    /// until all its senders have been drained, so no admitted event is lost. Stages created in the
    /// meantime are drained, too. Finally, all stages are closed, which [drops their
    /// handlers](crate::stage#when-a-handler-is-dropped); the network still shows the stages.
    ///
    /// In a cycle, the stage that was created first is drained first. This stage then refuses
    /// events from the other stages of the cycle, so these stages must handle the refusal.
    ///
    /// Paused stages are resumed first, because a paused stage blocks the stages that send to it.
    /// If a stage without a handler ([`Declared`](crate::stage::Declared)) has queued events, the
    /// call waits until the stage gets a handler. A drained stage that has no handler can no longer
    /// get one. Before you call this method, close the network's [sockets](crate::stage::net) and
    /// wait until they have ended, because the method skips their queues.
    ///
    /// Do not call this method from a handler, because the handler would wait for itself.
    ///
    /// # Cancellation
    /// If the future is dropped, the stage that is being drained and those already drained admit no
    /// more events. The other stages stay open; call this method again to drain them.
    ///
    /// # Examples
    /// ```
    /// use tussah::stage::{Batch, Network};
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// let network = Network::on(runtime.handle(), "lengths");
    /// let add = |batch: &mut Batch<usize>| drop(batch.drain().sum::<usize>());
    /// let sum = network.stage("sum").blocking(|_| Ok(add))?;
    /// let len = network.stage("len").blocking(|edges| {
    ///     let sum = edges.to(&sum).queue(10)?;
    ///     Ok(move |batch: &mut Batch<&str>| {
    ///         for text in batch.drain() {
    ///             sum.try_send(text.len()).expect("there is room");
    ///         }
    ///     })
    /// })?;
    /// runtime.block_on(len.sender().send("four"))?;
    /// runtime.block_on(network.drain());
    /// assert_eq!(sum.stats().finished, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn drain(&self) {
        self.resume();
        let (mut drained, mut ids) = (Vec::new(), HashSet::new());
        loop {
            let (mut stages, edges) = self.known();
            stages.retain(|known| !ids.contains(&known.id));
            let Some(at) = next(&stages, &edges) else {
                break;
            };
            let known = stages.swap_remove(at);
            ids.insert(known.id);
            drained.push(known.clone());
            known.stage.drain().await;
        }
        // No more events arrive, so the handlers, which may refer to each other, are dropped.
        for known in drained {
            known.stage.close();
        }
    }

    /// Resumes all paused stages.
    pub(crate) fn resume(&self) {
        for known in self.known().0 {
            known.stage.resume();
        }
    }

    /// Waits for each stage in turn until nothing is queued there and no batch is running.
    pub(crate) async fn settled(&self) {
        for known in self.known().0 {
            known.stage.emptied().await;
        }
    }

    /// Drops all queued events, calls their drop callbacks, and removes all stages from the
    /// network. Returns the number of dropped events.
    ///
    /// Running batches still complete. If running handlers [hand
    /// over](crate::stage#what-a-handler-sends) more events, these are dropped, too, but not
    /// included in the returned number. The handlers are dropped even if stages refer to each other
    /// or to the network in a cycle. Only this method and the [end of the
    /// runtime](crate::stage#when-a-handler-is-dropped) free a network with such a cycle.
    /// [Sockets](crate::stage::net) are removed from the network but not closed.
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

/// Returns the stage to drain next: the first stage that receives from no other, or else the first
/// that receives only from stages that it can reach itself.
fn next(stages: &[Known], edges: &[Edge]) -> Option<usize> {
    let names = stages.iter().enumerate();
    let places: HashMap<_, _> = names.map(|(at, known)| (&*known.name, at)).collect();
    let place = |name: &str| places.get(name).copied();
    let edges = edges.iter();
    let edges: Vec<_> = edges
        .filter_map(|edge| Some((place(&edge.from)?, place(&edge.to)?)))
        .collect();
    let nodes = stages.len();
    first(nodes, &edges, |from| reached(from, nodes, &edges))
}

/// Returns a node that can reach all nodes from which it can be reached: the first one without an
/// edge from another node, or else the first one of a cycle. `reached` searches the nodes that can
/// be reached from a node.
fn first(
    nodes: usize,
    edges: &[(usize, usize)],
    reached: impl FnMut(usize) -> Vec<bool>,
) -> Option<usize> {
    let mut receives = vec![false; nodes];
    let others = edges.iter().filter(|(from, to)| from != to);
    others.for_each(|&(_, to)| receives[to] = true);
    // The search below takes time cubic in the nodes, which matters for a chain of hundreds.
    if let Some(node) = receives.iter().position(|receives| !receives) {
        return Some(node);
    }
    let reach: Vec<_> = (0..nodes).map(reached).collect();
    (0..nodes).find(|&node| (0..nodes).all(|other| !reach[other][node] || reach[node][other]))
}

/// Returns the nodes that can be reached from a node, including itself.
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
    use super::{first, reached};

    #[test]
    fn senders_are_drained_first() {
        let check = |nodes, edges: &[_], expected| {
            let found = first(nodes, edges, |from| reached(from, nodes, edges));
            assert_eq!(found, expected);
        };
        check(0, &[], None);
        check(2, &[], Some(0));
        check(3, &[(1, 0), (2, 1)], Some(2));
        check(4, &[(3, 1), (3, 2), (1, 0), (2, 0)], Some(3));
        check(2, &[(0, 0), (0, 1)], Some(0));
        // A cycle, before its receivers and after its senders.
        check(3, &[(1, 2), (2, 1), (1, 0)], Some(1));
        check(4, &[(1, 2), (2, 1), (1, 0), (3, 2)], Some(3));
    }

    #[test]
    fn a_graph_without_cycles_is_drained_without_a_search() {
        // Each stage sends to the next and to the one after it.
        let mut edges: Vec<_> = (1..400).map(|to| (to - 1, to)).collect();
        edges.extend((2..400).map(|to| (to - 2, to)));
        for nodes in (1..=400).rev() {
            let left = edges.iter().filter(|&&(_, to)| to < nodes);
            // Without the stages that are drained, the others have these numbers.
            let left: Vec<_> = left.copied().collect();
            let found = first(nodes, &left, |_| panic!("a search of {nodes} stages"));
            assert_eq!(found, Some(0));
        }
        let mut searched = 0;
        let cycle = [(0, 1), (1, 0)];
        first(2, &cycle, |from| {
            searched += 1;
            reached(from, 2, &cycle)
        });
        assert_eq!(searched, 2);
    }
}
