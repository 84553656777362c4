//! Helpers for the tests of files.

use std::future::Future;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::task::{Context, Poll, Wake, Waker};

use tussah_core::file::{IoBuf, IoBufMut, OpenFile, OpenHow};
use tussah_core::{FileDriver, PoolPolicy, Runtime};

/// Reports what is not tested here, past the harness, which shows a test's output only if it fails.
pub(super) fn not_tested(why: &str) {
    let _ = writeln!(std::io::stderr(), "NOT TESTED HERE: {why}");
}

/// Runs a test in both forms; in the ring's form only if the kernel has it.
pub(super) fn both(test: impl Fn(&Runtime)) {
    for driver in [FileDriver::Auto, FileDriver::Pool] {
        let runtime = Runtime::builder().workers(2).files(driver).build();
        test(&runtime.expect("the workers start"));
    }
}

/// Creates a runtime whose files use io_uring, if the kernel has it.
pub(super) fn ring() -> Option<Runtime> {
    let runtime = Runtime::builder().workers(2).build();
    let runtime = runtime.expect("the workers start");
    static SAID: Once = Once::new();
    let report = runtime.driver();
    if !report.files_by_io_uring() {
        SAID.call_once(|| not_tested(&format!("files by io_uring ({report})")));
        return None;
    }
    Some(runtime)
}

/// Creates a runtime whose files use a pool of `threads_max` OS threads.
pub(super) fn pool(threads_max: usize) -> Runtime {
    let policy = PoolPolicy {
        threads_max,
        ..PoolPolicy::default()
    };
    let builder = Runtime::builder().workers(1).blocking(policy);
    let runtime = builder.files(FileDriver::Pool).build();
    runtime.expect("the worker starts")
}

/// Returns the options to open a file for reading and writing.
pub(super) fn read_write() -> OpenHow {
    OpenHow {
        read: true,
        write: true,
        create: true,
        ..OpenHow::default()
    }
}

pub(super) async fn open(path: &Path) -> OpenFile {
    let file = tussah_core::file::open(path, &read_write()).await;
    file.expect("it can be opened")
}

/// Returns both ends of a pipe: one to read, one to write.
pub(super) fn pipe() -> (OpenFile, OpenFile) {
    let (reader, writer) = std::io::pipe().expect("there are descriptors left");
    (
        OpenFile::from(std::os::fd::OwnedFd::from(reader)),
        OpenFile::from(std::os::fd::OwnedFd::from(writer)),
    )
}

/// Writes without the runtime.
pub(super) fn feed(file: &OpenFile, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(file.as_fd(), rest).expect("it can be written");
        rest = &rest[written..];
    }
}

/// Reads without the runtime.
pub(super) fn drain(file: &OpenFile, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut done = 0;
    while done < len {
        done += rustix::io::read(file.as_fd(), &mut bytes[done..]).expect("it can be read");
    }
    bytes
}

/// Returns the descriptors of this process that lead into a directory.
pub(super) fn descriptors_in(directory: &Path) -> Vec<PathBuf> {
    let own = std::fs::read_dir("/proc/self/fd").expect("Linux has it");
    own.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|path| path.starts_with(directory))
        .collect()
}

/// A buffer that counts the drops of its kind.
pub(super) struct Counted {
    pub(super) bytes: Vec<u8>,
    drops: Arc<AtomicUsize>,
}

impl Counted {
    pub(super) fn new(bytes: Vec<u8>, drops: &Arc<AtomicUsize>) -> Self {
        let drops = drops.clone();
        Self { bytes, drops }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // The allocator's users, or a sanitizer, would detect a later write.
        self.bytes.fill(0xEE);
        self.drops.fetch_add(1, Ordering::SeqCst);
    }
}

// SAFETY: the bytes are the vector's allocation, which is not accessed until the buffer is dropped.
unsafe impl IoBuf for Counted {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

// SAFETY: as above; the room is the vector's length.
unsafe impl IoBufMut for Counted {
    fn start(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    fn capacity(&self) -> usize {
        self.bytes.len()
    }

    unsafe fn set_filled(&mut self, _len: usize) {}
}

/// Waits for a state that comes by itself. Fails by never ending, or after very many turns.
pub(super) fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..200_000 {
        if is() {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_micros(50));
    }
    panic!("{what} did not happen");
}

/// A waker that counts its calls.
struct Count(std::thread::Thread, AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

/// Polls a future this many times, each time after it was woken, then drops it. Returns true if it
/// was ready before.
pub(super) fn poll_times<F: Future>(runtime: &Runtime, future: F, times: usize) -> bool {
    let mut future = pin!(future);
    let count = Arc::new(Count(std::thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(count.clone());
    for time in 0..times {
        let before = count.1.load(Ordering::SeqCst);
        if poll_in(runtime, future.as_mut(), &waker) {
            return true;
        }
        if time + 1 < times {
            eventually("a wake", || count.1.load(Ordering::SeqCst) > before);
        }
    }
    false
}

/// Polls once, in the runtime. Returns true if the future is ready.
pub(super) fn poll_in<F: Future>(
    runtime: &Runtime,
    mut future: Pin<&mut F>,
    waker: &Waker,
) -> bool {
    runtime.block_on(std::future::poll_fn(|_| {
        let mut context = Context::from_waker(waker);
        Poll::Ready(future.as_mut().poll(&mut context).is_ready())
    }))
}
