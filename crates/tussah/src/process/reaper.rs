//! The reaper, which waits for the children that nothing else waits for.
//!
//! The reaper is one OS thread that waits on the pidfds of all its children with epoll. It starts
//! with the first such child and ends with the last one. Handing over a child adds its pidfd to the
//! epoll instance, which a waiting thread notices by itself. For a child without a pidfd, the
//! thread is woken. While the process has no descriptors for an epoll instance, the thread polls
//! all of its children.
//!
//! Everything else is protected by one lock, which is never held while waiting. The decision to end
//! the OS thread is made under that lock, so no child can be handed over between that decision and
//! the end.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::{Errno, retry_on_intr};

use super::child::try_wait;

/// The maximum number of exits handled after one epoll call. The next call reports the rest.
const EVENTS_MAX: usize = 64;

/// The polling interval for children without a pidfd.
const ASK: Duration = Duration::from_millis(100);

static REAPER: Mutex<Reaper> = Mutex::new(Reaper::NEW);

/// The epoll instance of the OS thread.
struct Place {
    epoll: OwnedFd,
    /// Wakes the thread. It is edge-triggered, so it need never be read.
    wake: OwnedFd,
}

struct Reaper {
    /// True if the OS thread is running.
    is_running: bool,
    /// This is `None` also while the process has no descriptors for it.
    place: Option<Arc<Place>>,
    /// Children whose pidfd is in the epoll instance, by their key there.
    watched: Option<HashMap<u64, (Child, OwnedFd)>>,
    last_number: u64,
    /// All other children.
    unwatched: Vec<Child>,
}

/// Hands a child to the reaper, which waits for it.
pub(super) fn hand_over(mut child: Child, pidfd: Option<OwnedFd>) {
    if has_ended(&mut child) {
        return;
    }
    let mut reaper = lock();
    reaper.start();
    reaper.add(child, pidfd);
}

/// Retries the operations that failed earlier.
pub(super) fn look_again() {
    let mut reaper = lock();
    if !reaper.is_running && !reaper.unwatched.is_empty() {
        reaper.ask();
        reaper.start();
    }
}

fn lock() -> MutexGuard<'static, Reaper> {
    REAPER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reaps a child that has exited. Returns true, too, if other code has waited for it.
fn has_ended(child: &mut Child) -> bool {
    !matches!(try_wait(child), Ok(None))
}

impl Place {
    fn new() -> rustix::io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &wake, EventData::new_u64(0), flags)?;
        Ok(Self { epoll, wake })
    }
}

impl Reaper {
    const NEW: Self = Self {
        is_running: false,
        place: None,
        watched: None,
        last_number: 0,
        unwatched: Vec::new(),
    };

    /// Starts the OS thread if it is not running. If that fails, the children wait for the next
    /// attempt.
    fn start(&mut self) {
        if self.is_running {
            return;
        }
        let thread = thread::Builder::new().name("tussah-reaper".into());
        self.is_running = thread.spawn(run).is_ok();
        if self.is_running {
            // The epoll instance is made only now. Otherwise the next attempt would replace it and
            // forget the children watched there.
            self.place = Place::new().ok().map(Arc::new);
        }
    }

    fn add(&mut self, child: Child, pidfd: Option<OwnedFd>) {
        if let (Some(place), Some(pidfd)) = (&self.place, pidfd) {
            self.last_number += 1;
            let data = EventData::new_u64(self.last_number);
            if epoll::add(&place.epoll, &pidfd, data, EventFlags::IN).is_ok() {
                let watched = self.watched.get_or_insert_default();
                watched.insert(self.last_number, (child, pidfd));
                return;
            }
        }
        self.unwatched.push(child);
        if let Some(place) = &self.place {
            // This fails only if the counter is full, and then the OS thread is awake anyway.
            let _ = retry_on_intr(|| rustix::io::write(&place.wake, &1u64.to_ne_bytes()));
        }
    }

    /// Reaps all children without a pidfd that have exited.
    fn ask(&mut self) {
        self.unwatched.retain_mut(|child| !has_ended(child));
    }

    /// Switches to polling all children, after epoll has failed.
    fn give_up_place(&mut self) {
        self.place = None;
        let watched = self.watched.take().unwrap_or_default();
        self.unwatched
            .extend(watched.into_values().map(|(child, _)| child));
    }

    /// Reaps a child whose exit was reported.
    fn reap(&mut self, number: u64) {
        let watched = self.watched.get_or_insert_default();
        if let Some((child, _)) = watched.get_mut(&number)
            && has_ended(child)
        {
            watched.remove(&number);
        }
    }

    fn is_idle(&self) -> bool {
        self.unwatched.is_empty() && self.watched.as_ref().is_none_or(HashMap::is_empty)
    }
}

/// The main loop of the OS thread.
fn run() {
    let ask = Timespec::try_from(ASK).expect("it is short");
    let mut events = Vec::<epoll::Event>::with_capacity(EVENTS_MAX);
    loop {
        let mut reaper = lock();
        for event in events.drain(..) {
            reaper.reap(event.data.u64());
        }
        reaper.ask();
        if reaper.is_idle() {
            reaper.is_running = false;
            reaper.place = None;
            reaper.watched = None;
            return;
        }
        if reaper.place.is_none() {
            reaper.place = Place::new().ok().map(Arc::new);
        }
        let place = reaper.place.clone();
        let limit = (!reaper.unwatched.is_empty()).then_some(&ask);
        drop(reaper);
        match place {
            Some(place) => match epoll::wait(&place.epoll, spare_capacity(&mut events), limit) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => {
                    lock().give_up_place();
                    thread::sleep(ASK);
                }
            },
            None => thread::sleep(ASK),
        }
    }
}
