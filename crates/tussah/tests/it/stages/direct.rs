//! Direct edges: handlers that are called like functions.

use std::future::Future;
use std::time::Duration;

use tussah::stage::host::DirectHost;
use tussah::stage::observe::{EdgeKind, SpanEnd};
use tussah::stage::{
    BuildError, Direct, DirectHandler, Event, Network, Reason, Refusal, Sender, Stage,
};
use tussah::yield_now;

use super::support::{Noted, adds_up, each};
use crate::runtime;

/// Notes each event, and panics at 13.
struct Note(Noted<u32>);

impl DirectHandler for Note {
    type Event = u32;
    fn handle(&self, n: u32) {
        assert_ne!(n, 13, "expected: thirteen");
        self.0.add(n);
    }
}

/// Sends each event on, and notes those that were not taken.
struct Pass {
    to: Direct<u32, Note>,
    refused: Noted<(u32, Refusal)>,
}

impl DirectHandler for Pass {
    type Event = u32;
    fn handle(&self, n: u32) {
        if let Err(error) = self.to.send(n) {
            self.refused.add((error.event.into_inner(), error.why));
        }
    }
}

/// Two stages, the first of which sends to the second by a direct edge.
struct Two {
    network: Network,
    first: Stage<u32, DirectHost<Pass>>,
    last: Stage<u32, DirectHost<Note>>,
    came: Noted<u32>,
    refused: Noted<(u32, Refusal)>,
}

impl Two {
    fn new() -> Result<Self, BuildError> {
        let network = Network::new("direct");
        let (came, refused) = (Noted::default(), Noted::default());
        let note = Note(came.clone());
        let last = network.stage("last").queue(4).direct(|_| Ok(note))?;
        let first = network.stage("first").servlets(1).direct(|edges| {
            let (to, refused) = (edges.to(&last).direct(4)?, refused.clone());
            Ok(Pass { to, refused })
        })?;
        Ok(Self {
            network,
            first,
            last,
            came,
            refused,
        })
    }

    /// Sends events to the first stage, and waits until it has handled them.
    async fn send(&self, events: impl IntoIterator<Item = u32>) {
        for n in events {
            self.first.sender().send(n).await.expect("it is open");
        }
        self.first.settled().await;
    }

    /// How many events came to the last stage by calls, and by its queue.
    fn ways(&self) -> (u64, u64) {
        let stats = self.last.stats();
        (stats.called, stats.arrived)
    }
}

fn check<F: Future<Output = Result<(), BuildError>>>(
    test: impl FnOnce(Two) -> F,
) -> Result<(), BuildError> {
    runtime(1).block_on(async { test(Two::new()?).await })
}

#[test]
fn an_event_is_handled_when_the_send_returns() -> Result<(), BuildError> {
    check(|two| async move {
        let edges = two.network.edges();
        assert_eq!((edges.len(), edges[0].kind), (1, EdgeKind::Call));
        two.send([1, 2, 3]).await;
        assert_eq!(two.came.take(), [1, 2, 3]);
        assert_eq!(two.ways(), (3, 0));
        // It has a queue as any other stage.
        two.last.sender().send(4).await.expect("it is open");
        two.last.settled().await;
        assert_eq!(two.came.take(), [4]);
        assert_eq!(two.ways(), (3, 1));
        adds_up(&two.first);
        adds_up(&two.last);
        Ok(())
    })
}

#[test]
fn an_edge_works_outside_of_its_stage_until_the_runtime_ends() -> Result<(), BuildError> {
    let mut kept = None;
    let came = Noted::default();
    let runtime = runtime(1);
    let called = runtime.block_on(async {
        let network = Network::new("direct");
        let note = Note(came.clone());
        let last = network.stage("last").direct(|_| Ok(note))?;
        network.stage("first").direct(|edges| {
            let to = edges.to(&last).direct(1)?;
            kept = Some(to.clone());
            let refused = Noted::default();
            Ok(Pass { to, refused })
        })?;
        Ok(last)
    })?;
    let edge = kept.expect("it was made");
    assert!(edge.send(1).is_ok());
    assert_eq!((came.take(), called.stats().called), (vec![1], 1));
    assert!(format!("{edge:?}").contains("last"));
    drop(runtime);
    let late = edge.send(2).expect_err("the stage is closed");
    assert_eq!((late.why, *late.event), (Refusal::Closed, 2));
    Ok(())
}

