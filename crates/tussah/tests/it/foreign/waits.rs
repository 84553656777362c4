//! Wakers of other executors that panic, and what is called when a wait, an event or a stage ends.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use tussah::stage::{Event, Network, Refusal, Restarts, each};
use tussah::sync::Limit;

use super::{Count, Row, Serial, Shouts, throw};

pub(super) const ROWS: &[Row] = &[
    Row {
        place: "a cancelled event: its drop callback, and its value",
        run: |runtime| {
            let (told, values) = (Count::default(), Count::default());
            let network = Network::on(runtime, "cancelled");
            let builder = network.stage("stage");
            let stage = builder.handler(|_| Ok(super::Never)).expect("it is made");
            stage.pause();
            for _ in 0..5 {
                let tell = told.clone();
                let event = Event::new(values.shouts()).on_drop(move |_| {
                    tell.add();
                    throw()
                });
                let (event, handle) = event.cancellable();
                stage.sender().try_send(event).expect("there is room");
                assert!(handle.cancel());
            }
            assert_eq!((told.get(), values.get()), (5, 5));
            assert_eq!((stage.stats().cancelled, stage.stats().queued), (5, 0));
        },
    },
    Row {
        place: "a token of a cancelled event: its waiters' wakers",
        run: |_| {
            try_waits(|| {
                let (event, handle) = Event::new(()).cancellable();
                let token = event.cancellation();
                let waits = async move {
                    token.cancelled().await;
                    drop(event);
                };
                (waits, move || drop(handle))
            });
        },
    },
    Row {
        place: "a limit: its waiters' wakers",
        run: |_| {
            for adds in [true, false] {
                let limit = Limit::new("limit", 1);
                try_waits(|| {
                    let permit = limit.try_acquire().expect("it is free");
                    let (waits, limit) = (limit.clone(), limit.clone());
                    let waits = async move { drop(waits.acquire().await) };
                    let end = move || {
                        if adds {
                            limit.set_permits(2);
                            limit.set_permits(1);
                        }
                        drop(permit);
                    };
                    (waits, end)
                });
                assert_eq!(limit.stats().in_use, 0);
            }
        },
    },
    Row {
        place: "a stage that closes: its hook",
        run: |runtime| {
            runtime.block_on(async {
                let (closed, old) = (Count::default(), Count::default());
                let closes = closed.clone();
                let stage = Network::on(runtime, "closes")
                    .stage("stage")
                    .restarts(Restarts::new(1, Duration::from_secs(3600)))
                    .on_close(move |_| {
                        closes.add();
                        throw()
                    })
                    .serial(move |_| Ok(Serial(old.shouts())))
                    .expect("it is made");
                let sender = stage.sender();
                let why = loop {
                    if let Err(error) = sender.send(0).await {
                        break error.why;
                    }
                    stage.settled().await;
                };
                assert_eq!(why, Refusal::Closed);
                assert_eq!(closed.get(), 1);
            });
        },
    },
    Row {
        place: "a stage that closes while a caller unwinds: its hook",
        run: |runtime| {
            runtime.block_on(async {
                let (closed, old) = (Count::default(), Count::default());
                let closes = closed.clone();
                let network = Network::on(runtime, "closes");
                let callee = network
                    .stage("callee")
                    .restarts(Restarts::new(0, Duration::from_secs(1)))
                    .on_close(move |_| {
                        closes.add();
                        throw()
                    })
                    .serial(move |_| Ok(Serial(old.shouts())))
                    .expect("it is made");
                let caller = network.stage("caller").handler(|edges| {
                    let call = edges.to(&callee).call()?;
                    Ok(each(move |n: u32| {
                        let call = call.clone();
                        async move {
                            let _ = call.send(n).await;
                        }
                    }))
                });
                let caller = caller.expect("it is made");
                caller.sender().send(0).await.expect("it is open");
                caller.settled().await;
                assert_eq!((closed.get(), caller.stats().panicked), (1, 1));
            });
        },
    },
];

/// A waker whose call panics.
struct Wakes;

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        throw();
    }
}

/// A waker whose destructor panics.
struct Drops(#[expect(dead_code, reason = "its destructor matters")] Shouts);

impl Wake for Drops {
    fn wake(self: Arc<Self>) {}
}

fn bad_waker(by_drop: bool) -> Waker {
    if by_drop {
        Arc::new(Drops(Count::default().shouts())).into()
    } else {
        Arc::new(Wakes).into()
    }
}

/// Polls a future twice, with wakers that panic. Then ends its wait and drops it, in either order.
fn try_waits<F: Future, E: FnOnce()>(make: impl Fn() -> (F, E)) {
    for by_drop in [true, false] {
        for ends in [true, false] {
            let (future, end) = make();
            let mut future = Box::pin(future);
            for _ in 0..2 {
                // The future has a clone, so the destructor does not run here.
                let waker = bad_waker(by_drop);
                let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                assert!(polled.is_pending(), "there is something to wait for");
            }
            if ends {
                end();
                drop(future);
            } else {
                drop(future);
                end();
            }
        }
    }
}
