//! Buffers whose methods do more than return the memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tussah_core::file::{At, IoBuf, IoBufMut, OpenFile};

use super::help::{both, feed, open, pipe};

/// Calls a closure in each of its methods, with the method's name.
struct Calls<F> {
    bytes: Vec<u8>,
    call: F,
}

// SAFETY: the bytes are the vector's allocation, which is not accessed until the buffer is dropped.
unsafe impl<F: Fn(&str) + Send + Unpin + 'static> IoBuf for Calls<F> {
    fn bytes(&self) -> &[u8] {
        (self.call)("bytes");
        &self.bytes
    }
}

// SAFETY: as above; the room is the vector's length.
unsafe impl<F: Fn(&str) + Send + Unpin + 'static> IoBufMut for Calls<F> {
    fn start(&mut self) -> *mut u8 {
        (self.call)("start");
        self.bytes.as_mut_ptr()
    }

    fn capacity(&self) -> usize {
        (self.call)("capacity");
        self.bytes.len()
    }

    unsafe fn set_filled(&mut self, _len: usize) {
        (self.call)("set_filled");
    }
}

fn buffer<F: Fn(&str)>(call: F) -> Calls<F> {
    let bytes = vec![7; 16];
    Calls { bytes, call }
}

#[test]
fn a_method_that_panics_harms_no_other() {
    both(|runtime| {
        let (reader, writer) = pipe();
        let panics = |name: &'static str| {
            let call = move |called: &str| assert_ne!(called, name, "as the test wants it");
            let read = reader.read(buffer(call), 0, false);
            let panicked = catch_unwind(AssertUnwindSafe(|| runtime.block_on(read).0));
            assert!(panicked.is_err(), "{name}");
        };
        panics("start");
        panics("capacity");
        feed(&writer, b"lost");
        // The read was done, so its caller sees the buffer's panic.
        panics("set_filled");
        let write = writer.write(buffer(|_| panic!("as the test wants it")), At::End, true);
        let panicked = catch_unwind(AssertUnwindSafe(|| runtime.block_on(write).0));
        assert!(panicked.is_err());
        runtime.block_on(async {
            let written = writer.write(b"next", At::End, true).await.0;
            assert_eq!(written.expect("it is written"), 4);
            let (read, bytes) = reader.read(vec![0; 16], 0, false).await;
            assert_eq!((read.expect("it is read"), &bytes[..]), (4, &b"next"[..]));
        });
    });
}

#[test]
fn a_method_may_use_the_same_file() {
    both(|runtime| {
        let directory = tempfile::tempdir().expect("a directory");
        let file = runtime.block_on(open(&directory.path().join("file")));
        let calls = Arc::new(AtomicUsize::new(0));
        let write = |file: &OpenFile, calls: &Arc<AtomicUsize>| {
            let (file, calls) = (file.clone(), calls.clone());
            let handle = runtime.handle().clone();
            move |_: &str| {
                calls.fetch_add(1, Ordering::SeqCst);
                let also = file.clone();
                let write = async move { also.write(vec![1; 4], At::End, true).await.0 };
                drop(handle.spawn(write));
                let metadata = handle.block_on(file.metadata());
                metadata.expect("it is there");
            }
        };
        let call = write(&file, &calls);
        runtime.block_on(async {
            let written = file.write(buffer(call), At::Offset(0), true).await.0;
            assert_eq!(written.expect("it is written"), 16);
            let read = file.read(buffer(write(&file, &calls)), 0, true).await.0;
            assert_eq!(read.expect("it is read"), 16);
        });
        // In order: the bytes; the beginning, the length, and the filled part of the room.
        assert_eq!(calls.load(Ordering::SeqCst), 1 + 3);
    });
}
