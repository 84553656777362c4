//! Traces of events through stages.

use std::sync::Arc;
use std::time::Duration;

use tussah::net::UnixStream;
use tussah::stage::host::ConcurrentHost;
use tussah::stage::net::{SocketEvent, Sockets};
use tussah::stage::observe::{SPANS_MAX, SpanEnd};
use tussah::stage::{AnyCall, Batch, Call, Event, Handler, Network, Reason, Sender, Stage};
use tussah::sync::Semaphore;

use crate::{by_hand, runtime};

/// The action of a stage on an event: forward, await or panic.
struct Step(Option<Sender<u64>>);

impl Handler for Step {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        while let Some(event) = batch.next() {
            assert_ne!(event, 13, "the handler does not take it");
            if event % 2 == 0 {
                tussah::yield_now().await;
            }
            if let Some(next) = &self.0 {
                // Another value, and so another event.
                next.send(event + 1000).await.expect("it is open");
            }
        }
    }
}

fn stage<C: Clone>(network: &Network, name: &str, next: Option<&Stage<u64, C>>) -> Stage<u64> {
    let made = network.stage(name).manual().handler(|edges| {
        let next = next.map(|next| edges.to(next).queue(1000)).transpose()?;
        Ok(Step(next))
    });
    made.expect("a stage");
    network.find(name).expect("it is there")
}

/// Which stages each trace was at, by their names, with how it ended there.
fn ways(network: &Network) -> Vec<(u64, Vec<(String, SpanEnd)>)> {
    let traces = network.traces();
    let mut numbers: Vec<_> = traces.spans.iter().map(|span| span.trace).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let with = |trace| {
        let spans = traces.of(trace);
        let mut way: Vec<_> = spans
            .map(|span| (span.stage.to_string(), span.end))
            .collect();
        way.sort_by(|one, other| one.0.cmp(&other.0));
        (trace, way)
    };
    numbers.into_iter().map(with).collect()
}

fn finished(names: &[&str]) -> Vec<(String, SpanEnd)> {
    let finished = |name: &&str| (name.to_string(), SpanEnd::Finished);
    names.iter().map(finished).collect()
}

#[test]
fn an_event_is_traced_through_all_stages() {
    let runtime = runtime(2);
    runtime.block_on(async {
        let network = Network::new("n");
        let last = stage::<()>(&network, "last", None);
        let middle = stage(&network, "middle", Some(&last));
        let first = stage(&network, "first", Some(&middle));
        let sender = first.sender();
        for event in 100..1100 {
            let traced = Event::new(event).traced(if event % 10 == 7 { event } else { 0 });
            sender.send(traced).await.expect("it is open");
        }
        for stage in [&first, &middle, &last] {
            stage.drain().await;
        }
        let expected = finished(&["first", "last", "middle"]);
        let traced = (100..1100).filter(|event| event % 10 == 7);
        let expected: Vec<_> = traced.map(|event| (event, expected.clone())).collect();
        assert_eq!(ways(&network), expected);
        for span in &network.traces().spans {
            assert!(
                span.queued_ns <= span.begun_ns && span.begun_ns <= span.ended_ns,
                "{span:?}"
            );
        }
    });
}

#[test]
fn one_in_n_events_is_traced() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let last = stage::<()>(&network, "last", None);
        let first = stage(&network, "first", Some(&last));
        let sender = first.sender();
        let mut counts = Vec::new();
        for one_in in [0, 100, 0, 1] {
            network.trace_one_in(one_in);
            for event in 0..1000 {
                // Odd ones, which do not wait.
                sender.send(2 * event + 1001).await.expect("it is open");
            }
            first.settled().await;
            last.settled().await;
            let traces = network.traces();
            counts.push(traces.spans.len() as u64 + traces.forgotten);
        }
        assert_eq!(counts, [0, 20, 20, 2020]);
    });
}

/// Sends on how many bytes have come.
struct Count(Sender<u64>);

