//! Sources: instances of modules with the method `start`.

use std::sync::Arc;

use super::handlers::Nothing;
use super::{Installed, Node, Produce};
use crate::flow::flows::Flow;
use crate::flow::module::{Module, Source};
use crate::flow::way::Way;
use crate::stage::BuildError;

/// Returns the thread of an instance that calls `start`, if the module has this method. `of`
/// returns the module and its ports, which other threads use at the same time.
pub(super) fn begun<M: Module + Sync, H: Send + Sync + 'static>(
    host: H,
    of: fn(&H) -> (&M, &Arc<M::Outs>),
) -> Installed {
    let source = M::START.map(|start| -> Produce {
        Box::pin(async move {
            let (module, outs) = of(&host);
            start(module, &Flow::default(), outs).await
        })
    });
    Installed {
        source,
        ..Installed::default()
    }
}

impl<M: Module, W: Way> Node<M, W> {
    /// Starts a module that has no input.
    ///
    /// # Errors
    /// Returns an error if the module or an edge cannot be created.
    pub fn source(self) -> Result<Installed, BuildError>
    where
        M: Source,
    {
        let (declared, maker) = self.split();
        let mut made = None;
        declared.handler(|edges| {
            made = Some(maker.make(edges)?);
            Ok(Nothing::<M>(std::marker::PhantomData))
        })?;
        let made = made.expect("the maker was called");
        Ok(begun(made, |(module, outs)| (module, outs)))
    }
}
