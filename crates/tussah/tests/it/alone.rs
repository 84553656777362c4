//! Tests in a process of their own: for what belongs to the whole process, such as descriptors,
//! children and signals.

use std::env;
use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tussah::yield_now;

/// In the process that is started for it: the name of the test.
const NAME: &str = "TUSSAH_TEST_ALONE";

/// A test that takes longer hangs.
const HANGS: Duration = Duration::from_secs(60);

/// Runs `body` where nothing else runs: starts this binary again for the test of the given name,
/// which calls this, too.
#[track_caller]
pub fn alone(name: &str, body: impl FnOnce()) {
    if env::var_os(NAME).is_some_and(|alone| alone == *name) {
        return body();
    }
    let binary = env::current_exe().expect("it runs");
    let mut command = Command::new(binary);
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]);
    let output = command.env(NAME, name).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("1 passed"), "no test has that name: {text}");
}

/// How many descriptors are open.
pub fn descriptors() -> usize {
    let list = fs::read_dir("/proc/self/fd").expect("the system is Linux");
    list.count() - 1 // without that of the list
}

/// How many descriptors are open, for tests that count them on a runtime with one worker, whose
/// driver has its own.
pub async fn descriptors_at_rest() -> usize {
    let (reader, _writer) = tussah::pipe::pipe().expect("made");
    let wait = crate::cancel::cut(reader.read(&mut [0]), 1).await;
    assert!(wait.is_none(), "nobody writes");
    descriptors() - 2
}

/// Lets the process have no more descriptors than it has, and gives those that were still free.
pub fn exhaust() -> (Rlimit, Vec<File>) {
    let before = getrlimit(Resource::Nofile);
    let few = Rlimit {
        current: Some(descriptors() as u64 + 8),
        ..before
    };
    setrlimit(Resource::Nofile, few).expect("less is always allowed");
    let free = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    (before, free)
}

/// Yields until something is so.
#[track_caller]
pub fn until(what: &str, so: impl FnMut() -> bool) -> impl Future<Output = ()> {
    until_from(std::panic::Location::caller(), what, so)
}

async fn until_from(from: &std::panic::Location<'_>, what: &str, mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < HANGS, "{from}: never: {what}");
        yield_now().await;
    }
}
