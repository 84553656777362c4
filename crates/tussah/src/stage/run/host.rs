//! The hosts of handlers, which let several servlets use a handler at the same time, or only one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tussah_core::{Guarded, caught};

use super::handler::{Handler, SerialHandler};
use super::restarts::Restarts;
use crate::stage::error::BuildError;
use crate::stage::event::Batch;

/// An owner of a handler. A [`ConcurrentHost`] lets several servlets use the handler concurrently,
/// and a [`SerialHost`] lets only one servlet use it at a time. Other crates cannot implement this
/// trait.
pub trait Host: sealed::Sealed + Send + Sync + 'static {
    /// The type of the events. `Event` is an associated type, not a type parameter: in an `async`
    /// block, the compiler could not match a type parameter with the events of a handler whose type
    /// contains a lifetime.
    #[doc(hidden)]
    type Event: Send + 'static;

    /// The guard that gives access to the handler.
    #[doc(hidden)]
    type Guard<'a>: Guard<Event = Self::Event>;

    /// Waits until the handler can be used. Returns `None` if the handler no longer exists.
    #[doc(hidden)]
    fn enter<'a>(
        &'a self,
        home: &'a dyn Home,
    ) -> impl Future<Output = Option<Self::Guard<'a>>> + Send;

    /// Prevents further use of the handler. If only one servlet at a time may use the handler, this
    /// method first waits until no servlet uses it.
    #[doc(hidden)]
    fn retire(&self) -> impl Future<Output = ()> + Send;
}

/// The stage that a host belongs to.
#[doc(hidden)]
pub trait Home: Send + Sync {
    /// Returns the current time of the stage's network, in nanoseconds.
    fn now_ns(&self) -> u64;

    /// Returns whether the stage is open.
    fn is_open(&self) -> bool;

    /// Closes the stage because it can no longer have a handler.
    fn fail(&self, why: &str);
}

/// A guard that gives access to a handler. If the guard of a serial handler is dropped during a
/// panic, the handler is not used again.
#[doc(hidden)]
pub trait Guard: Send {
    type Event;

    fn handle(&mut self, batch: &mut Batch<Self::Event>) -> impl Future<Output = ()> + Send;

    /// Records that the handler panicked.
    fn broke(&mut self);

    /// True if the handler's future may be dropped when the only event of its batch is cancelled.
    /// Dropping the future of such a handler does not affect later batches.
    const IS_DROPPED: bool;
}

mod sealed {
    pub trait Sealed {}
    impl<H> Sealed for super::ConcurrentHost<H> {}
    impl<H> Sealed for super::SerialHost<H> {}
}

/// The host of a [`Handler`]. Several servlets use the handler concurrently.
pub struct ConcurrentHost<H>(pub(crate) Guarded<H>);

impl<H: Handler> Host for ConcurrentHost<H> {
    type Event = H::Event;
    type Guard<'a> = &'a H;

    #[inline(always)]
    async fn enter<'a>(&'a self, _home: &'a dyn Home) -> Option<&'a H> {
        Some(&*self.0)
    }

    async fn retire(&self) {}
}

impl<H: Handler> Guard for &H {
    type Event = H::Event;

    #[inline(always)]
    fn handle(&mut self, batch: &mut Batch<H::Event>) -> impl Future<Output = ()> + Send {
        H::handle(self, batch)
    }

    fn broke(&mut self) {}

    const IS_DROPPED: bool = true;
}

/// The host of a [`SerialHandler`]. Only one servlet at a time uses the handler. After a panic, the
/// host creates the handler again.
pub struct SerialHost<H> {
    place: async_lock::Mutex<Place<H>>,
}

type Make<H> = Box<dyn FnMut() -> Result<H, BuildError> + Send>;

/// The right to use the handler of [`SerialHost`].
pub(crate) type Using<'a, H> = async_lock::MutexGuard<'a, Place<H>>;

/// The data that the lock of [`SerialHost`] protects.
pub struct Place<H> {
    handler: Guarded<H>,
    /// True if another handler has replaced this handler.
    retired: bool,
    make: Guarded<Make<H>>,
    restarts: Restarts,
    /// True if the handler panicked and is not created again.
    gone: bool,
}

