//! An optional waker in one word, where `Option<Waker>` takes two.
//!
//! | low bit | the other bits | meaning |
//! |---|---|---|
//! | 0 | null | no waker |
//! | 0 | the data pointer | a native waker: its table is [`VTABLE`], and its data [`NATIVE_ALIGN`]-aligned |
//! | 1 | a `Box<Waker>` | a foreign waker |
//!
//! This runtime wakes most threads, so the box, which costs an allocation, is the exception.

use std::{fmt, mem::ManuallyDrop, ptr, task::Waker};

use crate::prefetch;
use crate::quietly::quietly;
use crate::thread::waker::VTABLE;

/// The alignment of a native waker's data, which leaves the low bit free for the tag.
pub(crate) const NATIVE_ALIGN: usize = 8;

/// Tags the pointer to a boxed foreign waker.
const FOREIGN: usize = 1;

/// An optional waker that takes one word.
pub(crate) struct TinyWaker {
    /// Owns its target, as in the table above.
    word: *mut (),
}

// SAFETY: it owns a `Waker`, in another form, and a `Waker` may be sent.
unsafe impl Send for TinyWaker {}
// SAFETY: as above; a `Waker` may be shared.
unsafe impl Sync for TinyWaker {}

const _: () = assert!(size_of::<TinyWaker>() == size_of::<usize>());

impl TinyWaker {
    /// No waker.
    pub(crate) const NONE: Self = Self {
        word: ptr::null_mut(),
    };

    /// Stores a clone of `waker`.
    ///
    /// Cloning a foreign waker runs foreign code, so the caller must hold no lock.
    #[inline]
    pub(crate) fn from_waker(waker: &Waker) -> Self {
        // This tests the clone, not the original: a clone of a foreign waker may have another
        // table.
        let waker = ManuallyDrop::new(waker.clone());
        if ptr::eq(waker.vtable(), &VTABLE) {
            let word = waker.data().cast_mut();
            debug_assert!(!word.is_null(), "the data is a header");
            debug_assert!(
                word.addr().is_multiple_of(NATIVE_ALIGN),
                "the data is a header"
            );
            Self { word }
        } else {
            Self::foreign(ManuallyDrop::into_inner(waker))
        }
    }

    #[cold]
    fn foreign(waker: Waker) -> Self {
        let boxed = Box::into_raw(Box::new(waker)).cast::<()>();
        Self {
            word: boxed.map_addr(|addr| addr | FOREIGN),
        }
    }

    /// Returns whether there is no waker.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.word.is_null()
    }

    /// Returns the boxed waker, if it is a foreign one.
    #[inline]
    fn boxed(&self) -> Option<*mut Waker> {
        let is_foreign = self.word.addr() & FOREIGN != 0;
        is_foreign.then(|| self.word.map_addr(|addr| addr & !FOREIGN).cast())
    }

    /// Returns the waker in its usual form.
    #[inline]
    pub(crate) fn into_waker(self) -> Option<Waker> {
        let this = ManuallyDrop::new(self);
        if this.is_none() {
            return None;
        }
        Some(match this.boxed() {
            // SAFETY: the tag shows that `foreign` made this box; it is owned, and `self` is not
            // dropped.
            Some(boxed) => *unsafe { Box::from_raw(boxed) },
            // SAFETY: `from_waker` took the data out of a waker of this table and forgot that
            // waker.
            None => unsafe { Waker::new(this.word.cast_const(), &VTABLE) },
        })
    }

    /// Prefetches the waker's target, because the waker will be called soon.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch::line(self.word);
    }

    /// Takes the waker and leaves none behind.
    #[inline]
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::NONE)
    }

    /// Returns whether this waker wakes the same task as `waker`. Runs no foreign code.
    #[inline]
    pub(crate) fn will_wake(&self, waker: &Waker) -> bool {
        match self.boxed() {
            // SAFETY: the tag shows that `foreign` made this box, and it is owned.
            Some(boxed) => unsafe { &*boxed }.will_wake(waker),
            None => {
                !self.is_none()
                    && ptr::eq(self.word, waker.data())
                    && ptr::eq(waker.vtable(), &VTABLE)
            }
        }
    }

    /// Wakes without consuming the waker. A foreign waker's panic is caught and dropped.
    pub(crate) fn wake_by_ref_guarded(&self) {
        match self.boxed() {
            // SAFETY: the tag shows that `foreign` made this box, and it is owned.
            Some(boxed) => quietly(|| unsafe { &*boxed }.wake_by_ref()),
            None if self.is_none() => {}
            None => {
                // SAFETY: the word is the data of a native waker, whose reference is kept: the copy
                // is never dropped.
                let waker = unsafe { Waker::new(self.word.cast_const(), &VTABLE) };
                ManuallyDrop::new(waker).wake_by_ref();
            }
        }
    }

    /// Wakes the thread if there is a waker. A foreign waker's panic is caught and dropped. A
    /// native waker calls no user code.
    #[inline]
    pub(crate) fn wake_guarded(self) {
        let is_foreign = self.boxed().is_some();
        match self.into_waker() {
            Some(waker) if is_foreign => quietly(|| waker.wake()),
            Some(waker) => waker.wake(),
            None => {}
        }
    }
}

