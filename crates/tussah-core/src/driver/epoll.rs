//! The place where a worker waits for the operating system: an epoll instance, and an eventfd that
//! wakes the worker.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use super::Sources;
use super::outage::{self, Outage};
use crate::loom::atomic::{AtomicUsize, Ordering};
use crate::named::named;

/// The maximum number of events that one look at a driver takes, so that timers and colors get
/// their turn soon.
const EVENTS_MAX: usize = 256;

/// A wait with a time limit of at least this length is accurate to a millisecond: the worker wakes
/// up early and waits again for the rest.
const COARSE: Duration = Duration::from_millis(20);

/// An index that no source has: its reports concern the driver itself.
const NO_SOURCE: u32 = u32::MAX;

/// Another index that no source has: its reports concern the ring of a place.
const RING: u32 = u32::MAX - 1;

/// The token that the eventfd reports.
const WAKE: u64 = u64::MAX;

/// A report of a driver.
pub(crate) enum Report {
    /// A descriptor may be ready: its token, and the events.
    Source(u64, EventFlags),
    /// The adopted driver of this place has something to report.
    Adopted(usize),
    /// Operations on files have completed in the ring of this place.
    Files(usize),
}

impl Report {
    /// Translates an event; `None` for a wake.
    #[inline]
    fn of(event: &Event) -> Option<Self> {
        let token = event.data.u64();
        let (high, low) = ((token >> 32) as u32, token as u32);
        match token {
            WAKE => None,
            _ if low == NO_SOURCE => Some(Self::Adopted(high as usize)),
            _ if low == RING => Some(Self::Files(high as usize)),
            _ => Some(Self::Source(token, event.flags)),
        }
    }
}

/// The reports of one look, in a buffer of the caller.
pub(crate) struct Events {
    buffer: Box<[Event]>,
    len: usize,
    /// The maximum number of reports that the next look takes.
    most: usize,
}

