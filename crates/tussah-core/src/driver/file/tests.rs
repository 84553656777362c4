//! Tests of a ring alone: more operations than it has room for, overflowing completions, shutdown.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use io_uring::{opcode, squeue};
use rustix::event::{PollFd, PollFlags, poll};

use super::operation::Operate;
use super::ring::{Ring, Size};
use crate::runtime::Handle;

/// A read or a write of one byte that counts how it ends.
struct Count {
    writes: bool,
    fd: OwnedFd,
    byte: parking_lot::Mutex<Box<[u8; 1]>>,
    ends: Arc<Ends>,
}

#[derive(Default)]
struct Ends {
    done: AtomicUsize,
    failed: AtomicUsize,
}

impl Ends {
    fn get(&self) -> (usize, usize) {
        (
            self.done.load(Ordering::Relaxed),
            self.failed.load(Ordering::Relaxed),
        )
    }
}

impl Operate for Count {
    fn entry(&self) -> squeue::Entry {
        let fd = io_uring::types::Fd(std::os::fd::AsRawFd::as_raw_fd(&self.fd));
        let byte = self.byte.lock().as_mut_ptr();
        if self.writes {
            return opcode::Write::new(fd, byte, 1).build();
        }
        opcode::Read::new(fd, byte, 1).build()
    }

    fn completed(self: Arc<Self>, result: io::Result<u32>) {
        match result {
            Ok(1) => self.ends.done.fetch_add(1, Ordering::Relaxed),
            _ => self.ends.failed.fetch_add(1, Ordering::Relaxed),
        };
    }

    fn fail(self: Arc<Self>, _: io::Error) {
        self.ends.failed.fetch_add(1, Ordering::Relaxed);
    }

    fn run(self: Arc<Self>) {}

    fn run_for_another(self: Arc<Self>) -> bool {
        false
    }

    fn is_carried_out(&self) -> bool {
        self.writes
    }

    fn wake(&self) {}

    fn dropped_by_pool(self: Arc<Self>) {}

    fn launch(self: Arc<Self>, _: &Handle) -> bool {
        false
    }
}

struct Bench {
    ring: Arc<Ring>,
    reader: OwnedFd,
    writer: OwnedFd,
    ends: Arc<Ends>,
}

impl Bench {
    /// `None` on systems without io_uring.
    fn new(size: Size) -> Option<Self> {
        if cfg!(miri) {
            return None;
        }
        let (reader, writer) = std::io::pipe().expect("there are descriptors left");
        Some(Self {
            ring: Ring::new(size).ok()?,
            reader: reader.into(),
            writer: writer.into(),
            ends: Arc::default(),
        })
    }

    /// Creates a small ring with a hundred reads to do.
    fn with_reads() -> Option<Self> {
        let bench = Self::new(SMALL)?;
        (0..100).for_each(|_| assert!(bench.push().is_ok()));
        Some(bench)
    }

    fn push(&self) -> Result<super::slots::Key, Arc<dyn Operate>> {
        self.push_one(false, &self.reader)
    }

    fn push_one(&self, writes: bool, fd: &OwnedFd) -> Result<super::slots::Key, Arc<dyn Operate>> {
        self.ring.push(Arc::new(Count {
            writes,
            fd: fd.try_clone().expect("there are some left"),
            byte: parking_lot::Mutex::default(),
            ends: self.ends.clone(),
        }))
    }

    fn feed(&self, bytes: usize) {
        let written = rustix::io::write(&self.writer, &vec![1; bytes]);
        assert_eq!(written.expect("there is room"), bytes);
    }

    /// Waits for the ring, as a driver does, until this many operations have ended.
    fn reap_until(&self, ended: usize) {
        while self.ends.get().0 + self.ends.get().1 < ended {
            let _ = poll(&mut [PollFd::new(&self.ring.as_fd(), PollFlags::IN)], None);
            self.ring.reap();
        }
    }
}

