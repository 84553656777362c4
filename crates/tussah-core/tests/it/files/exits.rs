//! Reads whose OS thread ends before the kernel has finished them.

use std::os::fd::AsFd;
use std::task::Waker;

use rustix::fs::{Advice, fadvise, fsync};

use super::help::{open, poll_in, ring};

/// Bytes that one read takes.
const BLOCK: usize = 64 * 1024;
const BLOCKS: usize = 512;

/// The pages come from the device when the OS thread for which the kernel would copy them is gone:
/// the result is `EFAULT`.
#[test]
fn pages_that_come_too_late_are_read_by_another() {
    let Some(runtime) = ring() else { return };
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let path = directory.path().join("file");
    std::fs::write(&path, vec![7; BLOCK * BLOCKS]).expect("there is room");
    let file = runtime.block_on(open(&path));
    for _ in 0..5 {
        fsync(file.as_fd()).expect("it is written");
        // None of it is in memory or read ahead.
        for advice in [Advice::DontNeed, Advice::Random] {
            fadvise(file.as_fd(), 0, None, advice).expect("it is taken");
        }
        let mut reads: Vec<_> = (0..BLOCKS)
            .map(|n| {
                let offset = (n * 131 % BLOCKS * BLOCK) as u64;
                Box::pin(file.read(Vec::with_capacity(BLOCK), offset, false))
            })
            .collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                reads.retain_mut(|read| !poll_in(&runtime, read.as_mut(), Waker::noop()));
            });
        });
        for read in reads {
            let (read, buffer) = runtime.block_on(read);
            assert_eq!(read.expect("it can be read"), buffer.len());
            assert!(buffer.iter().all(|byte| *byte == 7));
        }
    }
}
