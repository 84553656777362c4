//! No driver: models have no descriptors.
#![allow(dead_code)]

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

    pub(crate) fn drain(&mut self, _: u64) -> impl Iterator<Item = (u64, ())> {
        std::iter::empty()
    }
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