#[test]
fn a_panic_is_the_callers() -> Result<(), BuildError> {
    check(|two| async move {
        let told = Noted::default();
        two.first.pause();
        for n in [1, 13, 2] {
            let told = told.clone();
            let event = Event::new(n).on_drop(move |why| told.add((n, why)));
            two.first.sender().try_send(event).expect("there is room");
        }
        two.first.resume();
        two.first.drain().await;
        assert_eq!(two.came.take(), [1, 2]);
        let panicked = |n| (n, Reason::Panicked);
        assert_eq!(told.take(), [1, 13].map(panicked), "one batch");
        let (first, last) = (two.first.stats(), two.last.stats());
        assert_eq!((first.panicked, first.lost, last.panicked), (1, 2, 0));
        assert_eq!((last.called, last.gate), (3, "open"));
        adds_up(&two.first);
        Ok(())
    })
}

#[test]
fn after_a_swap_the_next_handler_gets_all_events() -> Result<(), BuildError> {
    check(|two| async move {
        two.send([1]).await;
        let next = Noted::default();
        let note = next.clone();
        let swapped = two
            .last
            .swap(|_| Ok(each(move |n: u32| note.add(n))))
            .await?;
        two.send([2, 3]).await;
        swapped.settled().await;
        assert_eq!((two.came.take(), next.take()), (vec![1], vec![2, 3]));
        assert_eq!(two.ways(), (1, 2));
        // An edge that is made by an old handle finds the present handler too.
        let mut kept = None;
        two.network.stage("late").direct(|edges| {
            let to = edges.to(&two.last).direct(4)?;
            kept = Some(to.clone());
            let refused = Noted::default();
            Ok(Pass { to, refused })
        })?;
        kept.expect("it was made").send(4).expect("there is room");
        swapped.settled().await;
        assert_eq!((two.came.len(), next.take()), (0, vec![4]));
        Ok(())
    })
}

#[test]
fn swaps_on_the_way_lose_no_event_and_double_none() -> Result<(), BuildError> {
    const EVENTS: u32 = 2000;
    runtime(2).block_on(async {
        let two = Two::new()?;
        two.last.set_queue_max(u64::from(EVENTS));
        two.send([100]).await;
        let sender = two.first.sender();
        let sending = tussah::spawn(async move {
            for n in 101..99 + EVENTS {
                sender.send(n).await.expect("it is open");
                if n % 8 == 0 {
                    yield_now().await;
                }
            }
        });
        for _ in 0..20 {
            let note = two.came.clone();
            let swap = two.last.swap(|_| Ok(each(move |n| note.add(n))));
            swap.await?;
            yield_now().await;
        }
        sending.await.expect("no panic");
        two.send([99 + EVENTS]).await;
        two.network.drain().await;
        assert_eq!(two.refused.take(), []);
        let (called, arrived) = two.ways();
        assert_eq!(called + arrived, u64::from(EVENTS));
        assert!(called > 0 && arrived > 0, "{called} + {arrived}");
        let mut came = two.came.take();
        came.sort_unstable();
        assert_eq!(came, (100..100 + EVENTS).collect::<Vec<_>>());
        Ok(())
    })
}

#[test]
fn a_stage_that_is_paused_or_drained_is_called_and_one_that_is_destroyed_is_not()
-> Result<(), BuildError> {
    check(|two| async move {
        two.last.pause();
        two.send([1]).await;
        assert_eq!(two.came.take(), [1]);
        two.last.drain().await;
        two.send([2]).await;
        assert_eq!(two.came.take(), [2]);
        assert_eq!(two.last.clone().destroy(Duration::ZERO).await, 0);
        two.send([3]).await;
        assert_eq!(two.came.len(), 0);
        assert_eq!(two.refused.take(), [(3, Refusal::Closed)]);
        assert_eq!(two.last.stats().called, 2);
        Ok(())
    })
}

#[test]
fn a_network_is_drained_callers_first() -> Result<(), BuildError> {
    check(|two| async move {
        two.first.pause();
        for n in 20..30 {
            two.first.sender().try_send(n).expect("there is room");
        }
        two.network.drain().await;
        assert_eq!(two.came.take(), (20..30).collect::<Vec<_>>());
        assert_eq!((two.refused.len(), two.ways()), (0, (10, 0)));
        Ok(())
    })
}

#[test]
fn an_event_that_must_be_queued_and_finds_no_room_is_returned() -> Result<(), BuildError> {
    check(|two| async move {
        let note = two.came.clone();
        two.last
            .swap(|_| Ok(each(move |n: u32| note.add(n))))
            .await?;
        two.last.pause();
        two.send(0..6).await;
        assert_eq!(two.refused.take(), [(4, Refusal::Full), (5, Refusal::Full)]);
        assert_eq!(two.last.stats().refused, 2);
        two.last.resume();
        two.last.drain().await;
        assert_eq!(two.came.take(), [0, 1, 2, 3]);
        adds_up(&two.last);
        Ok(())
    })
}

