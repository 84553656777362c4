//! Child processes.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;

use rustix::process::{Resource, Rlimit, WaitId, WaitIdOptions, getrlimit, setrlimit, waitid};
use tussah::process::{Child, Command, Stdio};
use tussah::signal::Signal;
use tussah::{OpError, spawn};

use crate::alone::{alone, descriptors, descriptors_at_rest, exhaust, until};
use crate::cancel::{cut, cuts};
use crate::{run, run_on_one, runtime};

fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// A child that ends when its input does.
async fn cat() -> Child {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().await.expect("there is a cat")
}

/// Returns whether this process has any child, alive or not.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    waitid(WaitId::All, options).err() != Some(rustix::io::Errno::CHILD)
}

/// Returns whether the reaper's OS thread is there.
fn has_reaper() -> bool {
    let threads = fs::read_dir("/proc/self/task").expect("the system is Linux");
    threads.flatten().any(|thread| {
        let name = fs::read_to_string(thread.path().join("comm"));
        name.is_ok_and(|name| name.trim() == "tussah-reaper")
    })
}

#[test]
fn the_status_says_how_it_ended() {
    run(async {
        for code in [0, 1, 42, 255] {
            let status = sh(&format!("exit {code}")).status().await.expect("it runs");
            assert_eq!((status.code(), status.signal()), (Some(code), None));
        }
        let status = sh("kill -USR1 $$").status().await.expect("it runs");
        let expected = Signal::USR1.as_raw();
        assert_eq!((status.code(), status.signal()), (None, Some(expected)));
    });
}

#[test]
fn output_is_larger_than_the_pipes() {
    run(async {
        let script = "head -c 1000000 /dev/zero; head -c 700000 /dev/zero >&2; exit 3";
        let output = sh(script).output().await.expect("it runs");
        assert_eq!(output.stdout.len(), 1_000_000);
        assert_eq!(output.stderr.len(), 700_000);
        assert_eq!(output.status.code(), Some(3));
    });
}

#[test]
fn input_and_output_at_the_same_time() {
    run(async {
        let mut child = cat().await;
        let stdin = child.stdin.take().expect("it is piped");
        let write = spawn(async move { stdin.write_all(&[7; 1_000_000]).await });
        let output = child.wait_with_output().await.expect("it runs");
        assert!(output.stdout == [7; 1_000_000]);
        write.await.expect("no panic").expect("it reads");
    });
}

#[test]
fn output_beyond_the_limit_is_an_error() {
    run(async {
        let mut command = sh("echo 1234567");
        let output = command.output_max(8).output().await.expect("it fits");
        assert_eq!(output.stdout, b"1234567\n");
        let error = command.output_max(7).output().await.expect_err("too much");
        assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
        assert_eq!(
            error.to_string(),
            "read the child's output: expected 7 bytes at most"
        );
    });
}

#[test]
fn a_command_describes_all_of_it() {
    run(async {
        let mut command = sh("echo $0 $A $B $C $HOME; pwd; cat");
        let file = fs::File::open("/dev/null").expect("it is there");
        command.env("A", "1").env_clear().env("B", "2");
        command.envs([("C", "3"), ("D", "4")]).env_remove("D");
        command
            .current_dir("/")
            .stdin(file)
            .stderr(Stdio::inherit());
        let output = command.output().await.expect("it runs");
        assert_eq!(output.stdout, b"sh 2 3\n/\n");
        let mut renamed = Command::new("sh");
        renamed.arg0("other").arg("-c").arg("cat /proc/$$/cmdline");
        let output = renamed.output().await.expect("it runs");
        assert!(output.stdout.starts_with(b"other\0"));
        let mut group = sh("cut -d' ' -f5 /proc/$$/stat; echo $$");
        let output = group.process_group(0).output().await.expect("it runs");
        let text = String::from_utf8(output.stdout).expect("numbers");
        let mut lines = text.lines();
        assert_eq!(lines.next(), lines.next(), "it leads its own group");
    });
}

