//! Things that panic: payloads, values, wakers.

use std::any::Any;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

/// A payload whose destructor panics once more.
pub struct Thrown;

impl Drop for Thrown {
    fn drop(&mut self) {
        panic_any("the destructor of what was thrown");
    }
}

pub fn throw() -> ! {
    panic_any(Thrown)
}

/// A value whose destructor panics.
#[derive(Debug)]
pub struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        throw();
    }
}

/// Counts its destruction, and panics then.
pub struct Shouts(pub Arc<AtomicUsize>);

impl Drop for Shouts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        throw();
    }
}

/// Expects a panic, and disposes of its payload.
pub fn throws<R>(f: impl FnOnce() -> R) {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("the panic was expected to come here"),
        Err(payload) => std::mem::forget(payload),
    }
}

/// Returns the text of a panic. The payload is not dropped.
pub fn text_of(payload: Box<dyn Any + Send>) -> String {
    let text = payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|text| text.to_string()))
        .unwrap_or_else(|| "something else was thrown".into());
    std::mem::forget(payload);
    text
}

type Hook = Box<dyn Fn() + Send + Sync>;

/// The behaviour of a waker of another executor.
pub struct Hooks {
    pub clone: Hook,
    pub wake: Hook,
    pub drop: Hook,
}

impl Default for Hooks {
    fn default() -> Self {
        let nothing = || Box::new(|| ());
        Self {
            clone: nothing(),
            wake: nothing(),
            drop: nothing(),
        }
    }
}

impl Hooks {
    /// Creates a waker that does this. It is never dropped itself, only its clones are.
    pub fn waker(self) -> ManuallyDrop<Waker> {
        let data = Arc::into_raw(Arc::new(self)).cast();
        // SAFETY: the functions of the table treat the data as the `Arc` that it is.
        ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(data, &TABLE)) })
    }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

unsafe fn clone(data: *const ()) -> RawWaker {
    let hooks = data.cast::<Hooks>();
    // SAFETY: the waker that is cloned has a reference.
    unsafe {
        ((*hooks).clone)();
        Arc::increment_strong_count(hooks);
    }
    RawWaker::new(data, &TABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the waker's reference is consumed.
    let hooks = unsafe { Arc::from_raw(data.cast::<Hooks>()) };
    (hooks.wake)();
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker has a reference.
    unsafe { ((*data.cast::<Hooks>()).wake)() }
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: the waker's reference is consumed.
    let hooks = unsafe { Arc::from_raw(data.cast::<Hooks>()) };
    (hooks.drop)();
}

/// Which use of a waker panics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    Clone,
    Wake,
    Drop,
}

/// A waker that panics when it is used in one way.
pub fn bad_waker(on: On) -> ManuallyDrop<Waker> {
    let hook = |this: On| -> Hook {
        if this == on {
            Box::new(|| throw())
        } else {
            Box::new(|| ())
        }
    };
    let hooks = Hooks {
        clone: hook(On::Clone),
        wake: hook(On::Wake),
        drop: hook(On::Drop),
    };
    hooks.waker()
}

/// Polls with a waker, as another executor does.
pub fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Tests a way of waiting with a waker that panics in each way: polled twice with different wakers,
/// then dropped or ended.
///
/// `make` returns a future that is pending at first, and the way to end its wait.
pub fn try_waits<F: Future>(mut make: impl FnMut() -> (F, Box<dyn FnOnce()>)) {
    for on in [On::Clone, On::Wake, On::Drop] {
        for ends in [true, false] {
            let (future, end) = make();
            let mut future = Box::pin(future);
            let first =
                |future: &mut Pin<Box<F>>| poll(future.as_mut(), &bad_waker(on)).is_pending();
            if on == On::Clone {
                throws(|| first(&mut future));
                assert!(poll(future.as_mut(), Waker::noop()).is_pending());
                // The stored waker differs, so this one would be cloned.
                throws(|| first(&mut future));
            } else {
                assert!(first(&mut future), "somebody has to be waited for");
                // Replaces the first.
                assert!(first(&mut future));
            }
            if ends {
                end();
                drop(future);
            } else {
                drop(future);
                end();
            }
        }
    }
}
