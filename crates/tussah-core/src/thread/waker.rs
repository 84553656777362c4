//! The waker of a thread: the address of its header, and one table for all threads.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::Header;

/// The table of every thread's waker. Its address identifies native wakers to
/// [`crate::tiny_waker`].
pub(crate) static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop);

fn header(data: *const ()) -> NonNull<Header> {
    NonNull::new(data.cast_mut().cast()).expect("a waker's data is its thread")
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the cloned waker has a reference.
    unsafe { header(data).as_ref() }.retain();
    RawWaker::new(data, &VTABLE)
}

unsafe fn wake(data: *const ()) {
    Header::wake(header(data));
    // SAFETY: a waker owns one reference, and this one is consumed.
    unsafe { Header::release(header(data)) }
}

unsafe fn wake_by_ref(data: *const ()) {
    Header::wake(header(data));
}

unsafe fn drop(data: *const ()) {
    // SAFETY: a waker owns one reference, and this one is consumed.
    unsafe { Header::release(header(data)) }
}

/// Returns a waker for the length of one poll, which needs no reference of its own.
///
/// # Safety
/// The thread must stay alive as long as the result is used.
pub(crate) unsafe fn borrowed(thread: NonNull<Header>) -> ManuallyDrop<Waker> {
    // SAFETY: the table matches the data, and the reference that `Waker` would own is never
    // released.
    ManuallyDrop::new(unsafe { Waker::new(thread.as_ptr().cast_const().cast(), &VTABLE) })
}
