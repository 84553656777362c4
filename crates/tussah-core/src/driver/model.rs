//! The driver of the loom models. It has no descriptors; it can only be woken.
#![allow(dead_code)]

#[cfg(test)]
mod slot;

use std::io;
use std::time::Duration;

use crate::loom::{Condvar, Mutex, lock};

/// An eventfd in an epoll instance: an edge that one of the callers takes.
pub(crate) struct Driver {
    edge: Mutex<bool>,
    changed: Condvar,
}

impl Driver {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            edge: Mutex::new(false),
            changed: Condvar::new(),
        })
    }

    pub(crate) fn wake(&self) {
        *lock(&self.edge) = true;
        self.changed.notify_one();
    }

    pub(crate) fn look(&self, events: &mut Events) {
        events.woken = std::mem::take(&mut *lock(&self.edge));
    }

    /// A model has no time: a limit expires as soon as another thread of the model has had a chance
    /// to run.
    pub(crate) fn wait(&self, limit: Option<Duration>, events: &mut Events) {
        if limit.is_some() {
            crate::loom::thread::yield_now();
            return self.look(events);
        }
        let mut edge = lock(&self.edge);
        while !std::mem::take(&mut *edge) {
            edge = self
                .changed
                .wait(edge)
                .expect("a model does not go on after a panic");
        }
        events.woken = true;
    }

    pub(crate) fn adopt(&self, _: &Driver, _: usize) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn give_up(&self, _: &Driver) {}

    /// Acts as if a descriptor were registered.
    pub(crate) fn is_used(&self) -> bool {
        true
    }
}

/// The result of one look.
pub(crate) struct Events {
    woken: bool,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { woken: false }
    }

    pub(crate) fn take_at_most(&mut self, _: usize) {}

    pub(crate) fn prefetch(&self, _: &Sources) {}

    pub(crate) fn has_wake(&self) -> bool {
        self.woken
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.woken
    }

    pub(crate) fn drain(&mut self, _: u64) -> impl Iterator<Item = Report> {
        self.woken = false;
        std::iter::empty()
    }
}

/// Never constructed.
pub(crate) enum Report {
    Source(u64, ()),
    Adopted(usize),
    Files(usize),
}

/// An empty stand-in.
pub(crate) struct Late;

impl Late {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn wake(self) -> usize {
        0
    }
}

/// The empty table of a runtime without descriptors.
pub(crate) struct Sources;

impl Sources {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn report(&self, _: u64, (): (), _: &mut Late) -> usize {
        0
    }

    pub(crate) fn close(&self) {}
}

/// A stand-in without files.
pub(crate) mod file {
    use std::io;
    use std::time::Duration;

    /// A choice without alternatives.
    #[derive(Clone, Copy, Default, Debug)]
    pub enum FileDriver {
        /// The only value.
        #[default]
        Auto,
    }

    /// A decision that holds no data.
    pub(crate) struct Files;

    impl Files {
        pub(crate) fn choose(_: FileDriver) -> io::Result<Self> {
            Ok(Self)
        }
    }

    /// A place that has no ring.
    #[derive(Default)]
    pub(crate) struct RingPlace;

    impl RingPlace {
        pub(crate) fn serve(&self) -> usize {
            0
        }

        pub(crate) fn flush(&self) -> bool {
            true
        }

        pub(crate) fn flush_last(&self) {}

        pub(crate) fn is_busy(&self) -> bool {
            false
        }

        pub(crate) fn close(&self, _: Duration) -> bool {
            true
        }
    }
}
