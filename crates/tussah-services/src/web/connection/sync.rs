//! The types that a loom model replaces: atomics, a lock, a cell that is set once, and the handle
//! that cancels a request.

pub(crate) use std::sync::OnceLock;
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

pub(crate) use parking_lot::Mutex;
pub(crate) use tussah::stage::CancelHandle;
