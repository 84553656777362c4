//! The making of a module and its edges.

use std::any::Any;
use std::sync::Arc;

use tussah_core::quietly;

use super::shared::Shared;
use crate::flow::args::Args;
use crate::flow::keepers::Keepers;
use crate::flow::module::Module;
use crate::flow::outlet::Outs as _;
use crate::flow::probe;
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
        let module = make(&self.args, edges)?;
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

/// Makes a module.
///
/// # Errors
/// Returns an error if an argument is invalid, or if `init` fails or panics.
pub(in crate::flow) fn make<M: Module>(args: &Args, edges: &Edges<'_>) -> Result<M, BuildError> {
    let made = probe::call(|| M::make(args)).unwrap_or_else(|payload| Err(panicked(payload)));
    made.map_err(|why| edges.failed(why))
}

/// Returns the error for a panic of `init`.
fn panicked(payload: Box<dyn Any + Send>) -> String {
    let text = match payload.downcast_ref::<&'static str>() {
        Some(text) => Some(*text),
        None => payload.downcast_ref::<String>().map(String::as_str),
    };
    let why = match text {
        Some(text) => format!("`init` panicked: {text}"),
        None => "`init` panicked with a value that is no text".to_owned(),
    };
    // The destructor of the payload may panic.
    quietly(|| drop(payload));
    why
}
