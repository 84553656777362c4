//! Wakers of other executors, whose clone, call or drop panics.

use std::future::{Future, pending, poll_fn};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::Poll;
use std::time::Duration;

use tussah_core::io::{Direction, Hangup, Source};
use tussah_core::time::{Sleep, now};
use tussah_core::{Color, Notify, file, with_all, yield_now};

use super::throwing::{Hooks, On, bad_waker, poll, throw, throws, try_waits};
use super::{Bench, Row, Watched};

pub(super) const ROWS: &[Row] = &[
    Row {
        place: "`with`, queued: a waker",
        run: |bench| {
            try_waits(|| {
                let held = bench.hold();
                let with = bench.value.with(Watched::write);
                (with, end(bench, held))
            });
        },
    },
    Row {
        place: "`read`, queued: a waker",
        run: |bench| {
            try_waits(|| {
                let held = bench.hold();
                let read = bench.value.read(|value| value.calls);
                (read, end(bench, held))
            });
        },
    },
    Row {
        place: "`with_all`, queued: a waker",
        run: |bench| {
            try_waits(|| {
                let held = bench.hold();
                let all = with_all((&bench.other, &bench.value), |other, value| {
                    other.write();
                    value.write();
                });
                (all, end(bench, held))
            });
        },
    },
    Row {
        place: "`read`, running in a shared turn: a waker that came late",
        run: a_late_waker_in_a_shared_turn,
    },
    Row {
        place: "`with`: the waker of a poll without budget",
        run: |bench| {
            let value = bench.value.clone();
            let thread = bench.runtime.spawn(async move {
                let spent = (0..127).map(|_| value.with(Watched::write));
                for with in spent {
                    with.await;
                }
                let mut with = pin!(value.with(Watched::write));
                throws(|| poll(with.as_mut(), &bad_waker(On::Wake)));
                with.await
            });
            let calls = bench.runtime.block_on(thread).expect("no panic");
            assert_eq!(calls, 128, "it has run, and its result is kept");
        },
    },
    Row {
        place: "a join handle: a waker",
        run: |bench| {
            try_waits(|| {
                let (end, ended) = mpsc::channel::<()>();
                let job = bench.runtime.blocking().submit(move || ended.recv());
                let job = job.expect("it is open");
                let thread = bench.runtime.spawn(async move { job.await.is_ok() });
                let watch = thread.abort_handle();
                let end = move || {
                    drop(end);
                    while !watch.is_finished() {
                        std::thread::yield_now();
                    }
                };
                (thread, Box::new(end))
            });
        },
    },
    Row {
        place: "a blocking handle: a waker",
        run: |bench| {
            try_waits(|| {
                let (end, ended) = mpsc::channel::<()>();
                let job = bench.runtime.blocking().submit(move || ended.recv());
                (job.expect("it is open"), Box::new(|| drop(end)))
            });
        },
    },
    Row {
        place: "`Notify`: a waker",
        run: |_| {
            for all in [false, true] {
                try_waits(|| {
                    let notify: &'static Notify = Box::leak(Box::default());
                    let end = move || match all {
                        true => notify.notify_waiters(),
                        false => notify.notify_one(),
                    };
                    (notify.notified(), Box::new(end))
                });
            }
        },
    },
    Row {
        place: "a timer: a waker",
        run: |bench| {
            try_waits(|| {
                let deadline = now() + Duration::from_millis(20);
                let handle = bench.runtime.handle().clone();
                let mut sleep = Box::pin(Sleep::new_until(deadline));
                // The timer is set in the runtime, and the waker is another executor's.
                let future = poll_fn(move |context| {
                    handle.block_on(poll_fn(|_| Poll::Ready(sleep.as_mut().poll(context))))
                });
                let handle = bench.runtime.handle().clone();
                let end = move || handle.block_on(Sleep::new_until(deadline));
                (future, Box::new(end))
            });
        },
    },
    Row {
        place: "a descriptor: a waker",
        run: |bench| {
            try_waits(|| {
                let (ours, theirs) = UnixStream::pair().expect("there are descriptors");
                ours.set_nonblocking(true).expect("a socket may be");
                let source = Source::new_in(&bench.runtime, ours.into());
                let source: &'static Source = Box::leak(Box::new(source));
                let read = source.io(Direction::Read, |fd| Ok(rustix::io::read(fd, &mut [0; 1])?));
                (read, Box::new(|| drop(theirs)))
            });
        },
    },
    Row {
        place: "a peer that hangs up: a waker",
        run: |bench| {
            try_waits(|| {
                let (ours, theirs) = UnixStream::pair().expect("there are descriptors");
                let source = Source::new_in(&bench.runtime, ours.into());
                let gone = poll_fn(move |cx| source.poll_hangup(cx, Hangup::Half));
                (gone, Box::new(|| drop(theirs)))
            });
        },
    },
    Row {
        place: "waiting for an idle worker: a waker",
        run: |bench| {
            try_waits(|| {
                // As long as both workers are held, none is idle.
                let both = Arc::new(Barrier::new(3));
                let held = [21, 22].map(|color| {
                    let (release, released) = mpsc::channel::<()>();
                    let both = both.clone();
                    let event = move || {
                        both.wait();
                        let _ = released.recv();
                    };
                    let color = Color(color);
                    bench.runtime.post_in(color, event).expect("it is open");
                    release
                });
                both.wait();
                let handle = bench.runtime.handle().clone();
                let end = move || {
                    drop(held);
                    handle.block_on(handle.idle());
                };
                (bench.runtime.idle(), Box::new(end))
            });
        },
    },
    Row {
        place: "an operation on a file: a waker",
        run: |bench| {
            use std::io::Write;
            let mut file = tempfile::NamedTempFile::new().expect("there is room");
            file.write_all(b"text").expect("there is room");
            for on in [On::Clone, On::Wake, On::Drop] {
                let path = file.path().to_owned();
                let thread = bench.runtime.spawn(async move {
                    let mut first = pin!(file::metadata(&path, true));
                    if on == On::Clone {
                        throws(|| poll(first.as_mut(), &bad_waker(on)));
                    } else if poll(first.as_mut(), &bad_waker(on)).is_pending() {
                        // It completes meanwhile, as does another one.
                        file::metadata(&path, true).await.expect("it is there");
                        first.await.expect("it is there");
                    }
                });
                bench.runtime.block_on(thread).expect("no panic");
            }
        },
    },
    Row {
        place: "yielding: a waker",
        run: |bench| {
            let thread = bench.runtime.spawn(async {
                let mut yields = pin!(yield_now());
                throws(|| poll(yields.as_mut(), &bad_waker(On::Wake)));
                yields.await;
            });
            bench.runtime.block_on(thread).expect("no panic");
        },
    },
    Row {
        place: "the end of the runtime: wakers of all that waits",
        run: |bench| {
            drop(bench.hold());
            let inner = Bench::new();
            let held = inner.hold();
            let Bench { runtime, value, .. } = inner;
            for on in [On::Wake, On::Drop] {
                let mut thread = Box::pin(runtime.spawn(pending::<()>()));
                assert!(poll(thread.as_mut(), &bad_waker(on)).is_pending());
                std::mem::forget(thread);
                let mut sleep = Box::pin(Sleep::new_until(now() + Duration::from_secs(3600)));
                let set = poll_fn(|_| Poll::Ready(poll(sleep.as_mut(), &bad_waker(on))));
                assert!(runtime.block_on(set).is_pending());
                std::mem::forget(sleep);
                let mut with = Box::pin(value.with(Watched::write));
                assert!(poll(with.as_mut(), &bad_waker(on)).is_pending());
                std::mem::forget(with);
            }
            let report = runtime.shutdown(Duration::ZERO);
            assert_eq!((report.threads_dropped, report.workers_stuck), (2, 0));
            drop(held);
        },
    },
];

