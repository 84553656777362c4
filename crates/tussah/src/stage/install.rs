//! How a stage gets its handler: its first, or another in the place of that.

use std::sync::Arc;

use tussah_core::Guarded;

use super::Batch;
use super::blocking::{self, Pool};
use super::edges::Edges;
use super::error::BuildError;
use super::handle::Stage;
use super::handler::{Handler, SerialHandler};
use super::host::{Host, Many, One};
use super::making::Making;
use super::servlet::serve;
use super::shared::Shared;
use super::state::Kind;

/// A stage that has no handler yet. Events that are sent to it wait.
///
/// If this is dropped, the stage stays as it is, and only [`Stage::destroy`] ends the waiting. If its handler can't be made, the stage is forgotten, and what
/// waits is dropped with its callbacks. A handler that blocks can't be given later: of stages that send to each other, declare another one.
pub struct Declared<E>(pub(crate) Stage<E>);

impl<E: Send + 'static> Declared<E> {
    /// The stage, for others to make their edges to.
    #[must_use]
    pub fn stage(&self) -> Stage<E> {
        self.0.clone()
    }

    /// Gives it a handler that several servlets use at the same time.
    ///
    /// # Errors
    /// As [`Builder::handler`](super::Builder::handler).
    pub fn handler<H: Handler<Event = E>>(
        self,
        make: impl FnOnce(&Edges<'_>) -> Result<H, BuildError>,
    ) -> Result<Stage<E, Arc<Many<H>>>, BuildError> {
        New(self.0).with_handler(make)
    }

    /// Gives it a handler that handles one batch after the other.
    ///
    /// # Errors
    /// As [`Builder::handler`](super::Builder::handler).
    pub fn serial<H: SerialHandler<Event = E>>(
        self,
        make: impl FnMut(&Edges<'_>) -> Result<H, BuildError> + Send + 'static,
    ) -> Result<Stage<E, Arc<One<H>>>, BuildError> {
        New(self.0).with_serial(make)
    }
}

/// A stage whose handler is being made; it is forgotten if that fails.
pub(crate) struct New<E>(pub(crate) Stage<E>);

impl<E: Send + 'static> New<E> {
    pub(crate) fn with_handler<H: Handler<Event = E>>(
        self,
        make: impl FnOnce(&Edges<'_>) -> Result<H, BuildError>,
    ) -> Result<Stage<E, Arc<Many<H>>>, BuildError> {
        let making = self.0.making();
        let handler = self.made(|| make(&making.edges()))?;
        self.0
            .install(Arc::new(Many(Guarded::new(handler))), making)
    }

    pub(crate) fn with_serial<H: SerialHandler<Event = E>>(
        self,
        make: impl FnMut(&Edges<'_>) -> Result<H, BuildError> + Send + 'static,
    ) -> Result<Stage<E, Arc<One<H>>>, BuildError> {
        let making = self.0.making();
        let one = self.made(|| self.0.one(make, &making))?;
        self.0.shared.make_serial();
        self.0.install(Arc::new(one), making)
    }

    pub(crate) fn with_blocking<F: Fn(&mut Batch<E>) + Send + Sync + 'static>(
        self,
        pool: Pool,
        make: impl FnOnce(&Edges<'_>) -> Result<F, BuildError>,
    ) -> Result<Stage<E>, BuildError> {
        let making = self.0.making();
        let handler = self.made(|| make(&making.edges()))?;
        self.0
            .shared
            .set_handler(Kind::Blocking, blocking::start(pool, handler), None)?;
        making.keep();
        Ok(self.0)
    }

    fn made<T>(&self, make: impl FnOnce() -> Result<T, BuildError>) -> Result<T, BuildError> {
        let undo = Undo(Some(&self.0));
        let made = make()?;
        undo.keep();
        Ok(made)
    }
}

/// Forgets a stage when it is dropped: its handler could not be made, or its maker panicked.
struct Undo<'a, E: Send + 'static>(Option<&'a Stage<E>>);

impl<E: Send + 'static> Undo<'_, E> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl<E: Send + 'static> Drop for Undo<'_, E> {
    fn drop(&mut self) {
        if let Some(stage) = self.0 {
            stage.shared.close();
            stage.network.remove(stage.id);
        }
    }
}

impl<E: Send + 'static, C> Stage<E, C> {
    /// Begins to make a handler, with its edges.
    fn making(&self) -> Making {
        Making::begin(&self.network, self.id, &self.shared.name)
    }

    /// A place for a serial handler, made now and after each panic.
    fn one<H: SerialHandler<Event = E>>(
        &self,
        mut make: impl FnMut(&Edges<'_>) -> Result<H, BuildError> + Send + 'static,
        making: &Making,
    ) -> Result<One<H>, BuildError> {
        let handler = make(&making.edges())?;
        let (network, name, id) = (
            self.network.downgrade(),
            Arc::clone(&self.shared.name),
            self.id,
        );
        let making = making.number();
        let again = move || {
            let network = network.upgrade().ok_or_else(|| BuildError::Closed {
                stage: name.to_string(),
            })?;
            make(&Edges {
                network: &network,
                from: Arc::clone(&name),
                id,
                making,
            })
        };
        let restarts = self.shared.restarts.clone();
        Ok(One::new(handler, Box::new(again), restarts))
    }

    /// Has the stage use a handler, whose edges take the place of those of the earlier one.
    fn install<H: Host<Event = E>>(
        &self,
        host: Arc<H>,
        making: Making,
    ) -> Result<Stage<E, Arc<H>>, BuildError> {
        let servlets = Arc::clone(&host);
        let start = move |stage: &Arc<Shared<E>>, generation| {
            let servlet = serve(Arc::clone(stage), Arc::clone(&servlets), generation);
            if let Err(refused) = stage.runtime.try_spawn(servlet) {
                // Before the servlet is dropped, and counts itself out, so that the stage does not call the next.
                stage.lock().state.orphaned = true;
                drop(refused);
            }
        };
        let present = Some(Arc::clone(&host) as _);
        self.shared
            .set_handler(Kind::Async, Arc::new(start), present)?;
        making.keep();
        Ok(Stage {
            shared: Arc::clone(&self.shared),
            host,
            network: self.network.clone(),
            id: self.id,
        })
    }

    /// Has another handler take the place of the present one, without losing an event. Batches that run go on to their end; those of a stage by key are waited for.
    ///
    /// With the earlier handler its edges leave the graph, and a cycle may be closed in their place; batches of it that still run may send by them to their end.
    /// If `make` fails, or the swap is given up, nothing is left of the new handler's.
    ///
    /// Calls that were made for the earlier handler's type cost as much as those by name from here on.
    ///
    /// # Errors
    /// If `make` fails; the earlier handler then stays. [`BuildError::Closed`] if the stage is closed.
    pub async fn swap<H: Handler<Event = E>>(
        &self,
        make: impl FnOnce(&Edges<'_>) -> Result<H, BuildError>,
    ) -> Result<Stage<E, Arc<Many<H>>>, BuildError> {
        self.shared.check_open()?;
        let making = self.making();
        let handler = make(&making.edges())?;
        let _swapping = self.shared.begin_swap(false).await?;
        self.install(Arc::new(Many(Guarded::new(handler))), making)
    }

    /// As [`swap`](Self::swap), with a handler that handles one batch after the other: the stage has one servlet from here on. Waits until no batch runs, and no call of a handler that is serial, too;
    /// calls of one that is not go on to their end beside what the next does.
    ///
    /// # Errors
    /// As [`swap`](Self::swap).
    pub async fn swap_serial<H: SerialHandler<Event = E>>(
        &self,
        make: impl FnMut(&Edges<'_>) -> Result<H, BuildError> + Send + 'static,
    ) -> Result<Stage<E, Arc<One<H>>>, BuildError> {
        self.shared.check_open()?;
        let making = self.making();
        let one = self.one(make, &making)?;
        let _swapping = self.shared.begin_swap(true).await?;
        self.shared.make_serial();
        self.install(Arc::new(one), making)
    }
}