const SMALL: Size = Size {
    submissions: 4,
    completions: 8,
    in_flight: 16,
};

#[test]
fn operations_beyond_the_size_of_the_ring_all_complete() {
    let Some(bench) = Bench::with_reads() else {
        return;
    };
    assert!(bench.ring.flush());
    assert_eq!(bench.ring.in_flight(), 16);
    assert_eq!(bench.ring.reap(), 0);
    // More than the completion queue can hold.
    bench.feed(60);
    bench.reap_until(60);
    bench.feed(40);
    bench.reap_until(100);
    assert_eq!((bench.ends.get(), bench.ring.in_flight()), ((100, 0), 0));
    assert!(bench.ring.close(Duration::ZERO));
}

#[test]
fn completions_overflow() {
    let many = Size {
        in_flight: 1000,
        ..SMALL
    };
    let Some(bench) = Bench::new(many) else {
        return;
    };
    bench.feed(500);
    for _ in 0..500 {
        assert!(bench.push().is_ok());
    }
    assert!(bench.ring.flush());
    bench.reap_until(500);
    assert_eq!((bench.ends.get(), bench.ring.in_flight()), ((500, 0), 0));
}

#[test]
fn a_cancelled_operation_leaves_the_backlog_or_the_kernel() {
    let Some(bench) = Bench::new(SMALL) else {
        return;
    };
    let keys: Vec<_> = (0..500).filter_map(|_| bench.push().ok()).collect();
    assert_eq!(keys.len(), 500);
    bench.ring.flush();
    // Waiting operations leave without a completion. For the other operations, the kernel reports
    // that they were cancelled.
    keys.iter().rev().for_each(|key| bench.ring.cancel(*key));
    bench.ring.flush();
    bench.reap_until(16);
    while bench.ring.in_flight() > 0 {
        bench.ring.reap();
    }
    assert_eq!(bench.ends.get(), (0, 16));
    // A reused number names another operation.
    assert!(bench.push().is_ok());
    keys.iter().for_each(|key| bench.ring.cancel(*key));
    bench.feed(1);
    bench.ring.flush();
    bench.reap_until(17);
    assert_eq!(bench.ends.get(), (1, 16));
}

#[test]
fn closing_a_ring_cancels_everything() {
    let Some(bench) = Bench::with_reads() else {
        return;
    };
    assert!(bench.ring.close(Duration::from_secs(60)));
    assert_eq!(bench.ends.get(), (0, 100));
    assert!(bench.push().is_err());
}

#[test]
fn closing_a_ring_carries_out_writes() {
    let Some(bench) = Bench::new(SMALL) else {
        return;
    };
    for n in 0..100 {
        assert!(bench.push().is_ok());
        assert!(bench.push_one(true, &bench.writer).is_ok(), "write {n}");
    }
    // A read in flight takes a byte or is cancelled, and a waiting read does not begin. All writes
    // are done.
    assert!(bench.ring.close(Duration::from_secs(60)));
    let (done, failed) = bench.ends.get();
    assert_eq!(done + failed, 200);
    let mut left = [0; 200];
    let left = match rustix::io::ioctl_fionread(&bench.reader) {
        Ok(0) => 0,
        _ => rustix::io::read(&bench.reader, &mut left).expect("it can be read"),
    };
    assert_eq!(done, 100 + (100 - left), "of each write, a byte came");
    assert!(bench.push_one(true, &bench.writer).is_err());
}

#[test]
fn a_closing_ring_hands_over_the_next_operation_without_waiting() {
    let one = Size {
        in_flight: 1,
        ..SMALL
    };
    let Some(bench) = Bench::new(one) else {
        return;
    };
    for _ in 0..1000 {
        assert!(bench.push_one(true, &bench.writer).is_ok());
    }
    // Half of the limit is reserved for operations that are carried out.
    assert!(bench.ring.close(Duration::from_secs(20)));
    assert_eq!(bench.ends.get(), (1000, 0));
}
