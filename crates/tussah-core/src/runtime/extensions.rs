//! Values that belong to a runtime as a whole, at most one of each type.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::handle::Handle;
use crate::quietly::Guarded;

/// The values of a runtime. A list is enough, because there are few: one for each type that a
/// library keeps here.
#[derive(Default)]
pub(crate) struct Extensions(Mutex<Vec<(TypeId, Extension)>>);

/// Dropped at the end of the shutdown, or wherever the runtime's memory is freed.
type Extension = Guarded<Arc<dyn Any + Send + Sync>>;

impl Extensions {
    fn find<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let list = self.0.lock();
        let (_, found) = list.iter().find(|(id, _)| *id == TypeId::of::<T>())?;
        Arc::clone(found).downcast().ok()
    }

    fn add<T: Any + Send + Sync>(&self, value: T) -> Arc<T> {
        let value: Arc<dyn Any + Send + Sync> = Arc::new(value);
        let mut list = self.0.lock();
        let id = TypeId::of::<T>();
        let kept = match list.iter().find(|(other, _)| *other == id) {
            Some((_, earlier)) => Arc::clone(earlier),
            None => {
                list.push((id, Guarded::new(value.clone())));
                value.clone()
            }
        };
        // A value that arrived too late is dropped outside of the lock.
        drop(list);
        drop(value);
        kept.downcast().expect("it was found by its type")
    }

    /// Drops the values of a runtime that has ended.
    pub(super) fn end(&self) {
        let values = std::mem::take(&mut *self.0.lock());
        // Outside of the lock, because a value's destructor may ask for another value.
        drop(values);
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Extensions")
            .field(&self.0.lock().len())
            .finish()
    }
}

impl Handle {
    /// Returns the value of type `T` that the runtime stores. The first call for a type creates the
    /// value. Libraries can use this method to keep per-runtime state.
    ///
    /// The shutdown of the runtime drops the futures of all threads first, and then the value. The
    /// value's destructor can therefore stop whatever must stop with the runtime. If the value is
    /// created after the shutdown, or if the shutdown leaves a worker behind, the value lives as
    /// long as the runtime's memory. The value must not hold a [`Handle`] or anything else that
    /// keeps the runtime's memory alive: otherwise, the value and that memory may never be freed.
    ///
    /// If the first two calls for a type run concurrently, both may create a value. One of the two
    /// values is then dropped, and both calls return the other value.
    ///
    /// # Examples
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// # let runtime = tussah_core::Runtime::builder().workers(1).build()?;
    /// #[derive(Default)]
    /// struct Requests(AtomicU64);
    /// runtime.extension(Requests::default).0.fetch_add(1, Ordering::Relaxed);
    /// runtime.extension(Requests::default).0.fetch_add(1, Ordering::Relaxed);
    /// assert_eq!(runtime.extension(Requests::default).0.load(Ordering::Relaxed), 2);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn extension<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let extensions = &self.shared.extensions;
        extensions.find().unwrap_or_else(|| extensions.add(make()))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_of_each_type() {
        let extensions = Extensions::default();
        assert_eq!(extensions.find::<u8>(), None);
        assert_eq!(*extensions.add(1u8), 1);
        assert_eq!(*extensions.add(2u16), 2);
        // The first value stays, even if another was made at the same time.
        assert_eq!(*extensions.add(3u8), 1);
        assert_eq!(extensions.find::<u8>().as_deref(), Some(&1));
        assert_eq!(extensions.find::<u16>().as_deref(), Some(&2));
    }

    #[test]
    fn the_shutdown_drops_a_value_that_a_handle_outlives() {
        let runtime = crate::Runtime::builder().workers(1).build();
        let runtime = runtime.expect("it starts");
        let handle = runtime.handle().clone();
        let gone = Arc::downgrade(&handle.extension(|| 1u8));
        assert!(gone.upgrade().is_some());
        drop(runtime);
        assert_eq!(gone.upgrade(), None);
        assert_eq!(*handle.extension(|| 2u8), 2, "another one is made");
    }

    #[test]
    fn a_value_may_be_made_with_another() {
        let runtime = crate::Runtime::builder()
            .workers(1)
            .build()
            .expect("it starts");
        let text = runtime.extension(|| runtime.extension(|| 7u32).to_string());
        assert_eq!(*text, "7");
    }
}