impl Handler for Count {
    type Event = SocketEvent;
    async fn handle(&self, batch: &mut Batch<SocketEvent>) {
        while let Some(event) = batch.next() {
            if let SocketEvent::Packet(_, bytes) = event {
                let bytes = bytes.len() as u64;
                self.0.send(bytes).await.expect("it is open");
            }
        }
    }
}

#[test]
fn events_from_sockets_are_traced() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let last = stage::<()>(&network, "last", None);
        let count = network
            .stage("count")
            .handler(|edges| Ok(Count(edges.to(&last).queue(10)?)))
            .expect("a stage");
        network.trace_one_in(1);
        let sockets = Sockets::new(&network, "sockets").expect("the name is free");
        let (ours, theirs) = UnixStream::pair().expect("made");
        let connection = sockets.adopt(ours, &count.sender());
        let connection = connection.expect("there is room");
        theirs.write_all(b"one").await.expect("it is read");
        drop(theirs);
        last.sender().send(3).await.expect("it is open");
        while count.stats().finished < 2 {
            tussah::yield_now().await;
        }
        connection.close();
        sockets.settled().await;
        count.drain().await;
        last.drain().await;
        let (packets, others): (Vec<_>, Vec<_>) = ways(&network)
            .into_iter()
            .partition(|(_, way)| way.len() == 2);
        assert_eq!(packets.len(), 1);
        assert_eq!(packets[0].1, finished(&["count", "last"]));
        // Its end, and what was sent without a socket.
        let others: Vec<_> = others.into_iter().map(|(_, way)| way).collect();
        assert!(others.contains(&finished(&["count"])), "{others:?}");
        assert!(others.contains(&finished(&["last"])), "{others:?}");
    });
}

#[test]
fn the_spans_are_bounded() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let last = stage::<()>(&network, "last", None);
        network.trace_one_in(1);
        for event in 0..5000 {
            last.sender()
                .send(2 * event + 101)
                .await
                .expect("it is open");
        }
        last.drain().await;
        let traces = network.traces();
        assert_eq!(
            (traces.spans.len(), traces.forgotten),
            (SPANS_MAX, 5000 - SPANS_MAX as u64)
        );
    });
}

#[test]
fn a_trace_shows_the_end_of_dropped_events() {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("n");
        let last = stage::<()>(&network, "last", None);
        let sender = last.sender();
        let traced = |event: u64, trace| Event::new(event).traced(trace);
        sender.send(traced(13, 1)).await.expect("it is open");
        last.settled().await;
        last.pause();
        let (told, is_told) = std::sync::mpsc::channel();
        let late = traced(2, 2).within(Duration::from_secs(1));
        let late = late.on_drop(move |reason| told.send(reason).expect("it is awaited"));
        sender.send(late).await.expect("it is open");
        clock.advance(Duration::from_secs(2));
        last.resume();
        assert_eq!(is_told.recv(), Ok(Reason::Expired));
        let none = network
            .stage::<u64>("none")
            .declare()
            .expect("a stage")
            .stage();
        none.sender().send(traced(3, 3)).await.expect("it is open");
        none.destroy(Duration::ZERO).await;
        let ends: Vec<_> = network
            .traces()
            .spans
            .iter()
            .map(|span| (span.trace, span.end))
            .collect();
        let expected = [Reason::Panicked, Reason::Expired, Reason::ShutDown].map(SpanEnd::Dropped);
        assert_eq!(
            ends,
            [1, 2, 3].into_iter().zip(expected).collect::<Vec<_>>()
        );
        let expired = &network.traces().spans[1];
        assert_eq!(expired.ended_ns - expired.queued_ns, 2_000_000_000);
    });
}

/// Calls two stages with what it is sent.
struct Calls {
    one: Call<u64, ConcurrentHost<Step>>,
    other: AnyCall<u64>,
}

impl Handler for Calls {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        let mut events: Vec<_> = batch.drain_events().collect();
        if let Some(event) = events.pop() {
            self.other.send(event).await.expect("it is open");
        }
        let mut batch = Batch::of(events);
        self.one.call(&mut batch).await.expect("it is open");
    }
}

