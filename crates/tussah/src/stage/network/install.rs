//! Installing a stage's handler: the first one, or a replacement.

use std::sync::Arc;

use tussah_core::Guarded;

use super::handle::Stage;
use super::making::Making;
use crate::stage::error::BuildError;
use crate::stage::event::Batch;
use crate::stage::run::{
    ConcurrentHost, Handler, Host, Pool, SerialHandler, SerialHost, Shared, blocking, serve,
};
use crate::stage::send::Edges;
use crate::stage::state::Kind;

/// A stage that has no handler yet. Events sent to such a stage are queued.
///
/// Dropping this value does not change the stage: its events stay queued until the stage is
/// [closed](crate::stage#when-a-handler-is-dropped). If the handler cannot be created, the stage is
/// removed from the network, its queued events are dropped, and their drop callbacks are called.
pub struct Declared<E>(pub(crate) Stage<E>);

impl<E: Send + 'static> Declared<E> {
    /// Returns a handle to the stage, so that other stages can create edges to it.
    #[must_use]
    pub fn stage(&self) -> Stage<E> {
        self.0.clone()
    }

    /// Installs a handler that several servlets use concurrently.
    ///
    /// # Errors
    /// Returns the same errors as [`StageBuilder::handler`](crate::stage::StageBuilder::handler).
    pub fn handler<H: Handler<Event = E>>(
        self,
        make: impl FnOnce(&Edges<'_>) -> Result<H, BuildError>,
    ) -> Result<Stage<E, Arc<ConcurrentHost<H>>>, BuildError> {
        New(self.0).with_handler(make)
    }

    /// Installs a blocking handler, which runs on OS threads of the runtime's blocking pool. Each
    /// servlet of the stage is then an OS thread. To limit the number of these OS threads, call
    /// [`servlets`](crate::stage::StageBuilder::servlets) when you build the stage.
    ///
    /// # Errors
    /// Returns the same errors as [`StageBuilder::handler`](crate::stage::StageBuilder::handler).
    /// Also returns an error if another stage has a call edge to this stage.
    pub fn blocking<F: Fn(&mut Batch<E>) + Send + Sync + 'static>(
        self,
        make: impl FnOnce(&Edges<'_>) -> Result<F, BuildError>,
    ) -> Result<Stage<E>, BuildError> {
        New(self.0).with_blocking(Pool::Runtime, make)
    }

    /// Installs a handler that processes one batch at a time.
    ///
    /// # Errors
    /// Returns the same errors as [`StageBuilder::handler`](crate::stage::StageBuilder::handler).
    pub fn serial<H: SerialHandler<Event = E>>(
        self,
        make: impl FnMut(&Edges<'_>) -> Result<H, BuildError> + Send + 'static,
    ) -> Result<Stage<E, Arc<SerialHost<H>>>, BuildError> {
        New(self.0).with_serial(make)
    }
}

/// A stage whose handler is being created. If that fails, the stage is forgotten.
pub(crate) struct New<E>(pub(crate) Stage<E>);

impl<E: Send + 'static> New<E> {
    pub(crate) fn with_handler<H: Handler<Event = E>>(
        self,
        make: impl FnOnce(&Edges<'_>) -> Result<H, BuildError>,
    ) -> Result<Stage<E, Arc<ConcurrentHost<H>>>, BuildError> {
        let making = self.0.making();
        let handler = self.made(|| make(&making.edges()))?;
        self.0
            .install(Arc::new(ConcurrentHost(Guarded::new(handler))), making)
    }

    pub(crate) fn with_serial<H: SerialHandler<Event = E>>(
        self,
        make: impl FnMut(&Edges<'_>) -> Result<H, BuildError> + Send + 'static,
    ) -> Result<Stage<E, Arc<SerialHost<H>>>, BuildError> {
        let making = self.0.making();
        let one = self.made(|| self.0.one(make, &making))?;
        self.0.shared.limit_servlets(1);
        self.0.install(Arc::new(one), making)
    }

    pub(crate) fn with_blocking<F: Fn(&mut Batch<E>) + Send + Sync + 'static>(
        self,
        pool: Pool,
        make: impl FnOnce(&Edges<'_>) -> Result<F, BuildError>,
    ) -> Result<Stage<E>, BuildError> {
        let making = self.0.making();
        let handler = self.made(|| {
            self.0.network.check_not_called(&self.0.shared.name)?;
            make(&making.edges())
        })?;
        let shared = &self.0.shared;
        // More servlets would wait for the pool's OS threads, and pass for busy ones.
        shared.limit_servlets(pool.of(&shared.runtime).threads_max());
        shared.set_handler(Kind::Blocking, blocking::start(pool, handler), None)?;
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

/// Forgets a stage when dropped: its handler could not be created, or the maker panicked.
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
    /// Begins to create a handler with its edges.
    fn making(&self) -> Making {
        Making::begin(&self.network, self.id, &self.shared.name)
    }

    /// Creates the host of a serial handler, which is created now and again after each panic.
    fn one<H: SerialHandler<Event = E>>(
        &self,
        mut make: impl FnMut(&Edges<'_>) -> Result<H, BuildError> + Send + 'static,
        making: &Making,
    ) -> Result<SerialHost<H>, BuildError> {
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
        Ok(SerialHost::new(handler, Box::new(again), restarts))
    }

    /// Installs a handler. Its edges replace those of the earlier handler.
    fn install<H: Host<Event = E>>(
        &self,
        host: Arc<H>,
        making: Making,
    ) -> Result<Stage<E, Arc<H>>, BuildError> {
        let servlets = Arc::clone(&host);
        let start = move |stage: &Arc<Shared<E>>, generation| {
            let servlet = serve(Arc::clone(stage), Arc::clone(&servlets), generation);
            if let Err(refused) = stage.runtime.try_spawn(servlet) {
                // This is set before the servlet is dropped, so that the stage does not start
                // another one.
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

    /// Replaces the handler without losing any events. The old handler completes the batches that
    /// are running. In a keyed stage, or in a stage with at most one servlet, the swap waits until
    /// these batches have ended.
    ///
    /// After the swap, the graph no longer shows the old handler's edges, and the check for cycles
    /// ignores them. Running batches can use the old edges until the batches end. If `make` fails,
    /// or if the future is dropped, the old handler stays, and the new handler and its edges are
    /// dropped.
    ///
    /// Call edges that were created for the old handler's type then call the new handler. These
    /// edges become as slow as call edges to a stage that was found by name.
    ///
    /// # Errors
    /// Returns an error if `make` fails; the old handler then stays. Returns [`BuildError::Closed`]
    /// if the stage is draining or closed.
    pub async fn swap<H: Handler<Event = E>>(
        &self,
        make: impl FnOnce(&Edges<'_>) -> Result<H, BuildError>,
    ) -> Result<Stage<E, Arc<ConcurrentHost<H>>>, BuildError> {
        self.shared.check_open()?;
        let making = self.making();
        let handler = make(&making.edges())?;
        let _swapping = self.shared.begin_swap(false).await?;
        self.install(Arc::new(ConcurrentHost(Guarded::new(handler))), making)
    }

    /// Replaces the handler, as [`swap`](Self::swap) does. Both handlers block their OS threads.
    ///
    /// # Errors
    /// Returns the same errors as [`swap`](Self::swap).
    pub(crate) async fn swap_blocking<F: Fn(&mut Batch<E>) + Send + Sync + 'static>(
        &self,
        make: impl FnOnce(&Edges<'_>) -> Result<F, BuildError>,
    ) -> Result<(), BuildError> {
        self.shared.check_open()?;
        let making = self.making();
        let start = blocking::start(Pool::Runtime, make(&making.edges())?);
        let _swapping = self.shared.begin_swap(false).await?;
        let pool = self.shared.runtime.blocking();
        self.shared.limit_servlets(pool.threads_max());
        self.shared.set_handler(Kind::Blocking, start, None)?;
        making.keep();
        Ok(())
    }

    /// Replaces the handler, as [`swap`](Self::swap) does, with a handler that processes one batch
    /// at a time. The stage then has one servlet.
    ///
    /// The swap waits until no batch is running. If the old handler is serial, the swap also waits
    /// for running calls to it. If the old handler is not serial, running calls to it continue
    /// concurrently with the new handler.
    ///
    /// # Errors
    /// Returns the same errors as [`swap`](Self::swap).
    pub async fn swap_serial<H: SerialHandler<Event = E>>(
        &self,
        make: impl FnMut(&Edges<'_>) -> Result<H, BuildError> + Send + 'static,
    ) -> Result<Stage<E, Arc<SerialHost<H>>>, BuildError> {
        self.shared.check_open()?;
        let making = self.making();
        let one = self.one(make, &making)?;
        let _swapping = self.shared.begin_swap(true).await?;
        self.shared.limit_servlets(1);
        self.install(Arc::new(one), making)
    }
}