#[test]
fn the_end_of_a_pipe_becomes_anothers_input() {
    run(async {
        let mut echo = Command::new("echo");
        let mut echo = echo
            .arg("hello")
            .stdout(Stdio::piped())
            .spawn()
            .await
            .expect("runs");
        let stdout = echo.stdout.take().expect("it is piped");
        let mut upper = Command::new("tr");
        upper.args(["a-z", "A-Z"]);
        upper.stdin(Stdio::try_from(stdout).expect("it is open"));
        assert_eq!(upper.output().await.expect("it runs").stdout, b"HELLO\n");
        // The command still has it, at its end.
        assert_eq!(upper.output().await.expect("it runs").stdout, b"");
        assert!(echo.wait().await.expect("it runs").success());
    });
}

#[test]
fn killing_and_signals() {
    run(async {
        let mut child = cat().await;
        assert!(child.try_wait().expect("it is ours").is_none());
        assert_eq!(child.kill().await.expect("it is ours").signal(), Some(9));
        child.start_kill().expect("nothing happens any more");
        let error = child.signal(Signal::TERM).expect_err("it has ended");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(
            error.to_string(),
            "send a signal to cat: the child has ended"
        );

        let mut child = sh("trap 'exit 5' TERM; echo; while :; do read x; done");
        let mut child = child
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .await
            .expect("sh");
        let stdin = child.stdin.take();
        let stdout = child.stdout.as_ref().expect("it is piped");
        stdout.read_exact(&mut [0]).await.expect("the trap is set");
        child.signal(Signal::TERM).expect("it is ours");
        drop(stdin);
        assert_eq!(child.wait().await.expect("it is ours").code(), Some(5));
    });
}

#[test]
fn a_dropped_child_goes_on_without_kill_on_drop() {
    run(async {
        let mut child = cat().await;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (stdin, stdout) = (stdin.expect("piped"), stdout.expect("piped"));
        drop(child);
        stdin.write_all(b"x").await.expect("it reads");
        stdout.read_exact(&mut [0]).await.expect("it writes");
        drop(stdin);
        assert_eq!(stdout.read(&mut [0]).await.expect("the end"), 0);

        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().await.expect("a cat");
        let stdout = child.stdout.take().expect("piped");
        let _stdin = child.stdin.take();
        drop(child);
        assert_eq!(stdout.read(&mut [0]).await.expect("the end"), 0);
    });
}

#[test]
fn no_zombie_is_left_of_dropped_children() {
    alone("process::no_zombie_is_left_of_dropped_children", || {
        run_on_one(async {
            let before = descriptors_at_rest().await;
            let mut inputs = Vec::new();
            for n in 0..60 {
                drop(Command::new("true").spawn().await.expect("it is there"));
                let mut child = cat().await;
                inputs.extend(child.stdin.take());
                drop(child);
                if n % 20 == 0 {
                    inputs.clear();
                }
            }
            assert!(has_children());
            until("the reaper begins", has_reaper).await;
            inputs.clear();
            until("all are reaped", || !has_children()).await;
            until("the reaper ends", || !has_reaper()).await;
            until("all is closed", || descriptors() == before).await;
            let mut child = cat().await;
            let stdin = child.stdin.take();
            drop(child);
            until("it begins again", has_reaper).await;
            drop(stdin);
            until("the last one is reaped", || !has_children()).await;
        });
    });
}

#[test]
fn children_outlive_the_runtime_and_are_reaped() {
    alone(
        "process::children_outlive_the_runtime_and_are_reaped",
        || {
            let (reader, writer) = io::pipe().expect("made");
            run(async move {
                let mut command = Command::new("cat");
                command.stdin(reader);
                let child = command.spawn().await.expect("a cat");
                drop(spawn(async move {
                    let _child = child;
                    std::future::pending::<()>().await;
                }));
            });
            assert!(has_children());
            drop(writer);
            futures_lite::future::block_on(until("it is reaped", || !has_children()));
        },
    );
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    run(async {
        let error = Command::new("no-such-program").spawn().await;
        let error = error.expect_err("there is none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(
            error.to_string().starts_with("spawn no-such-program: "),
            "{error}"
        );
        let mut command = Command::new("true");
        let error = command.current_dir("/no/such").status().await;
        let error = error.expect_err("there is none");
        let error = OpError::of(&error).expect("it is ours");
        assert_eq!(error.object(), "true in /no/such");
        let error = Command::new("a\0b")
            .output()
            .await
            .expect_err("it is no name");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    });
}