#[test]
fn calls_are_traced() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let last = stage::<()>(&network, "last", None);
        let one = network
            .stage("one")
            .handler(|edges| Ok(Step(Some(edges.to(&last).queue(10)?))));
        let one = one.expect("a stage");
        let other = stage::<()>(&network, "other", None);
        let first = network.stage::<u64>("first").handler(|edges| {
            Ok(Calls {
                one: edges.to(&one).call()?,
                other: edges.to(&other).call()?,
            })
        });
        let first = first.expect("a stage");
        first.pause();
        for event in 1..=4 {
            let traced = Event::new(event).traced(if event >= 3 { event } else { 0 });
            first.sender().send(traced).await.expect("it is open");
        }
        first.resume();
        first.settled().await;
        last.settled().await;
        let ways = ways(&network);
        let expected = [
            (3, finished(&["first", "last", "one"])),
            (4, finished(&["first", "other"])),
        ];
        assert_eq!(ways, expected);
    });
}

/// Waits for a permit between two events.
struct Waits(Arc<Semaphore>, Sender<u64>);

impl Handler for Waits {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        while let Some(event) = batch.next() {
            self.0.acquire().await.forget();
            self.1.send(event).await.expect("it is open");
        }
    }
}

/// While a handler waits, others run on its worker: their events are not of its trace, and its own
/// still are.
#[test]
fn a_trace_waits_with_its_handler() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let last = stage::<()>(&network, "last", None);
        let permits = Arc::new(Semaphore::new(0));
        let given = Arc::clone(&permits);
        let waits = network
            .stage("waits")
            .handler(|edges| Ok(Waits(given, edges.to(&last).queue(100)?)))
            .expect("a stage");
        let other = stage(&network, "other", Some(&last));
        let send = async |stage: &Sender<u64>, trace| {
            let event = Event::new(1).traced(trace);
            stage.send(event).await.expect("it is open");
        };
        send(&waits.sender(), 1).await;
        while waits.stats().waiting == 0 {
            tussah::yield_now().await;
        }
        send(&other.sender(), 0).await;
        other.settled().await;
        send(&waits.sender(), 0).await;
        permits.add_permits(2);
        waits.settled().await;
        last.settled().await;
        assert_eq!(ways(&network), [(1, finished(&["last", "waits"]))]);
    });
}

#[test]
fn blocking_handlers_carry_traces_on() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let last = stage::<()>(&network, "last", None);
        let first = network.stage::<u64>("first").blocking(|edges| {
            let next = edges.to(&last).queue(100)?;
            Ok(move |batch: &mut Batch<u64>| {
                for event in batch.drain() {
                    next.try_send(event).expect("there is room");
                }
            })
        });
        let first = first.expect("a stage");
        for (event, trace) in [(1, 1), (3, 0), (5, 5)] {
            let event = Event::new(event).traced(trace);
            first.sender().send(event).await.expect("it is open");
        }
        first.settled().await;
        last.settled().await;
        let ways = ways(&network);
        let way = finished(&["first", "last"]);
        assert_eq!(ways, [(1, way.clone()), (5, way)]);
    });
}

#[test]
fn traces_are_printed() {
    let (clock, runtime) = by_hand();
    runtime.block_on(async {
        let network = Network::new("n");
        let last = stage::<()>(&network, "la\"st", None);
        let first = stage(&network, "first", Some(&last));
        first.pause();
        clock.advance(Duration::from_secs(1));
        let event = Event::new(1).traced(7);
        first.sender().send(event).await.expect("it is open");
        clock.advance(Duration::from_millis(5));
        first.resume();
        first.settled().await;
        last.settled().await;
        let expected = "trace 7 at 1s\n  +0ns first: queued 5ms, handled 0ns\n  +5ms la\"st: queued 0ns, handled 0ns\n";
        assert_eq!(network.traces().to_string(), expected);
        let json: serde_json::Value = serde_json::from_str(&network.traces().to_json()).expect("JSON");
        assert_eq!(json[0]["queued_ns"], 1_000_000_000);
        assert_eq!(json[1]["stage"], "la\"st");
        assert_eq!(json[1]["end"], "finished");
    });
}
