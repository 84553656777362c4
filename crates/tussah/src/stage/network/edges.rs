//! The edges of a network, and the proxies in them.

use std::sync::Arc;

use super::Network;
use super::inspect::Inspect;
use super::table::{Back, Edge, EdgeKind, Table};
use crate::stage::error::BuildError;

impl Network {
    /// Adds an edge, which exists until it is [released](Table::release). Rejects an edge that
    /// would close a cycle that can deadlock.
    pub(crate) fn connect(
        &self,
        from: &Arc<str>,
        to: &Arc<str>,
        (kind, room): (EdgeKind, u64),
        by: u32,
    ) -> Result<(), BuildError> {
        let mut table = self.inner.table.lock();
        let proxy = table.proxy(from, to);
        table.connect(from, to, (kind, room), by)?;
        let back = table.edges_back(from, to);
        self.connect_proxy(&mut table, [from, to], proxy, (kind, by))?;
        drop(table);
        back.into_iter().for_each(Back::set_room);
        Ok(())
    }

    /// Lets new edges ignore the offers in their cycles until [`set_back_rooms`] is called.
    /// Otherwise, each edge of a stage with thousands of edges would look for all others.
    ///
    /// [`set_back_rooms`]: Self::set_back_rooms
    pub(crate) fn defer_back_rooms(&self) {
        self.inner.table.lock().defer_back_rooms();
    }

    /// Gives all offers in cycles their own room.
    pub(crate) fn set_back_rooms(&self) {
        let back = self.inner.table.lock().all_edges_back();
        back.into_iter().for_each(Back::set_room);
    }

    /// Returns the stages that keep something for the events of a stage that is gone.
    pub(crate) fn take_keepers(&self, of: u32) -> Vec<Arc<dyn Inspect>> {
        self.inner.table.lock().take_keepers(of)
    }

    /// Makes `by` a holder of the edges of a stage's handler.
    pub(crate) fn inherit(&self, stage: u32, by: u32) {
        self.inner.table.lock().inherit(stage, by);
    }

    /// Stops new batches of all stages that call a stage, directly or through others, until the
    /// returned values are dropped. Waits until their running batches have ended.
    pub(crate) async fn hold_callers(&self, name: &str) -> Vec<Box<dyn std::any::Any + Send>> {
        let (stages, edges) = self.known();
        let is_call = |edge: &&Edge| edge.kind == EdgeKind::Call;
        let (mut to_do, mut callers) = (vec![name], Vec::new());
        while let Some(callee) = to_do.pop() {
            for edge in edges.iter().filter(is_call).filter(|it| &*it.to == callee) {
                if !callers.contains(&&*edge.from) {
                    callers.push(&*edge.from);
                    to_do.push(&*edge.from);
                }
            }
        }
        let mut held = Vec::new();
        for known in stages.iter().filter(|it| callers.contains(&&*it.name)) {
            held.push(Arc::clone(&known.stage).hold().await);
        }
        held
    }

    fn connect_proxy(
        &self,
        table: &mut Table,
        [from, to]: [&Arc<str>; 2],
        proxy: Option<Arc<str>>,
        (kind, by): (EdgeKind, u32),
    ) -> Result<(), BuildError> {
        if let Some(proxy) = proxy {
            if let Err(error) = table.connect(from, &proxy, (kind, 0), by) {
                table.disconnect(from, to, kind, by);
                return Err(error);
            }
            table.set_proxy(from, to, Some(&proxy));
        }
        Ok(())
    }

    /// Checks that no other stage calls the stage of this name, whose handler blocks.
    pub(crate) fn check_not_called(&self, name: &Arc<str>) -> Result<(), BuildError> {
        let table = self.inner.table.lock();
        let is_call = |edge: &Edge| edge.kind == EdgeKind::Call && edge.to == *name;
        match table.edges().any(is_call) {
            true => Err(table.blocks(name)),
            false => Ok(()),
        }
    }

    /// Puts a proxy into the edges from one stage to another. Returns the first stage's name and
    /// number, and the number that holds the edges to the proxy.
    pub(crate) fn interpose(
        &self,
        from: &str,
        to: &Arc<str>,
        proxy: &Arc<str>,
        blocks: bool,
    ) -> Result<(Arc<str>, u32, u32), BuildError> {
        let mut table = self.inner.table.lock();
        let known = table.find(from)?;
        let (from, id) = (Arc::clone(&known.name), known.id);
        let names = || (from.to_string(), to.to_string());
        if let Some(by) = table.proxy(&from, to) {
            let (from, to) = names();
            return Err(BuildError::Proxied {
                from,
                to,
                by: by.to_string(),
            });
        }
        // Events sent to the proxy must not return to their original target through another proxy.
        let mut way = vec![from.to_string(), to.to_string(), proxy.to_string()];
        let mut next = Arc::clone(proxy);
        while let Some(proxy) = table.proxy(&from, &next) {
            way.push(proxy.to_string());
            next = proxy;
            if next == *to {
                return Err(BuildError::Cycle { path: way });
            }
        }
        if from == *proxy {
            return Err(BuildError::Cycle { path: way });
        }
        let there = table.between(&from, to);
        let kinds: Vec<_> = there.map(|edge| edge.kind).collect();
        if kinds.is_empty() {
            let (from, to) = names();
            return Err(BuildError::NoEdge { from, to });
        }
        if blocks && kinds.contains(&EdgeKind::Call) {
            return Err(table.blocks(proxy));
        }
        let by = table.number();
        for kind in kinds {
            if let Err(error) = table.connect(&from, proxy, (kind, 0), by) {
                table.release(by);
                return Err(error);
            }
        }
        table.set_proxy(&from, to, Some(proxy));
        let ids = [to, proxy].map(|name| table.find(name).map(|known| known.id));
        if let [Ok(to), Ok(proxy)] = ids {
            table.keep(to, id);
            table.keep(to, proxy);
        }
        Ok((from, id, by))
    }

    /// Removes a proxy from the edges between two stages, and releases its own edges.
    pub(crate) fn withdraw(&self, from: &Arc<str>, to: &Arc<str>, proxy: &Arc<str>, by: u32) {
        let mut table = self.inner.table.lock();
        if table.proxy(from, to).as_ref() == Some(proxy) {
            table.set_proxy(from, to, None);
        }
        table.release(by);
    }
}