impl Events {
    pub(crate) fn new() -> Self {
        let nothing = Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(WAKE),
        };
        Self {
            buffer: vec![nothing; EVENTS_MAX].into(),
            len: 0,
            most: EVENTS_MAX,
        }
    }

    /// Limits each look to this number of reports, at least one. Further reports stay in the
    /// kernel, in order.
    pub(crate) fn take_at_most(&mut self, reports: usize) {
        self.most = reports.clamp(1, EVENTS_MAX);
    }

    fn reported(&self) -> &[Event] {
        &self.buffer[..self.len]
    }

    /// Prefetches the slots of the reported descriptors.
    pub(crate) fn prefetch(&self, sources: &Sources) {
        for report in self.reported().iter().filter_map(Report::of) {
            if let Report::Source(token, _) = report {
                sources.prefetch(token);
            }
        }
    }

    /// Returns the reports, starting at a random one so that none is favored (SEDA, section 4.2).
    pub(crate) fn drain(&mut self, random: u64) -> impl Iterator<Item = Report> {
        let len = std::mem::take(&mut self.len);
        let first = (random % len.max(1) as u64) as usize;
        let (late, early) = self.buffer[..len].split_at(first);
        early.iter().chain(late).filter_map(Report::of)
    }

    /// Returns whether a `wake` was among the reports.
    pub(crate) fn has_wake(&self) -> bool {
        let wake = |event: &Event| event.data.u64() == WAKE;
        self.reported().iter().any(wake)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The place where one worker waits.
pub(crate) struct Driver {
    epoll: OwnedFd,
    wake: OwnedFd,
    /// The number of descriptors registered here.
    registered: AtomicUsize,
    outage: Outage,
}

impl Driver {
    /// # Errors
    /// Returns the system's error if it is out of descriptors or memory.
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|e| named("epoll_create", e))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| named("eventfd", e))?;
        // Edge-triggered: each write is an edge, so the eventfd need not be read.
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), flags)
            .map_err(|e| named("epoll_ctl", e))?;
        Ok(Self {
            epoll,
            wake,
            registered: AtomicUsize::new(0),
            outage: Outage::new(),
        })
    }

    /// Registers a descriptor for both directions. It is reported immediately for each direction
    /// that is already ready.
    ///
    /// # Errors
    /// Returns the system's error if the system cannot wait for such a descriptor
    /// (`PermissionDenied`, for a file), or if a limit is reached.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let read = EventFlags::IN | EventFlags::RDHUP | EventFlags::PRI;
        let flags = read | EventFlags::OUT | EventFlags::ET;
        epoll::add(&self.epoll, fd, EventData::new_u64(token), flags)?;
        self.registered.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the reports of a descriptor.
    ///
    /// # Errors
    /// If this fails, the descriptor stays registered. Its reports then have an old token, or come
    /// from another driver, too, so the driver ignores them: the caller logs the error, where it
    /// holds no lock.
    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        self.registered.fetch_sub(1, Ordering::Relaxed);
        epoll::delete(&self.epoll, fd)
    }

    /// Registers the ring of a place, whose completions are reported from now on.
    ///
    /// Level-triggered, because one look may take only some of the completions. The ring does not
    /// count as registered: a worker that checks a ring needs no report.
    ///
    /// # Errors
    /// Returns the system's error.
    pub(crate) fn add_ring(&self, ring: BorrowedFd<'_>, place: usize) -> io::Result<()> {
        let token = u64::from(RING) | (place as u64) << 32;
        let token = EventData::new_u64(token);
        epoll::add(&self.epoll, ring, token, EventFlags::IN)?;
        Ok(())
    }

    /// From now on, reports when the driver of another place, whose worker was removed, has
    /// something to report.
    ///
    /// That driver does not count as registered, because its own descriptors count there; see
    /// `Shared::used_driver`.
    ///
    /// # Errors
    /// Returns the system's error.
    pub(crate) fn adopt(&self, orphan: &Driver, place: usize) -> io::Result<()> {
        let token = u64::from(NO_SOURCE) | (place as u64) << 32;
        let token = EventData::new_u64(token);
        epoll::add(&self.epoll, &orphan.epoll, token, EventFlags::IN)?;
        Ok(())
    }

    /// Stops reporting for an adopted driver, whose place has a worker again. Does nothing if the
    /// driver was not adopted.
    pub(crate) fn give_up(&self, orphan: &Driver) {
        let _ = epoll::delete(&self.epoll, &orphan.epoll);
    }

    /// Returns whether any descriptor is registered here. Descriptors of adopted drivers do not
    /// count.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.registered.load(Ordering::Relaxed) > 0
    }

    /// Makes a current call of `wait`, or else the next call, return.
    pub(crate) fn wake(&self) {
        loop {
            match rustix::io::write(&self.wake, &1u64.to_ne_bytes()) {
                Ok(_) => return,
                Err(Errno::INTR) => {}
                // The counter is full, and a failed write is no edge.
                Err(Errno::AGAIN) => {
                    let _ = rustix::io::read(&self.wake, &mut [0; 8]);
                }
                Err(error) => outage::fatal("waking a worker by its eventfd", error),
            }
        }
    }

    /// Waits for reports, for at most `limit` or without a limit if `None`.
    pub(crate) fn wait(&self, limit: Option<Duration>, events: &mut Events) {
        let Some(limit) = limit else {
            return self.get_or_pause(None, events);
        };
        let whole = Duration::from_millis(limit.as_millis() as u64);
        if limit == whole || limit >= COARSE {
            return self.get_or_pause(Some(whole), events);
        }
        // `epoll_wait` counts in milliseconds, and some systems and seccomp filters do not support
        // `epoll_pwait2`.
        let fd = PollFd::new(&self.epoll, PollFlags::IN);
        match poll(&mut [fd], Some(&timespec(limit))) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => self.look(events),
            // The kernel has no memory, or the process may not open more descriptors. `epoll_wait`
            // still works, with a precision of a millisecond.
            Err(_) => self.get_or_pause(Some(whole + Duration::from_millis(1)), events),
        }
    }

    /// Asks the kernel, and pauses for a moment if it cannot wait now, so that a worker does not
    /// spin. The next look finds the reports and wakes that arrive during the pause.
    fn get_or_pause(&self, limit: Option<Duration>, events: &mut Events) {
        if self.get(limit, events).is_err() {
            let pause = limit.map_or(outage::RETRY, |limit| limit.min(outage::RETRY));
            std::thread::sleep(pause);
        }
    }

    /// Takes the reports that are present now.
    pub(crate) fn look(&self, events: &mut Events) {
        // If the kernel fails now, a later look will find the reports.
        let _ = self.get(Some(Duration::ZERO), events);
    }

    /// Asks the kernel. An error is transient and has been logged.
    fn get(&self, limit: Option<Duration>, events: &mut Events) -> Result<(), Errno> {
        events.len = 0;
        let limit = limit.map(timespec);
        let buffer = &mut events.buffer[..events.most];
        match epoll::wait(&self.epoll, buffer, limit.as_ref()) {
            Ok(len) => events.len = len,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => {
                self.outage.failed("epoll_wait", error);
                return Err(error);
            }
        }
        self.outage.is_over("epoll_wait");
        Ok(())
    }
}

