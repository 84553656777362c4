//! The atomic and the lock of a cell; the loom models use loom's versions.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use parking_lot::Mutex;