/// Returns a closure that ends the wait for a held value.
fn end(bench: &Bench, held: super::Held) -> Box<dyn FnOnce()> {
    let (value, handle) = (bench.value.clone(), bench.runtime.handle().clone());
    Box::new(move || {
        drop(held);
        handle.block_on(value.with(|value| value.calls));
    })
}

/// The color lets go of a request last, after the request stored a waker behind the one that was
/// called. That waker is cloned while the closure ends.
fn a_late_waker_in_a_shared_turn(bench: &Bench) {
    for _ in 0..3 {
        let held = bench.hold();
        let (go, may_go) = mpsc::channel::<()>();
        let may_go = Mutex::new(may_go);
        let mut read = Box::pin(bench.value.read(|value| value.calls));
        // The color waits here, between the outcome and its last use of the request.
        let (wake, woken) = mpsc::channel();
        let slow = Hooks {
            wake: Box::new(move || {
                wake.send(()).expect("the row listens");
                let _ = may_go.lock().expect("no panic").recv();
            }),
            ..Hooks::default()
        };
        let slow = slow.waker();
        assert!(poll(read.as_mut(), &slow).is_pending());
        let (held, woken) = (Mutex::new(Some(held)), Mutex::new(woken));
        let late = Hooks {
            clone: Box::new(move || {
                drop(held.lock().expect("no panic").take());
                let _ = woken.lock().expect("no panic").recv();
            }),
            drop: Box::new(|| throw()),
            ..Hooks::default()
        };
        let late = late.waker();
        assert!(poll(read.as_mut(), &late).is_ready(), "it came meanwhile");
        drop(read);
        drop(go);
        bench.settle();
    }
}
