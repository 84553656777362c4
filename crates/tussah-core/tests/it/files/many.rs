//! More operations at once than a ring holds.

use std::task::Waker;

use tussah_core::file::{self, At, OpenHow};

use super::help::{both, feed, open, pipe, poll_in, ring};

#[test]
fn ten_thousand_reads_wait_at_once() {
    const READS: usize = 10_000;
    both(|runtime| {
        let (reader, writer) = pipe();
        let threads: Vec<_> = (0..READS)
            .map(|_| {
                let reader = reader.clone();
                runtime.spawn(async move { reader.read(vec![0u8; 1], 0, false).await.0 })
            })
            .collect();
        // One of them is dropped before its turn, and takes nothing.
        let mut dropped = Box::pin(reader.read(vec![0u8; 1], 0, false));
        assert!(!poll_in(runtime, dropped.as_mut(), Waker::noop()));
        drop(dropped);
        feed(&writer, &vec![7; READS + 100]);
        runtime.block_on(async {
            for thread in threads {
                let read = thread.await.expect("no panic");
                assert_eq!(read.expect("it is read"), 1);
            }
        });
    });
}

/// Operations that wait for another party take no place from those that do not.
#[test]
fn operations_that_do_not_end_leave_room_for_others() {
    const READS: usize = 5_000;
    const OPENS: usize = 50;
    let Some(runtime) = ring() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let fifo = directory.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).expect("a FIFO");
    let (reader, _writer) = pipe();
    let mut reads: Vec<_> = (0..READS)
        .map(|_| Box::pin(reader.read(vec![0u8; 1], 0, false)))
        .collect();
    for read in &mut reads {
        assert!(!poll_in(&runtime, read.as_mut(), Waker::noop()));
    }
    let how = OpenHow {
        read: true,
        ..OpenHow::default()
    };
    let mut opens: Vec<_> = (0..OPENS)
        .map(|_| Box::pin(file::open(&fifo, &how)))
        .collect();
    for open in &mut opens {
        assert!(!poll_in(&runtime, open.as_mut(), Waker::noop()));
    }
    let path = directory.path().join("file");
    let file = runtime.block_on(open(&path));
    let written = runtime.block_on(file.write(b"there", At::End, true)).0;
    assert_eq!(written.expect("it is written"), 5);
    runtime.block_on(file.sync(false)).expect("it is synced");
}
