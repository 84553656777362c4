//! Where a stage's handler lives: one that several use at a time, or one that is used by one at a time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tussah_core::{Guarded, caught};

use super::batch::Batch;
use super::error::BuildError;
use super::handler::{Handler, SerialHandler};
use super::restarts::Restarts;
use super::shared::Time;

/// Where a handler lives. Implemented by [`Many`] and [`One`]; not for others to implement.
pub trait Host: sealed::Sealed + Send + Sync + 'static {
    /// The type of the events. Not a parameter: inside of an `async` block the compiler would no longer know that the
    /// parameter is the handler's type, if that has a lifetime.
    #[doc(hidden)]
    type Event: Send + 'static;

    /// The right to use the handler.
    #[doc(hidden)]
    type Guard<'a>: Guard<Event = Self::Event>;

    /// Waits until the handler may be used; `None` if there is none any more, since it panicked too often.
    #[doc(hidden)]
    fn enter(&self, time: &Time) -> impl Future<Output = Option<Self::Guard<'_>>> + Send;

    /// Why there is no handler any more, if that is for its panics.
    #[doc(hidden)]
    fn gone(&self) -> impl Future<Output = Option<String>> + Send;

    /// Waits until nobody uses the handler, if one at a time does; and nobody will.
    #[doc(hidden)]
    fn retire(&self) -> impl Future<Output = ()> + Send;
}

/// The right to use a handler. If it is dropped by a panic, the handler is not used again.
#[doc(hidden)]
pub trait Guard: Send {
    type Event;

    fn handle(&mut self, batch: &mut Batch<Self::Event>) -> impl Future<Output = ()> + Send;

    /// The handler threw something.
    fn broke(&mut self);
}

mod sealed {
    pub trait Sealed {}
    impl<H> Sealed for super::Many<H> {}
    impl<H> Sealed for super::One<H> {}
}

/// The host of a [`Handler`], which several servlets use at the same time.
pub struct Many<H>(pub(crate) Guarded<H>);

impl<H: Handler> Host for Many<H> {
    type Event = H::Event;
    type Guard<'a> = &'a H;

    #[inline(always)]
    async fn enter(&self, _time: &Time) -> Option<&H> {
        Some(&*self.0)
    }

    async fn gone(&self) -> Option<String> {
        None
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
}

/// The host of a [`SerialHandler`], which one uses at a time, and which is made anew after a panic.
pub struct One<H> {
    place: async_lock::Mutex<Place<H>>,
}

type Make<H> = Box<dyn FnMut() -> Result<H, BuildError> + Send>;

/// What [`One`] keeps under its lock.
pub(crate) struct Place<H> {
    handler: Guarded<H>,
    broken: bool,
    /// Another handler has taken its place.
    retired: bool,
    make: Guarded<Make<H>>,
    restarts: Restarts,
    /// Why it is not made anew.
    gone: Option<String>,
}

impl<H> One<H> {
    pub(crate) fn new(handler: H, make: Make<H>, restarts: Restarts) -> Self {
        Self {
            place: async_lock::Mutex::new(Place {
                handler: Guarded::new(handler),
                broken: false,
                retired: false,
                make: Guarded::new(make),
                restarts,
                gone: None,
            }),
        }
    }
}

impl<H> Place<H> {
    /// Makes the handler anew if it is broken; false if that can't be done.
    fn mend(&mut self, time: &Time) -> bool {
        if self.retired {
            return false;
        }
        if !self.broken {
            return true;
        }
        if !self.restarts.allow(time.now_ns()) {
            self.gone = Some(self.restarts.exceeded());
            return false;
        }
        let why = match caught(&mut *self.make) {
            Some(Ok(handler)) => {
                self.handler = Guarded::new(handler);
                self.broken = false;
                return true;
            }
            Some(Err(error)) => error.to_string(),
            None => "its maker panicked".to_owned(),
        };
        self.gone = Some(format!(
            "its handler panicked, and could not be made anew: {why}"
        ));
        false
    }
}

impl<H: SerialHandler> Host for One<H> {
    type Event = H::Event;
    type Guard<'a> = Entered<'a, H>;

    #[inline(always)]
    async fn enter(&self, time: &Time) -> Option<Entered<'_, H>> {
        let mut place = match self.place.try_lock() {
            Some(place) => place,
            None => self.place.lock().await,
        };
        place.mend(time).then_some(Entered(place))
    }

    async fn gone(&self) -> Option<String> {
        self.place.lock().await.gone.clone()
    }

    async fn retire(&self) {
        self.place.lock().await.retired = true;
    }
}

/// The right to use a serial handler.
#[doc(hidden)]
pub struct Entered<'a, H>(async_lock::MutexGuard<'a, Place<H>>);

impl<H> Drop for Entered<'_, H> {
    #[inline(always)]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken = true;
        }
    }
}

impl<H: SerialHandler> Guard for Entered<'_, H> {
    type Event = H::Event;

    #[inline(always)]
    fn handle(&mut self, batch: &mut Batch<H::Event>) -> impl Future<Output = ()> + Send {
        self.0.handler.handle(batch)
    }

    fn broke(&mut self) {
        self.0.broken = true;
    }
}

/// The handler is gone: it panicked too often, or its stage was destroyed.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone;

/// A host of a handler of whatever type.
#[doc(hidden)]
pub trait AnyHost<E>: Send + Sync {
    fn call<'a>(
        &'a self,
        batch: &'a mut Batch<E>,
        time: &'a Time,
    ) -> Pin<Box<dyn Future<Output = Result<(), Gone>> + Send + 'a>>;

    fn retire(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl<E: Send + 'static, H: Host<Event = E>> AnyHost<E> for H {
    fn call<'a>(
        &'a self,
        batch: &'a mut Batch<E>,
        time: &'a Time,
    ) -> Pin<Box<dyn Future<Output = Result<(), Gone>> + Send + 'a>> {
        Box::pin(async move {
            let mut guard = self.enter(time).await.ok_or(Gone)?;
            guard.handle(batch).await;
            Ok(())
        })
    }

    fn retire(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(Host::retire(self))
    }
}

/// A place for the present host, which calls go to that were not made for a type.
pub(crate) type Present<E> = Option<Arc<dyn AnyHost<E>>>;