impl Drop for TinyWaker {
    /// Drops the waker, which is allowed anywhere: a foreign waker's panic is caught and dropped,
    /// and a native waker calls no user code.
    #[inline]
    fn drop(&mut self) {
        if self.is_none() {
            return;
        }
        let is_foreign = self.boxed().is_some();
        let waker = self.take().into_waker();
        if is_foreign {
            quietly(|| drop(waker));
        }
    }
}

impl fmt::Debug for TinyWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.is_none(), self.boxed()) {
            (true, _) => "TinyWaker(none)",
            (false, None) => "TinyWaker(native)",
            (false, Some(_)) => "TinyWaker(foreign)",
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn none_is_nothing() {
        let mut none = TinyWaker::NONE;
        assert!(none.is_none());
        assert!(!none.will_wake(Waker::noop()));
        assert!(none.take().into_waker().is_none());
        none.wake_guarded();
    }

    #[test]
    fn a_foreign_waker_comes_back() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut tiny = TinyWaker::from_waker(&waker);
        assert_eq!(format!("{tiny:?}"), "TinyWaker(foreign)");
        // Under Miri each use of the table of `Wake`, which is a constant and not a static, has
        // another address.
        assert!(tiny.will_wake(&waker) || cfg!(miri));
        assert!(!tiny.will_wake(Waker::noop()));
        assert_eq!(Arc::strong_count(&count), 3);
        let taken = tiny.take();
        assert!(tiny.is_none() && !taken.is_none());
        let again = taken.into_waker().expect("there is one");
        again.wake_by_ref();
        TinyWaker::from_waker(&again).wake_guarded();
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
        drop((again, waker));
        assert_eq!(Arc::strong_count(&count), 1, "each clone was dropped once");
    }

    #[test]
    fn dropping_drops_the_waker() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        drop(TinyWaker::from_waker(&waker));
        assert_eq!(Arc::strong_count(&count), 2);
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_panicking_waker_is_contained() {
        struct Payload;
        impl Drop for Payload {
            fn drop(&mut self) {
                // The payload has size zero, so that leaking it leaks no memory.
                std::panic::panic_any(());
            }
        }
        struct Bad;
        impl Wake for Bad {
            fn wake(self: Arc<Self>) {
                std::panic::panic_any(Payload);
            }
        }
        let bad = Waker::from(Arc::new(Bad));
        TinyWaker::from_waker(&bad).wake_guarded();
        TinyWaker::from_waker(&bad).wake_by_ref_guarded();
    }

    #[test]
    fn a_waker_that_panics_when_dropped_is_contained() {
        struct Bad;
        impl Wake for Bad {
            fn wake(self: Arc<Self>) {}
        }
        impl Drop for Bad {
            fn drop(&mut self) {
                std::panic::panic_any(());
            }
        }
        let bad = ManuallyDrop::new(Waker::from(Arc::new(Bad)));
        let tiny = TinyWaker::from_waker(&bad);
        // SAFETY: it is not used afterwards.
        drop(unsafe { ptr::read(&*bad) });
        drop(tiny);
    }
}
