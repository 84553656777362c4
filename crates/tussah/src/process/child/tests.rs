//! Tests of waiting where the system has no pidfds, or no room to report on them.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;

use futures_util::future::{Either, select};
use tussah_core::{Runtime, yield_now};

use super::super::{Command, Stdio};
use super::*;

async fn without_pidfd() -> (Child, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().expect("made");
    let mut command = Command::new("cat");
    let command = command.stdin(reader).stdout(Stdio::null());
    let mut child = command.spawn().await.expect("there is a cat");
    child.pidfd = None;
    (child, writer)
}

fn run<F: Future>(future: F) -> F::Output {
    let runtime = Runtime::builder().workers(2).build();
    runtime.expect("the workers start").block_on(future)
}

#[test]
fn the_pool_waits_where_there_is_no_pidfd() {
    run(async {
        let (mut child, mut writer) = without_pidfd().await;
        {
            let wait = Box::pin(child.wait_without_pidfd());
            let Either::Right(_) = select(wait, Box::pin(yield_now())).await else {
                panic!("it has not ended");
            };
        }
        assert!(child.waiting.is_some(), "it is waited for on");
        writer.write_all(b"x").expect("it reads");
        drop(writer);
        let status = child.wait_without_pidfd().await;
        assert!(status.expect("it is ours").success());

        let (mut child, _writer) = without_pidfd().await;
        child.signal(Signal::TERM).expect("it is ours");
        let status = child.wait_without_pidfd().await.expect("it is ours");
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
    });
}

#[test]
fn the_pool_waits_where_the_system_does_not_report_on_a_pidfd() {
    run(async {
        let (mut child, writer) = without_pidfd().await;
        // A descriptor that epoll refuses stands for one that it has no room for.
        let refused = std::fs::File::open("/dev/null").expect("there is one");
        child.pidfd = Some(Source::new_in(&child.handle, refused.into()));
        {
            let wait = Box::pin(child.wait());
            let Either::Right(_) = select(wait, Box::pin(yield_now())).await else {
                panic!("it has not ended");
            };
        }
        drop(writer);
        assert!(child.wait().await.expect("it is ours").success());
    });
}

#[test]
fn the_reaper_asks_where_there_is_no_pidfd() {
    run(async {
        let (child, writer) = without_pidfd().await;
        let (other, _) = without_pidfd().await;
        let pids = [child.id(), other.id()];
        drop(child);
        drop(other);
        drop(writer);
        for pid in pids {
            let pid = Pid::from_raw(pid as i32).expect("a number");
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            while waitid(WaitId::Pid(pid), options).err() != Some(rustix::io::Errno::CHILD) {
                yield_now().await;
            }
        }
    });
}
