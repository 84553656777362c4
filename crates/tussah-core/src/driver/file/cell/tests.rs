//! Tests of how an operation handles the kernel's errors.

use std::io;

use io_uring::{opcode, squeue};
use rustix::io::Errno;

use super::super::op;
use super::super::operation::{Operate, Operation, WhenDropped};
use super::super::ring::{Ring, Size};
use super::{Cell, Place, RETRIES_MAX};

/// An operation of two empty parts.
struct Nothing(u32);

// SAFETY: the entry contains no pointer.
unsafe impl Operation for Nothing {
    type Output = io::Result<u32>;
    const CODE: u8 = opcode::Nop::CODE;
    const WHEN_DROPPED: WhenDropped = WhenDropped::CarriedOut;

    fn entry(&mut self) -> squeue::Entry {
        opcode::Nop::new().build()
    }

    fn block(&mut self) -> Result<u32, Errno> {
        Ok(0)
    }

    fn goes_on(&mut self, done: u32) -> bool {
        self.0 += done;
        self.0 < 2
    }

    fn finish(self, result: io::Result<u32>) -> Self::Output {
        result.map(|_| self.0)
    }
}

/// Feeds results to an operation, which must end with the last result and not earlier.
fn check(results: impl IntoIterator<Item = Result<u32, i32>>, expected: Result<u32, i32>) {
    let size = Size {
        submissions: 64,
        completions: 64,
        in_flight: 64,
    };
    // The system may not have io_uring.
    let Ok(ring) = Ring::new(size) else { return };
    let cell = Cell::new(Nothing(0), None);
    let key = ring.push(cell.clone()).ok().expect("the ring is open");
    cell.state.lock().place = Place::Ring(ring, key);
    for result in results {
        let early = cell.state.lock().result.take();
        assert!(early.is_none(), "ended with {early:?} before {result:?}");
        let result = result.map_err(io::Error::from_raw_os_error);
        cell.clone().completed(result);
    }
    let ended = cell.state.lock().result.take().expect("it has ended");
    let ended = ended.map_err(|error| error.raw_os_error().unwrap_or(0));
    assert_eq!(ended, expected);
}

#[test]
#[cfg_attr(miri, ignore)]
fn an_operation_that_the_kernel_gives_up_is_retried_within_a_bound() {
    for errno in [
        libc::EINTR,
        libc::ECANCELED,
        libc::EFAULT,
        512,
        513,
        514,
        515,
        516,
    ] {
        check([Err(errno), Ok(2)], Ok(2));
        // Code outside of the runtime must never see the kernel's internal numbers.
        let said = if errno >= 512 { libc::EINTR } else { errno };
        let tries = 1 + usize::from(RETRIES_MAX);
        check(vec![Err(errno); tries], Err(said));
        // An operation that has made progress may be retried just as often again.
        let mut results = vec![Err(errno); tries - 1];
        results.push(Ok(1));
        results.extend(vec![Err(errno); tries]);
        check(results, Err(said));
    }
    for errno in [libc::EIO, libc::ENOSPC, 511, 517] {
        check([Err(errno)], Err(errno));
    }
}

#[test]
fn an_operation_that_may_have_been_done_is_not_retried() {
    fn check<O: Operation>(expected: [bool; 4]) {
        let the_kernels_own = Errno::from_raw_os_error(512);
        let errors = [Errno::CANCELED, Errno::INTR, Errno::FAULT, the_kernels_own];
        let name = std::any::type_name::<O>();
        assert_eq!(errors.map(O::is_retried), expected, "{name}");
    }
    check::<op::close::Close>([true, false, false, false]);
    check::<op::link::Link>([true, false, false, false]);
    check::<op::make_dir::MakeDir>([true, false, false, false]);
    check::<op::rename::Rename>([true, false, false, false]);
    check::<op::symlink::Symlink>([true, false, false, false]);
    check::<op::unlink::Unlink>([true, false, false, false]);
    check::<op::open::Open>([true, true, true, true]);
    check::<op::set_len::SetLen>([true, true, true, true]);
    check::<op::write::Write<Vec<u8>>>([true, true, true, true]);
}
