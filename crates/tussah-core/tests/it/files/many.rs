//! More operations at once than a ring takes.

use std::task::Waker;

use super::help::{both, feed, pipe, poll_in};

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
