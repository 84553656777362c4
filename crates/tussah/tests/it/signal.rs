//! Signals.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::Command;

use futures_lite::StreamExt;
use rustix::process::{getpid, kill_process};
use tussah::signal::{Signal, Signals, ctrl_c, signal};
use tussah::{OpError, spawn};

use crate::alone::{alone, descriptors, descriptors_at_rest};
use crate::cancel::{cut, cuts};
use crate::{run, run_on_one, runtime};

/// Has this process get a signal. It may be delivered after this returns, but only if another OS
/// thread takes it.
fn raise(signal: Signal) {
    let number = rustix::process::Signal::from_named_raw(signal.as_raw());
    kill_process(getpid(), number.expect("it has a name")).expect("it is our own");
}

#[test]
fn each_stream_gets_each_signal() {
    alone("signal::each_stream_gets_each_signal", || {
        let (one, other) = (runtime(1), runtime(2));
        let listen = || signal(Signal::USR1).expect("it can be listened for");
        let streams = [
            one.block_on(async { listen() }),
            other.block_on(async { listen() }),
            other.block_on(async { listen() }),
        ];
        for _ in 0..100 {
            raise(Signal::USR1);
            for stream in &streams {
                one.block_on(stream.recv()).expect("received");
            }
        }
        let [first, second, third] = streams;
        drop(first);
        drop(one);
        raise(Signal::USR1);
        other.block_on(second.recv()).expect("received");
        other.block_on(third.recv()).expect("received");
    });
}

#[test]
fn signals_between_two_receives_are_not_lost() {
    alone("signal::signals_between_two_receives_are_not_lost", || {
        run(async {
            let stream = signal(Signal::WINCH).expect("it can be listened for");
            for count in 1..=50 {
                for _ in 0..count {
                    raise(Signal::WINCH);
                }
                stream.recv().await.expect("received");
            }
        });
    });
}

#[test]
fn signals_do_not_mix() {
    alone("signal::signals_do_not_mix", || {
        run(async {
            let one = signal(Signal::USR1).expect("it can be listened for");
            let two = signal(Signal::USR2).expect("it can be listened for");
            assert_eq!((one.signal(), two.signal()), (Signal::USR1, Signal::USR2));
            raise(Signal::USR2);
            two.recv().await.expect("received");
            assert!(cut(one.recv(), 1).await.is_none());
            let mut one = pin!(one);
            raise(Signal::USR1);
            one.next().await.expect("no end").expect("received");
            assert!(cut(two.recv(), 1).await.is_none());
        });
    });
}

#[test]
fn nothing_is_left_of_a_dropped_stream() {
    alone("signal::nothing_is_left_of_a_dropped_stream", || {
        run_on_one(async {
            let keep = signal(Signal::USR1).expect("it can be listened for");
            raise(Signal::USR1);
            keep.recv().await.expect("received");
            let before = descriptors_at_rest().await;
            for _ in 0..100 {
                drop(signal(Signal::USR1).expect("it can be listened for"));
                drop(spawn(async {
                    cut(ctrl_c(), 1).await.is_none().then_some(())
                }));
            }
            let all = spawn(async { cut(ctrl_c(), 1).await.is_none() });
            assert!(all.await.expect("no panic"));
            crate::alone::until("all are closed", || descriptors() == before).await;
            raise(Signal::INT); // does nothing any more, not even end the process
            raise(Signal::USR1);
            keep.recv().await.expect("received");
        });
    });
}

#[test]
fn a_cancelled_receive_has_received_nothing() {
    alone("signal::a_cancelled_receive_has_received_nothing", || {
        run(async {
            let stream = signal(Signal::USR2).expect("it can be listened for");
            for polls in cuts() {
                let raise = spawn(async { raise(Signal::USR2) });
                let cut_off = cut(stream.recv(), polls).await;
                let ended = cut_off.is_some();
                match cut_off {
                    Some(result) => result.expect("received"),
                    None => stream.recv().await.expect("received"),
                }
                raise.await.expect("no panic");
                if ended {
                    break;
                }
            }
        });
    });
}

#[test]
fn ctrl_c_comes_once() {
    alone("signal::ctrl_c_comes_once", || {
        run(async {
            let waits = spawn(async {
                let mut waits = pin!(ctrl_c());
                let pending = futures_lite::future::poll_once(waits.as_mut()).await;
                assert!(pending.is_none());
                raise(Signal::INT);
                waits.await
            });
            waits.await.expect("no panic").expect("received");
        });
    });
}

#[test]
fn some_signals_cannot_be_received() {
    run(async {
        for forbidden in [
            Signal::KILL,
            Signal::STOP,
            Signal::ILL,
            Signal::FPE,
            Signal::SEGV,
        ] {
            let error = signal(forbidden).expect_err("nobody can");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            let inside = OpError::of(&error).expect("it is ours");
            assert_eq!(inside.object(), forbidden.to_string());
        }
    });
}

#[test]
fn numbers_and_names_agree() {
    for number in 1..=31 {
        let Some(signal) = Signal::from_raw(number) else {
            continue;
        };
        assert_eq!(signal.as_raw(), number);
        assert!(format!("{signal:?}").starts_with("SIG"), "{number}");
    }
    assert_eq!(Signal::from_raw(64), None);
}

/// The signal comes from another process, and interrupts whatever system call there is.
#[test]
fn signals_from_outside_interrupt_nothing() {
    alone("signal::signals_from_outside_interrupt_nothing", || {
        run(async {
            let stream = signal(Signal::USR1).expect("it can be listened for");
            let script = format!("for i in $(seq 300); do kill -USR1 {}; done", getpid());
            let mut child = Command::new("sh")
                .args(["-c", &script])
                .spawn()
                .expect("sh");
            let ended = tussah::spawn_blocking(move || child.wait());
            let mut received = 0;
            let (reader, writer) = tussah::pipe::pipe().expect("made");
            while !ended.is_finished() {
                writer.write_all(&[1; 100]).await.expect("there is room");
                reader.read_exact(&mut [0; 100]).await.expect("it is there");
                received += usize::from(cut(stream.recv(), 1).await.is_some());
                tussah::yield_now().await;
            }
            let status = ended.await.expect("no panic").expect("it was ours");
            assert!(status.success() && status.signal().is_none());
            if received == 0 {
                stream.recv().await.expect("received");
            }
        });
    });
}

#[test]
fn a_stream_outlives_its_runtime() {
    alone("signal::a_stream_outlives_its_runtime", || {
        let one = runtime(1);
        let stream: Signals = one.block_on(async { signal(Signal::USR1) }).expect("made");
        let error = std::thread::scope(|scope| {
            let waits = scope.spawn(|| futures_lite::future::block_on(stream.recv()));
            drop(one);
            waits.join().expect("no panic").expect_err("nobody reports")
        });
        assert_eq!(
            error.to_string(),
            "receive SIGUSR1: the runtime is shut down"
        );
        raise(Signal::USR1);
    });
}
