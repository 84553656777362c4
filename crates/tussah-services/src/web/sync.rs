//! What the connections of a model have loom's of instead: atomics, a lock, a cell that is set once.

pub(crate) use std::sync::OnceLock;
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

pub(crate) use parking_lot::Mutex;
