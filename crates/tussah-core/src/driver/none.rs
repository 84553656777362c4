//! No driver: models have no descriptors.
#![allow(dead_code)]

#[cfg(test)]
mod slot;

use std::io;
use std::time::Duration;

/// There is none.
pub(crate) enum Driver {}

impl Driver {
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn wake(&self) {
        match *self {}
    }

    pub(crate) fn look(&self, _: &mut Events) {
        match *self {}
    }

    pub(crate) fn wait(&self, _: Option<Duration>, _: &mut Events) {
        match *self {}
    }

    pub(crate) fn adopt(&self, _: &Driver, _: usize) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn give_up(&self, _: &Driver) {
        match *self {}
    }

    pub(crate) fn is_used(&self) -> bool {
        match *self {}
    }
}

/// Reports that never come.
pub(crate) struct Events;

impl Events {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn is_empty(&self) -> bool {
        true
    }

    pub(crate) fn drain(&mut self, _: u64) -> impl Iterator<Item = Report> {
        std::iter::empty()
    }
}

/// Never made.
pub(crate) enum Report {
    Source(u64, ()),
    Adopted(usize),
    Files(usize),
}

/// The descriptors of no runtime.
pub(crate) struct Sources;

impl Sources {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn report(&self, _: u64, (): ()) -> usize {
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

        pub(crate) fn is_busy(&self) -> bool {
            false
        }

        pub(crate) fn close(&self, _: Duration) -> bool {
            true
        }
    }
}
