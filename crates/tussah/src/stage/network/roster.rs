//! The stages of a runtime, which are closed when the runtime ends.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tussah_core::Handle;

use super::inspect::Inspect;

/// The stages of a runtime. The runtime's shutdown drops this value when no servlet is running any
/// longer.
///
/// Stages whose handlers refer to each other or to their network in a cycle keep themselves alive.
/// No handler is called after its runtime has ended, so the stages are closed then, which drops the
/// handlers.
#[derive(Default)]
pub(crate) struct Roster(Mutex<Vec<Weak<dyn Inspect>>>);

impl Roster {
    pub(crate) fn add<S: Inspect>(runtime: &Handle, stage: &Arc<S>) {
        let stage: Weak<S> = Arc::downgrade(stage);
        let roster = runtime.extension(Self::default);
        let mut stages = roster.0.lock();
        if stages.len() == stages.capacity() {
            stages.retain(|stage| stage.strong_count() > 0);
            // Room for twice as many stages, so that the check of all entries is rare.
            let len = stages.len();
            stages.reserve(len + 1);
        }
        stages.push(stage);
    }
}

impl Drop for Roster {
    fn drop(&mut self) {
        for stage in self.0.get_mut().drain(..) {
            if let Some(stage) = stage.upgrade() {
                stage.leave();
            }
        }
    }
}
