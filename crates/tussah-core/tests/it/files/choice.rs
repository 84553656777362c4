//! The behavior of a runtime that is refused io_uring. Each test runs itself once more, in a
//! process of its own.

use std::io;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;
use tussah_core::FileDriver;
use tussah_core::file::OpenFile;
use tussah_core::{Builder, Runtime};

use super::help::{eventually, open, read_write};

/// The name of the test that a process is to run.
const ALONE: &str = "TUSSAH_TEST_ALONE";

/// Runs a test in a process of its own, with an additional environment variable.
fn alone(test: &str, variable: Option<(&str, &str)>, run: impl FnOnce()) {
    if std::env::var(ALONE).is_ok_and(|alone| alone == test) {
        return run();
    }
    let own = std::env::current_exe().expect("Linux tells");
    let mut command = Command::new(own);
    let name = format!("files::choice::{test}");
    command.args([&name, "--exact", "--nocapture"]);
    command.env(ALONE, test).env_remove("TUSSAH_FILES");
    if let Some((name, value)) = variable {
        command.env(name, value);
    }
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("1 passed"), "{text}");
}

/// Makes a system call fail with `EPERM` from now on, in this OS thread and those that it starts.
pub(super) fn refuse(call: i64) {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let mut steps = [
        // The number of the call is the first word that a filter sees.
        step(LOAD, 0, 0),
        libc::sock_filter {
            code: EQUAL,
            jt: 0,
            jf: 1,
            k: call as u32,
        },
        step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the program and its steps are valid for the calls, which copy them.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let filter = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, filter, &program), 0);
    }
}

fn limit(resource: libc::__rlimit_resource_t, to: u64) {
    let limit = libc::rlimit {
        rlim_cur: to,
        rlim_max: to,
    };
    // SAFETY: the limit is valid for the call.
    assert_eq!(unsafe { libc::setrlimit(resource, &limit) }, 0);
}

/// Collects log messages.
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Log;

    fn make_writer(&self) -> Log {
        Log(self.0.clone())
    }
}

fn builder() -> Builder {
    Runtime::builder().workers(1)
}

/// Writes a file and reads it again.
fn files_work(runtime: &Runtime) {
    let directory = tempfile::tempdir().expect("a directory");
    runtime.block_on(async {
        let file = open(&directory.path().join("file")).await;
        round_trip(&file).await;
    });
}

async fn round_trip(file: &OpenFile) {
    use tussah_core::file::At;
    let (written, _) = file.write("content", At::Offset(0), true).await;
    assert_eq!(written.expect("written"), 7);
    let (read, buffer) = file.read(vec![0; 16], 0, false).await;
    assert_eq!((read.expect("read"), &buffer[..]), (7, &b"content"[..]));
}

#[test]
fn a_filter_that_refuses_rings() {
    alone("a_filter_that_refuses_rings", None, || {
        refuse(libc::SYS_io_uring_setup);
        let runtime = builder().build().expect("it does without");
        assert_eq!(
            runtime.driver().to_string(),
            "sockets: epoll; files: blocking pool (io_uring refused: io_uring_setup: Operation not permitted (os error 1))"
        );
        assert!(!runtime.driver().files_by_io_uring());
        files_work(&runtime);
        let forced = builder().files(FileDriver::IoUring).build();
        let error = forced.expect_err("it is refused");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(
            error.to_string(),
            "io_uring was asked for, and refused: io_uring_setup: Operation not permitted (os error 1)"
        );
    });
}

#[test]
fn a_filter_that_refuses_to_enter_rings() {
    alone("a_filter_that_refuses_to_enter_rings", None, || {
        refuse(libc::SYS_io_uring_enter);
        let runtime = builder().build().expect("it does without");
        assert!(!runtime.driver().files_by_io_uring());
        files_work(&runtime);
    });
}

#[test]
fn no_memory_may_be_locked() {
    alone("no_memory_may_be_locked", None, || {
        limit(libc::RLIMIT_MEMLOCK, 0);
        let runtime = builder().build().expect("it does with or without");
        files_work(&runtime);
    });
}

#[test]
fn a_worker_that_gets_no_ring_has_the_pool() {
    alone("a_worker_that_gets_no_ring_has_the_pool", None, || {
        let runtime = builder().build().expect("the worker starts");
        let directory = tempfile::tempdir().expect("a directory");
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(directory.path().join("file"))
            .expect("open");
        limit(libc::RLIMIT_NOFILE, 64);
        let mut all = Vec::new();
        while let Ok(one) = file.as_fd().try_clone_to_owned() {
            all.push(one);
        }
        let file = OpenFile::from(std::os::fd::OwnedFd::from(file));
        runtime.block_on(round_trip(&file));
        // The write. The written bytes are in memory when they are read.
        eventually("a job", || runtime.blocking().stats().completed == 1);
        // Operations that need a descriptor fail with its error.
        let path = directory.path().join("other");
        let opened = runtime.block_on(tussah_core::file::open(&path, &read_write()));
        let error = opened.expect_err("there are none left");
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
    });
}

#[test]
fn the_environment_chooses() {
    let pool = Some(("TUSSAH_FILES", "pool"));
    alone("the_environment_chooses", pool, || {
        let runtime = builder().build().expect("the worker starts");
        assert_eq!(
            runtime.driver().to_string(),
            "sockets: epoll; files: blocking pool"
        );
        files_work(&runtime);
    });
}

#[test]
fn the_choice_is_logged() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let subscriber = tracing_subscriber::fmt().with_ansi(false);
    let subscriber = subscriber.with_writer(Log(log.clone())).finish();
    tracing::subscriber::with_default(subscriber, || {
        let pool = builder().name("logged").files(FileDriver::Pool).build();
        pool.expect("the worker starts");
    });
    let log = String::from_utf8(log.lock().expect("no panic").clone()).expect("text");
    let expected = "INFO tussah: runtime started name=logged workers=1 driver=sockets: epoll; files: blocking pool\n";
    assert!(log.ends_with(expected), "{log}");
}

#[test]
fn the_environment_is_wrong() {
    let wrong = Some(("TUSSAH_FILES", "iouring"));
    alone("the_environment_is_wrong", wrong, || {
        let error = builder().build().expect_err("there is no such");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(
            error.to_string(),
            "TUSSAH_FILES: expected \"io_uring\" or \"pool\", got \"iouring\""
        );
        // With an explicit choice the variable is not read.
        let pool = builder().files(FileDriver::Pool).build();
        files_work(&pool.expect("the worker starts"));
    });
}
