//! The driver of loom's models: it has no descriptors, and can only be woken.
#![allow(dead_code)]

#[cfg(test)]
mod slot;

use std::io;
use std::time::Duration;

use crate::loom::{Condvar, Mutex, lock};

/// An eventfd in an epoll instance: an edge that one of those who look takes.
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

    /// A model has no time: a limit runs out as soon as another of its threads has had a chance.
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

    /// As if some descriptor were registered.
    pub(crate) fn is_used(&self) -> bool {
        true
    }
}

/// What one look has found.
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

/// Never made.
pub(crate) enum Report {
    Source(u64, ()),
    Adopted(usize),
    Files(usize),
}

/// Nobody.
pub(crate) struct Late;

impl Late {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn wake(self) -> usize {
        0
    }
}

/// The descriptors of a runtime that has none.
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

/// No files.
pub(crate) mod file {
    use std::io;
    use std::time::Duration;

    /// Decides nothing.
    #[derive(Clone, Copy, Default, Debug)]
    pub enum FileDriver {
        /// No other.
        #[default]
        Auto,
    }

    /// Nothing was decided.
    pub(crate) struct Files;

    impl Files {
        pub(crate) fn choose(_: FileDriver) -> io::Result<Self> {
            Ok(Self)
        }
    }

    /// No ring.
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
