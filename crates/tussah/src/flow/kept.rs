//! The state of a flow and its alarm, as an instance keeps them between two items.

use std::any::Any;
use std::sync::atomic::AtomicU32;

use parking_lot::Mutex;
use tussah_core::quietly;

use crate::JoinHandle;

/// The state of a flow and its alarm, while no item of the flow is handled.
#[derive(Default)]
pub(crate) struct Kept {
    /// A [`State`].
    pub(crate) state: Option<Box<dyn Any + Send>>,
    pub(crate) alarm: Option<Box<Alarm>>,
}

impl Kept {
    /// Takes out the state, or a place for a new one.
    #[inline]
    pub(crate) fn take<S: Send + 'static>(&mut self) -> Box<State<S>> {
        match self.state.take().map(|state| state.downcast()) {
            Some(Ok(state)) => state,
            _ => Box::default(),
        }
    }

    /// Returns the number of the last alarm.
    pub(crate) fn alarm(&self) -> u64 {
        self.alarm.as_ref().map_or(0, |alarm| alarm.number)
    }
}

/// The alarm of a flow that has been set at least once.
pub(crate) struct Alarm {
    pub(crate) number: u64,
    /// The thread that waits for the time.
    pub(crate) waiting: Option<JoinHandle<()>>,
}

impl Drop for Alarm {
    /// Ends the alarm: another one was set, or the state has ended.
    fn drop(&mut self) {
        if let Some(waiting) = &self.waiting {
            waiting.abort();
        }
    }
}

/// The state of a flow in one instance.
pub(crate) struct State<S>(pub(crate) Option<S>);

impl<S> Default for State<S> {
    fn default() -> Self {
        Self(None)
    }
}

impl<S> Drop for State<S> {
    /// Ends the state. Its destructor may panic here, even after a panic of the module.
    fn drop(&mut self) {
        let state = self.0.take();
        quietly(|| drop(state));
    }
}

/// A place of a flow for one instance that keeps state.
#[derive(Default)]
pub(crate) struct Slot {
    /// The lock is always free: only the instance takes it, and the instance handles one item of a
    /// flow at a time.
    pub(crate) kept: Mutex<Kept>,
    /// The place of the flow in the instance's queue.
    pub(crate) entry: AtomicU32,
}