#[test]
fn a_traced_event_is_traced_through_the_queue() -> Result<(), BuildError> {
    check(|two| async move {
        two.first.pause();
        let sender = two.first.sender();
        for event in [Event::new(1), Event::new(2).traced(7), Event::new(3)] {
            sender.try_send(event).expect("there is room");
        }
        two.first.resume();
        two.network.drain().await;
        // Only what is queued is in the trace: what comes after it may be called first.
        assert_eq!(two.came.take(), [1, 3, 2]);
        assert_eq!(two.ways(), (2, 1));
        let traces = two.network.traces();
        let spans = traces.of(7).map(|span| (&*span.stage, span.end));
        let mut spans: Vec<_> = spans.collect();
        spans.sort_by_key(|(stage, _)| *stage);
        assert_eq!(
            spans,
            [("first", SpanEnd::Finished), ("last", SpanEnd::Finished)]
        );
        Ok(())
    })
}

/// Sends on by a queue.
struct Queued(Sender<u32>);

impl DirectHandler for Queued {
    type Event = u32;
    fn handle(&self, n: u32) {
        self.0.try_send(n + 100).expect("there is room");
    }
}

#[test]
fn a_proxy_gets_the_events_sent_while_it_is_installed() -> Result<(), BuildError> {
    check(|two| async move {
        let proxy = two.network.stage("proxy").direct(|edges| {
            let to = edges.to(&two.last).queue(4)?;
            Ok(Queued(to))
        })?;
        two.send([1]).await;
        let between = proxy.between("first", &two.last)?;
        two.send([2, 3]).await;
        between.remove().await;
        two.send([4]).await;
        two.network.drain().await;
        let mut came = two.came.take();
        came.sort_unstable();
        assert_eq!(came, [1, 4, 102, 103]);
        assert_eq!((two.ways(), proxy.stats().finished), ((2, 2), 2));
        Ok(())
    })
}

#[test]
fn a_stage_by_key_gets_all_by_its_queue() -> Result<(), BuildError> {
    check(|two| async move {
        let came = Noted::default();
        let note = Note(came.clone());
        let keyed = two.network.stage("keyed").keyed_by(|n: &u32| n % 2);
        let keyed = keyed.direct(|_| Ok(note))?;
        let mut edge = None;
        two.network.stage("caller").direct(|edges| {
            edge = Some(edges.to(&keyed).direct(4)?);
            Ok(Note(Noted::default()))
        })?;
        edge.expect("it was made").send(1).expect("there is room");
        keyed.settled().await;
        let stats = keyed.stats();
        assert_eq!((stats.called, stats.finished, came.take()), (0, 1, vec![1]));
        Ok(())
    })
}

#[test]
fn cycles_are_refused() -> Result<(), BuildError> {
    check(|two| async move {
        let cycle = |made: Result<(), BuildError>, expected: &[&str]| match made {
            Err(BuildError::Cycle { path }) => assert_eq!(path, expected),
            other => panic!("{other:?}"),
        };
        // The last stage sends to the first, by another handler of its.
        let mut back = None;
        let made = two.last.swap(|edges| {
            back = Some(edges.to(&two.first).direct(4)?);
            Ok(each(|_: u32| {}))
        });
        cycle(made.await.map(drop), &["last", "first", "last"]);
        assert!(back.is_none());
        // A stage to itself.
        let made = two.last.swap(|edges| {
            edges.to(&two.last).direct(4)?;
            Ok(each(|_: u32| {}))
        });
        cycle(made.await.map(drop), &["last", "last"]);
        two.send([1]).await;
        assert_eq!((two.came.take(), two.ways()), (vec![1], (1, 0)));
        Ok(())
    })
}

#[test]
fn no_edge_leads_to_a_closed_stage_or_another_network() -> Result<(), BuildError> {
    check(|two| async move {
        let edge = |network: &Network| {
            network.stage("new").direct(|edges| {
                edges.to(&two.last).direct(4)?;
                Ok(Note(Noted::default()))
            })
        };
        let elsewhere = edge(&Network::new("other"));
        assert!(elsewhere.is_err());
        two.last.clone().destroy(Duration::ZERO).await;
        let closed = edge(&two.network).expect_err("it is closed");
        assert!(matches!(closed, BuildError::Closed { .. }), "{closed}");
        Ok(())
    })
}

#[test]
fn an_edge_makes_room_in_the_queue() -> Result<(), BuildError> {
    check(|two| async move {
        two.network.stage("other").direct(|edges| {
            edges.to(&two.last).direct(9)?;
            Ok(Note(Noted::default()))
        })?;
        assert_eq!(two.last.stats().queue_max, 9);
        Ok(())
    })
}