impl<H> SerialHost<H> {
    /// Returns the handler's place, or `None` if the handler is in use or no longer exists.
    #[inline(always)]
    pub(crate) fn try_use(&self) -> Option<Using<'_, H>> {
        let place = self.place.try_lock()?;
        match place.is_used() {
            true => Some(place),
            false => None,
        }
    }

    pub(crate) fn new(handler: H, make: Make<H>, restarts: Restarts) -> Self {
        Self {
            place: async_lock::Mutex::new(Place {
                handler: Guarded::new(handler),
                retired: false,
                make: Guarded::new(make),
                restarts,
                gone: false,
            }),
        }
    }
}

impl<H> Place<H> {
    pub(crate) fn handler(&mut self) -> &mut H {
        &mut self.handler
    }

    /// Creates the handler again immediately after a panic, or closes the stage.
    #[cold]
    pub(crate) fn broke(&mut self, home: &dyn Home) {
        self.gone |= !home.is_open();
        if !self.is_used() {
            return;
        }
        if !self.restarts.allow(home.now_ns()) {
            return self.fail(&self.restarts.exceeded(), home);
        }
        let why = match caught(&mut *self.make) {
            Some(Ok(handler)) => {
                self.handler = Guarded::new(handler);
                return;
            }
            Some(Err(error)) => error.to_string(),
            None => "its maker panicked".to_owned(),
        };
        let why = format!("its handler panicked, and could not be made anew: {why}");
        self.fail(&why, home);
    }

    /// Returns whether the handler may be used.
    fn is_used(&self) -> bool {
        !self.retired && !self.gone
    }

    fn fail(&mut self, why: &str, home: &dyn Home) {
        self.gone = true;
        home.fail(why);
    }
}

impl<H: SerialHandler> Host for SerialHost<H> {
    type Event = H::Event;
    type Guard<'a> = Entered<'a, H>;

    #[inline(always)]
    async fn enter<'a>(&'a self, home: &'a dyn Home) -> Option<Entered<'a, H>> {
        let place = match self.place.try_lock() {
            Some(place) => place,
            None => self.place.lock().await,
        };
        place.is_used().then_some(Entered { place, home })
    }

    async fn retire(&self) {
        self.place.lock().await.retired = true;
    }
}

/// A guard that gives access to a serial handler.
#[doc(hidden)]
pub struct Entered<'a, H> {
    place: async_lock::MutexGuard<'a, Place<H>>,
    home: &'a dyn Home,
}

impl<H> Drop for Entered<'_, H> {
    #[inline(always)]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.place.broke(self.home);
        }
    }
}

impl<H: SerialHandler> Guard for Entered<'_, H> {
    type Event = H::Event;

    #[inline(always)]
    fn handle(&mut self, batch: &mut Batch<H::Event>) -> impl Future<Output = ()> + Send {
        self.place.handler.handle(batch)
    }

    fn broke(&mut self) {
        self.place.broke(self.home);
    }

    const IS_DROPPED: bool = false;
}

/// The error returned when a stage no longer has a handler, because the handler panicked too often
/// or the stage was destroyed.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone;

/// A type-erased [`Host`].
#[doc(hidden)]
pub trait AnyHost<E>: Send + Sync {
    fn call<'a>(
        &'a self,
        batch: &'a mut Batch<E>,
        home: &'a dyn Home,
    ) -> Pin<Box<dyn Future<Output = Result<(), Gone>> + Send + 'a>>;

    fn retire(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl<E: Send + 'static, H: Host<Event = E>> AnyHost<E> for H {
    fn call<'a>(
        &'a self,
        batch: &'a mut Batch<E>,
        home: &'a dyn Home,
    ) -> Pin<Box<dyn Future<Output = Result<(), Gone>> + Send + 'a>> {
        Box::pin(async move {
            let mut guard = self.enter(home).await.ok_or(Gone)?;
            guard.handle(batch).await;
            Ok(())
        })
    }

    fn retire(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(Host::retire(self))
    }
}

/// The current host, for calls that were not made for its type.
pub(crate) type Present<E> = Option<Arc<dyn AnyHost<E>>>;
