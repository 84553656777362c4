//! Readiness of descriptors for the floors and for the clients: rustix's epoll with a list of events that is used again.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;
pub use rustix::event::epoll::EventFlags;

/// Bound, in events: as many as one call gives, which is what tokio and async-io take as well.
const EVENTS_MAX: usize = 1024;

/// An epoll instance; level-triggered unless the flags say otherwise.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// What one wait has found: the tokens of the descriptors that are ready.
pub type Ready = Vec<epoll::Event>;

impl Epoll {
    /// A new instance.
    pub fn new() -> Epoll {
        Epoll(epoll::create(epoll::CreateFlags::CLOEXEC).expect("the OS gives us an epoll"))
    }

    /// Reports `source` as `token` from now on.
    pub fn add(&self, source: impl AsFd, token: usize, flags: EventFlags) {
        let data = epoll::EventData::new_u64(token as u64);
        epoll::add(&self.0, source, data, flags).expect("the descriptor is new to the epoll");
    }

    /// Changes what `source` is reported for.
    pub fn modify(&self, source: impl AsFd, token: usize, flags: EventFlags) {
        let data = epoll::EventData::new_u64(token as u64);
        epoll::modify(&self.0, source, data, flags).expect("the descriptor is in the epoll");
    }

    /// Waits until something is ready and puts it into `ready`; nothing after `timeout`.
    pub fn wait(&self, ready: &mut Ready, timeout: Option<Duration>) {
        let timeout = timeout.map(|timeout| {
            rustix::time::Timespec::try_from(timeout).expect("a time limit is a few seconds")
        });
        ready.clear();
        ready.reserve(EVENTS_MAX);
        let room = rustix::buffer::spare_capacity(ready);
        match epoll::wait(&self.0, room, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("epoll_wait failed: {error}"),
        }
    }
}

/// The token of an event.
pub fn token(event: &epoll::Event) -> usize {
    event.data.u64() as usize
}
