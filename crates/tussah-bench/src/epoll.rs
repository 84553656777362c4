//! Readiness of descriptors for the floors and the clients: rustix's epoll with a reusable event
//! list.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;
pub use rustix::event::epoll::EventFlags;

/// Bound, in events: the maximum number that one call returns, which is the same in tokio and
/// async-io.
const EVENTS_MAX: usize = 1024;

/// An epoll instance; level-triggered unless the flags say otherwise.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// The result of one wait: the tokens of the ready descriptors.
pub type Ready = Vec<epoll::Event>;

impl Epoll {
    /// Creates an instance.
    pub fn new() -> Epoll {
        Epoll(epoll::create(epoll::CreateFlags::CLOEXEC).expect("the OS gives us an epoll"))
    }

    /// Reports `source` as `token` from now on.
    pub fn add(&self, source: impl AsFd, token: usize, flags: EventFlags) {
        let data = epoll::EventData::new_u64(token as u64);
        epoll::add(&self.0, source, data, flags).expect("the descriptor is new to the epoll");
    }

    /// Changes the conditions for which `source` is reported.
    pub fn modify(&self, source: impl AsFd, token: usize, flags: EventFlags) {
        let data = epoll::EventData::new_u64(token as u64);
        epoll::modify(&self.0, source, data, flags).expect("the descriptor is in the epoll");
    }

    /// Waits until a descriptor is ready and stores the events in `ready`, which is empty after a
    /// timeout.
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

/// Returns the token of an event.
pub fn token(event: &epoll::Event) -> usize {
    event.data.u64() as usize
}
