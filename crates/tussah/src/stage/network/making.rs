//! The creation of a handler and its edges.

use std::sync::Arc;

use super::Network;
use crate::stage::send::Edges;

/// A handler that is being created. Dropping this value removes the edges; if it is
/// [kept](Self::keep), they stay as long as the handler.
pub(crate) struct Making {
    network: Network,
    /// The stage's number.
    id: u32,
    name: Arc<str>,
    number: u32,
    kept: bool,
}

impl Making {
    pub(crate) fn begin(network: &Network, id: u32, name: &Arc<str>) -> Self {
        Self {
            network: network.clone(),
            id,
            name: Arc::clone(name),
            number: network.inner.table.lock().number(),
            kept: false,
        }
    }

    /// Returns the maker of edges.
    pub(crate) fn edges(&self) -> Edges<'_> {
        Edges {
            network: &self.network,
            from: Arc::clone(&self.name),
            id: self.id,
            making: self.number,
        }
    }

    /// Returns the number that holds the edges.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Keeps the edges because the stage now has the handler, and removes the edges of the earlier
    /// handler.
    pub(crate) fn keep(mut self) {
        let mut table = self.network.inner.table.lock();
        // A stage that was destroyed in the meantime no longer has edges.
        self.kept = table.set_making(self.id, self.number);
        drop(table);
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if !self.kept {
            self.network.inner.table.lock().release(self.number);
        }
    }
}