#[test]
fn a_child_that_somebody_else_waited_for_is_an_error() {
    run(async {
        let mut child = Command::new("true").spawn().await.expect("it is there");
        let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a number");
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).expect("it is our child");
        let error = child.wait().await.expect_err("it is gone");
        assert_eq!(
            error.to_string(),
            "wait for true: No child processes (os error 10)"
        );
    });
}

#[test]
fn no_zombie_is_left_where_there_are_no_descriptors() {
    alone(
        "process::no_zombie_is_left_where_there_are_no_descriptors",
        || {
            run_on_one(async {
                let mut command = Command::new("cat");
                command.stdin(Stdio::piped()).kill_on_drop(true);
                let child = command.spawn().await.expect("there is a cat");
                let (_, filled) = exhaust();
                drop(child);
                until("it is reaped", || !has_children()).await;
                drop(filled);
                until("the reaper ends", || !has_reaper()).await;
            });
        },
    );
}

/// How much memory this process has mapped.
fn memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the system is Linux");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib = size.and_then(|size| size.trim().strip_suffix(" kB"));
    1024 * kib.map_or(0, |kib| kib.parse::<u64>().expect("a number"))
}

#[test]
fn no_zombie_is_left_where_no_os_thread_can_be_started() {
    alone(
        "process::no_zombie_is_left_where_no_os_thread_can_be_started",
        || {
            run_on_one(async {
                let (first, second) = (cat().await, cat().await);
                // There is room for something, but not for a stack.
                let before = getrlimit(Resource::As);
                let few = Rlimit {
                    current: Some(memory_bytes() + (1 << 20)),
                    ..before
                };
                setrlimit(Resource::As, few).expect("less is always allowed");
                // Its input is closed after that.
                drop(first);
                assert!(!has_reaper(), "there was room");
                setrlimit(Resource::As, before).expect("as much as before");
                drop(second);
                until("they are reaped", || !has_children()).await;
                until("the reaper ends", || !has_reaper()).await;
            });
        },
    );
}

/// Starts a child with 0, 1, 2, … descriptors that are free, until it works in full.
#[test]
fn too_few_descriptors_are_an_error_and_leak_nothing() {
    alone(
        "process::too_few_descriptors_are_an_error_and_leak_nothing",
        || {
            run_on_one(async {
                let mut first = cat().await; // all drivers are there then
                drop(first.stdin.take());
                first.wait().await.expect("it is ours");
                drop(first);
                let before = descriptors_at_rest().await;
                let limit = Rlimit {
                    current: Some(before as u64 + 30),
                    maximum: Some(before as u64 + 30),
                };
                setrlimit(Resource::Nofile, limit).expect("less is permitted");
                let (mut refused, mut done) = (0, 0);
                for free in 0..20 {
                    let null = || OwnedFd::from(fs::File::open("/dev/null").expect("it is there"));
                    let mut filled: Vec<_> = std::iter::repeat_with(|| fs::File::open("/dev/null"))
                        .map_while(Result::ok)
                        .collect();
                    filled.truncate(filled.len() - free);
                    let mut command = Command::new("cat");
                    command.stdin(Stdio::piped()).stdout(Stdio::piped());
                    match command.stderr(Stdio::piped()).spawn().await {
                        Ok(mut child) => {
                            done += 1;
                            assert!(child.wait().await.expect("it is ours").success());
                        }
                        Err(error) => {
                            refused += 1;
                            let error = OpError::of(&error).expect("the system's");
                            assert_eq!((error.object(), error.raw_os_error()), ("cat", Some(24)));
                        }
                    }
                    drop(filled);
                    drop(null());
                    assert_eq!(descriptors(), before, "with {free} free");
                    assert!(!has_children(), "with {free} free");
                }
                assert!(refused >= 6 && done >= 6, "{refused} refused, {done} done");
            });
        },
    );
}

