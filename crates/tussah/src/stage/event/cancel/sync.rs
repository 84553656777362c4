//! The atomic and the lock of a cell; they are loom's in its models.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use parking_lot::Mutex;