fn timespec(duration: Duration) -> Timespec {
    // Every system can count at least 24 days in milliseconds. A caller that waits longer asks
    // again.
    let duration = duration.min(Duration::from_secs(1_000_000));
    Timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quietly::tests::aborts_with;

    /// Set in the child process that the test below starts.
    const CHILD: &str = "TUSSAH_TEST_LOST_EPOLL";

    /// If another part of the process closes a runtime's epoll instance, the runtime receives no
    /// reports: the process aborts with a message.
    #[test]
    fn a_process_whose_epoll_instance_is_gone_says_so_and_ends() {
        if std::env::var_os(CHILD).is_some() {
            let driver = Driver::new().expect("there are descriptors");
            let file = std::fs::File::open("/dev/null").expect("it is there");
            let mut epoll = std::mem::ManuallyDrop::new(driver);
            rustix::io::dup2(&file, &mut epoll.epoll).expect("both are open");
            return epoll.look(&mut Events::new());
        }
        let test = "driver::epoll::tests::a_process_whose_epoll_instance_is_gone_says_so_and_ends";
        aborts_with(test, CHILD, "epoll_wait failed: Invalid argument");
    }

    /// A write to an eventfd whose counter is full fails and reports no edge until the eventfd is
    /// read.
    #[test]
    fn a_wake_by_a_full_counter_is_a_wake() {
        let driver = Driver::new().expect("there are descriptors");
        let mut events = Events::new();
        driver.wake();
        driver.look(&mut events);
        assert!(events.has_wake());
        let rest = (u64::MAX - 2).to_ne_bytes();
        rustix::io::write(&driver.wake, &rest).expect("it has room for so much");
        driver.look(&mut events);
        driver.wake();
        driver.look(&mut events);
        assert!(events.has_wake());
    }

    #[test]
    fn reports_that_are_not_taken_come_next() {
        let driver = Driver::new().expect("there are descriptors");
        let sources: Vec<_> = (0..10)
            .map(|token| {
                let source = eventfd(1, EventfdFlags::CLOEXEC).expect("there are descriptors");
                let flags = EventFlags::IN | EventFlags::ET;
                epoll::add(&driver.epoll, &source, EventData::new_u64(token), flags)
                    .expect("it may be watched");
                source
            })
            .collect();
        let mut events = Events::new();
        let mut look = |most| {
            events.take_at_most(most);
            driver.look(&mut events);
            events
                .drain(most as u64)
                .map(|report| match report {
                    Report::Source(token, _) => token,
                    _ => unreachable!("only sources were added"),
                })
                .collect::<Vec<_>>()
        };
        let looks: Vec<_> = [3, 0, 4, 1000].into_iter().map(&mut look).collect();
        let lens: Vec<_> = looks.iter().map(Vec::len).collect();
        assert_eq!(lens, [3, 1, 4, 2]);
        let mut tokens = looks.concat();
        tokens.sort_unstable();
        assert_eq!(tokens, (0..sources.len() as u64).collect::<Vec<_>>());
        assert!(look(1000).is_empty(), "each edge is reported once");
    }
}
