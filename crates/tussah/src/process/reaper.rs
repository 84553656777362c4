//! The reaper: waits for the children that nobody else waits for any more.
//!
//! One OS thread, which waits for the pidfds of all of them at once. It begins with the first such child and ends with the
//! last one. Who hands a child over adds its pidfd to the same epoll instance, which is what a waiting thread notices by
//! itself; for a child without a pidfd it is woken. As long as there are no descriptors for such an instance it asks for all of
//! its children in turn. Everything else is under one lock, which nobody holds while waiting: the
//! decision to end the OS thread, too, so that no child comes between that and the end.

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

/// Bound, in children: how many ends of children one look takes; the others are taken by the next one.
const EVENTS_MAX: usize = 64;

/// How often children without a pidfd are asked for.
const ASK: Duration = Duration::from_millis(100);

static REAPER: Mutex<Reaper> = Mutex::new(Reaper::NEW);

/// What the OS thread waits on.
struct Place {
    epoll: OwnedFd,
    /// Wakes it; edge-triggered, so that nobody need ever read.
    wake: OwnedFd,
}

struct Reaper {
    /// Whether the OS thread is there.
    is_running: bool,
    /// `None` also while the process has no descriptors for it.
    place: Option<Arc<Place>>,
    /// Children whose pidfd is in the place, by the number under which it is.
    watched: Option<HashMap<u64, (Child, OwnedFd)>>,
    last_number: u64,
    /// The others.
    unwatched: Vec<Child>,
}

/// Sees to it that a child is waited for some time.
pub(super) fn hand_over(mut child: Child, pidfd: Option<OwnedFd>) {
    if has_ended(&mut child) {
        return;
    }
    let mut reaper = lock();
    reaper.start();
    reaper.add(child, pidfd);
}

/// Looks again for what could not be done before.
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

/// Takes the status of a child that has ended. One that somebody else has waited for is none of ours any more.
fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
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

    /// Starts the OS thread if there is none. If that can't be, children wait for the next try.
    fn start(&mut self) {
        if self.is_running {
            return;
        }
        let thread = thread::Builder::new().name("tussah-reaper".into());
        self.is_running = thread.spawn(run).is_ok();
        if self.is_running {
            // Only now: else the next try would forget it, and who is watched there.
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
            // It can only fail when the counter is full, and then the OS thread is awake anyway.
            let _ = retry_on_intr(|| rustix::io::write(&place.wake, &1u64.to_ne_bytes()));
        }
    }

    /// Takes the status of all children without a pidfd that have ended.
    fn ask(&mut self) {
        self.unwatched.retain_mut(|child| !has_ended(child));
    }

    /// Nothing can be waited for in the place: all children are asked for in turn from now on.
    fn give_up_place(&mut self) {
        self.place = None;
        let watched = self.watched.take().unwrap_or_default();
        self.unwatched
            .extend(watched.into_values().map(|(child, _)| child));
    }

    /// Takes the status of a child of which the end was reported.
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

/// What the OS thread does.
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