#[test]
fn two_runtimes_and_none() {
    let (one, other) = (runtime(1), runtime(1));
    let mut child = one.block_on(cat());
    let stdin = child.stdin.take().expect("it is piped");
    other
        .block_on(async { stdin.write_all(b"x").await })
        .expect("it reads");
    let stdout = child.stdout.take().expect("it is piped");
    let mut byte = [0];
    let read = stdout.read(&mut byte);
    assert_eq!(futures_lite::future::block_on(read).expect("it writes"), 1);
    drop(stdin);
    let status = futures_lite::future::block_on(child.wait());
    assert!(status.expect("it is ours").success());
}

/// For the scenarios of cancelled operations: descriptors and children are as before.
async fn all_is_gone(before: usize) {
    until("all children are reaped", || !has_children()).await;
    until("all is closed", || descriptors() == before).await;
}

#[test]
fn cancelled_starts_leave_nothing() {
    alone("process::cancelled_starts_leave_nothing", || {
        run_on_one(async {
            drop(sh("echo").output().await.expect("it runs"));
            until("the reaper ends", || !has_reaper()).await;
            let before = descriptors_at_rest().await;
            for polls in cuts() {
                let ended = cut(Command::new("true").spawn(), polls).await.is_some();
                assert!(sh("exit 0").status().await.expect("it runs").success());
                all_is_gone(before).await;
                if ended {
                    break;
                }
            }
            for polls in cuts() {
                let ended = cut(sh("exit 4").status(), polls).await.is_some();
                let status = sh("exit 4").status().await.expect("it runs");
                assert_eq!(status.code(), Some(4));
                all_is_gone(before).await;
                if ended {
                    break;
                }
            }
            for polls in cuts() {
                let many = sh("head -c 200000 /dev/zero; echo >&2");
                let ended = cut(many.output(), polls).await.is_some();
                let output = many.output().await.expect("it runs");
                assert_eq!((output.stdout.len(), output.stderr.len()), (200_000, 1));
                all_is_gone(before).await;
                if ended {
                    break;
                }
            }
        });
    });
}

#[test]
fn cancelled_starts_with_kill_on_drop_are_killed() {
    alone(
        "process::cancelled_starts_with_kill_on_drop_are_killed",
        || {
            run(async {
                for polls in cuts() {
                    let (reader, writer) = tussah::pipe::pipe().expect("made");
                    let mut endless = Command::new("sleep");
                    endless.arg("1000").kill_on_drop(true);
                    endless.stdout(Stdio::try_from(writer).expect("open"));
                    let ended = cut(endless.spawn(), polls).await.is_some();
                    drop(endless);
                    let end = reader.read(&mut [0]).await;
                    assert_eq!(end.expect("nobody has the other end"), 0);
                    until("it is reaped", || !has_children()).await;
                    if ended {
                        break;
                    }
                }
            });
        },
    );
}

#[test]
fn a_cancelled_wait_loses_nothing() {
    alone("process::a_cancelled_wait_loses_nothing", || {
        run_on_one(async {
            drop(sh("echo").output().await.expect("it runs"));
            let before = descriptors_at_rest().await;
            for kill in [false, true] {
                for polls in cuts() {
                    let mut child = cat().await;
                    let mut stdin = child.stdin.take();
                    let cut_off = if kill {
                        cut(child.kill(), polls).await
                    } else {
                        let stdin = stdin.take();
                        let close = spawn(async move { drop(stdin) });
                        let cut_off = cut(child.wait(), polls).await;
                        close.await.expect("no panic");
                        cut_off
                    };
                    let ended = cut_off.is_some();
                    if kill {
                        child.start_kill().expect("it is ours");
                    }
                    let status = child.wait().await.expect("it is ours");
                    // Open until here, so that the child does not end by itself.
                    drop(stdin);
                    assert_eq!(status.signal(), kill.then_some(9));
                    drop(child);
                    all_is_gone(before).await;
                    if ended {
                        break;
                    }
                }
            }
        });
    });
}
