//! The making of a module and its edges.

use std::sync::Arc;

use super::shared::Shared;
use crate::flow::args::Args;
use crate::flow::keepers::Keepers;
use crate::flow::module::Module;
use crate::flow::outlet::Outs as _;
use crate::stage::{BuildError, Edges};

/// The parts of a node that make a module with its edges.
pub(super) struct Maker<M: Module> {
    pub(super) args: Args,
    pub(super) outs: M::Outs,
    pub(super) shared: Arc<Shared<M>>,
    pub(super) keepers: Arc<Keepers>,
}

impl<M: Module> Maker<M> {
    /// Makes the module and the edges of its ports.
    ///
    /// # Errors
    /// Returns an error if the module or an edge cannot be created.
    pub(super) fn make(mut self, edges: &Edges<'_>) -> Result<(M, Arc<M::Outs>), BuildError> {
        let module = M::make(&self.args).map_err(|why| edges.failed(why))?;
        let mut result = Ok(());
        self.outs.each(&mut |_, outlet| {
            if result.is_ok() {
                result = outlet.open(edges, &self.keepers);
            }
        });
        result?;
        let outs = Arc::new(self.outs);
        self.shared.set(&outs, self.keepers);
        Ok((module, outs))
    }
}
