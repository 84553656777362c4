//! Events that are cancelled while a handler has them: its future is dropped, or it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tussah::stage::{
    Batch, BuildError, CancelHandle, CancellationToken, Event, Handler, Network, Reason,
    SerialHandler, Stage,
};

use super::support::{Door, Noted, adds_up, by, until};
use crate::runtime;

type Told = Noted<(u32, Reason)>;

fn cancellable(n: u32, told: &Told) -> (Event<u32>, CancelHandle) {
    let told = told.clone();
    Event::new(n)
        .on_drop(move |why| told.add((n, why)))
        .cancellable()
}

/// Notes that it was dropped, and panics then if it is told to.
struct Dropped(Noted<&'static str>, bool);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add("dropped");
        assert!(!self.1, "a destructor panics");
    }
}

/// How a handler takes its event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Takes {
    Value,
    Whole,
    Late,
    Settles,
}

/// A stage whose handlers take one event each and wait at the door.
fn waits(
    network: &Network,
    door: &Door,
    notes: &Noted<&'static str>,
    (takes, panics): (Takes, bool),
) -> Result<Stage<u32>, BuildError> {
    let (at, notes) = (door.clone(), notes.clone());
    let name = format!("{takes:?} {panics}");
    let stage = network.stage(&name).batch(1).servlets(1).manual();
    stage.handler(move |_| {
        Ok(by(move |batch: &mut Batch<u32>| {
            let (at, notes) = (at.clone(), notes.clone());
            Box::pin(async move {
                let mut taken = (None, None);
                match takes {
                    Takes::Value => taken.0 = batch.next(),
                    Takes::Whole => taken.1 = batch.next_event(),
                    Takes::Late => {}
                    Takes::Settles => {
                        taken.0 = batch.next();
                        batch.settle();
                    }
                }
                let _dropped = Dropped(notes.clone(), panics);
                at.pass().await;
                notes.add("handled");
                drop(taken);
                batch.drain().for_each(drop);
            })
        }))
    })?;
    network.find(&name)
}

#[test]
fn the_future_of_a_handler_is_dropped_with_its_event() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("in service");
        for takes in [Takes::Value, Takes::Whole, Takes::Late] {
            let (told, notes, door) = (Told::default(), Noted::default(), Door::new());
            let stage = waits(&network, &door, &notes, (takes, false))?;
            let (event, cancel) = cancellable(1, &told);
            stage.sender().try_send(event).expect("there is room");
            door.until(1).await;
            assert_eq!((stage.stats().in_service, told.len()), (1, 0));
            assert!(cancel.cancel());
            told.until(1).await;
            until(&stage, |stats| stats.in_service == 0).await;
            assert_eq!(told.take(), [(1, Reason::Cancelled)], "{takes:?}");
            assert_eq!(notes.take(), ["dropped"]);
            // The servlet goes on, with its handler.
            let (event, cancel) = cancellable(2, &told);
            stage.sender().try_send(event).expect("there is room");
            door.let_through(1);
            stage.drain().await;
            assert!(!cancel.cancel());
            assert_eq!(notes.take(), ["handled", "dropped"]);
            let stats = stage.stats();
            assert_eq!((stats.finished, stats.cancelled, told.len()), (1, 1, 0));
            assert_eq!((stats.response.count, stats.panicked), (1, 0));
            adds_up(&stage);
        }
        Ok(())
    })
}

#[test]
fn settled_events_are_not_cancelled() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("in service");
        let (told, notes, door) = (Told::default(), Noted::default(), Door::new());
        let stage = waits(&network, &door, &notes, (Takes::Settles, false))?;
        let (event, cancel) = cancellable(1, &told);
        stage.sender().try_send(event).expect("there is room");
        door.until(1).await;
        assert!(!cancel.cancel());
        crate::idle().await;
        door.let_through(1);
        stage.drain().await;
        assert_eq!(notes.take(), ["handled", "dropped"]);
        assert_eq!((stage.stats().finished, stage.stats().cancelled), (1, 0));
        assert_eq!(told.len(), 0);
        adds_up(&stage);
        Ok(())
    })
}

#[test]
fn a_future_that_panics_as_it_is_dropped_harms_only_its_event() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("in service");
        let (told, notes, door) = (Told::default(), Noted::default(), Door::new());
        let stage = waits(&network, &door, &notes, (Takes::Value, true))?;
        for n in 0..3 {
            let (event, cancel) = cancellable(n, &told);
            stage.sender().try_send(event).expect("there is room");
            door.until(n as usize + 1).await;
            drop(cancel);
            told.until(1).await;
            assert_eq!(told.take(), [(n, Reason::Cancelled)]);
        }
        stage.drain().await;
        let stats = stage.stats();
        assert_eq!((stats.panicked, stats.cancelled, stats.finished), (3, 3, 0));
        adds_up(&stage);
        Ok(())
    })
}

/// An event that a handler has sent on ends where it is now, and the handler goes on.
#[test]
fn an_event_that_was_sent_on_ends_where_it_is() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("in service");
        let (told, notes, door) = (Told::default(), Noted::default(), Door::new());
        let last = waits(&network, &door, &notes, (Takes::Value, false))?;
        last.pause();
        let (at, to) = (door.clone(), last.clone());
        let first = network.stage("first").batch(1).handler(move |edges| {
            let to = edges.to(&to).queue(10)?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let (at, to) = (at.clone(), to.clone());
                Box::pin(async move {
                    let event = batch.next_event().expect("there is one");
                    to.send(event).await.expect("it is open");
                    at.pass().await;
                })
            }))
        })?;
        let (event, cancel) = cancellable(1, &told);
        first.sender().try_send(event).expect("there is room");
        door.until(1).await;
        assert_eq!(last.stats().queued, 1);
        assert!(cancel.cancel());
        assert_eq!(told.take(), [(1, Reason::Cancelled)]);
        crate::idle().await;
        assert_eq!(first.stats().in_service, 1);
        door.let_through(1);
        first.drain().await;
        last.drain().await;
        let cancelled = [&first.stats(), &last.stats()].map(|it| (it.finished, it.cancelled));
        assert_eq!(cancelled, [(1, 0), (0, 1)]);
        Ok(())
    })
}

/// Waits until the event that it took last is cancelled, and then at the door.
#[derive(Clone)]
struct Listens {
    tokens: Arc<Mutex<Vec<CancellationToken>>>,
    door: Door,
}

impl Listens {
    fn take(&self, batch: &mut Batch<u32>) -> CancellationToken {
        while batch.next().is_some() {
            self.tokens.lock().push(batch.cancellation());
        }
        batch.cancellation()
    }
}

impl Handler for Listens {
    type Event = u32;
    async fn handle(&self, batch: &mut Batch<u32>) {
        self.take(batch).cancelled().await;
        self.door.pass().await;
    }
}

impl SerialHandler for Listens {
    type Event = u32;
    async fn handle(&mut self, batch: &mut Batch<u32>) {
        Handler::handle(self, batch).await;
    }
}

#[test]
fn other_handlers_see_the_cancellation() -> Result<(), BuildError> {
    runtime(2).block_on(async {
        let network = Network::new("in service");
        let (door, tokens) = (Door::new(), Arc::new(Mutex::new(Vec::new())));
        let listens = Listens {
            tokens: Arc::clone(&tokens),
            door: door.clone(),
        };
        let handler = listens.clone();
        network.stage("many").handler(move |_| Ok(handler))?;
        let keyed = network.stage("keyed").batch(1).keyed_by(|n: &u32| *n);
        let handler = listens.clone();
        keyed.handler(move |_| Ok(handler))?;
        let (serial, handler) = (network.stage("serial").batch(1), listens.clone());
        serial.serial(move |_| Ok(handler.clone()))?;
        network.stage("blocking").blocking(move |_| {
            Ok(move |batch: &mut Batch<u32>| {
                let token = listens.take(batch);
                while !token.is_cancelled() {
                    std::thread::yield_now();
                }
            })
        })?;
        for name in ["many", "keyed", "serial", "blocking"] {
            let stage = network.find::<u32>(name)?;
            let told = Told::default();
            let (event, cancel) = cancellable(1, &told);
            stage.sender().try_send(event).expect("there is room");
            while tokens.lock().is_empty() {
                tussah::yield_now().await;
            }
            let token = tokens.lock().pop().expect("there is one");
            assert!(!token.is_cancelled());
            drop(cancel);
            assert!(token.is_cancelled());
            door.let_through(1);
            stage.drain().await;
            let stats = stage.stats();
            assert_eq!((stats.finished, stats.cancelled), (0, 1), "{name}");
            assert_eq!((stats.response.count, told.len()), (0, 0), "{name}");
            adds_up(&stage);
        }
        Ok(())
    })
}

/// Another event of its batch counts, and a token of one that can't be cancelled never says so.
#[test]
fn a_cancelled_event_of_a_batch_counts_by_itself() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("in service");
        let (door, told) = (Door::new(), Told::default());
        let at = door.clone();
        let stage = network.stage("stage").handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    while let Some(n) = batch.next() {
                        let token = batch.cancellation();
                        if n == 1 {
                            at.pass().await;
                            assert!(token.is_cancelled());
                        } else {
                            assert!(!token.is_cancelled());
                        }
                    }
                })
            }))
        })?;
        stage.pause();
        stage.sender().try_send(0).expect("there is room");
        let (event, cancel) = cancellable(1, &told);
        stage.sender().try_send(event).expect("there is room");
        stage.sender().try_send(2).expect("there is room");
        stage.resume();
        door.until(1).await;
        drop(cancel);
        door.let_through(1);
        stage.drain().await;
        let stats = stage.stats();
        assert_eq!((stats.finished, stats.cancelled, stats.panicked), (2, 1, 0));
        assert_eq!((stats.response.count, told.len()), (2, 0));
        adds_up(&stage);
        Ok(())
    })
}

/// OS threads cancel events while handlers that wait have them: each is handled completely, or
/// reported.
#[test]
fn an_event_is_handled_completely_or_reported() -> Result<(), BuildError> {
    const EVENTS: usize = 10_000;
    let runtime = runtime(2);
    let ends: Arc<Vec<AtomicUsize>> = Arc::new((0..EVENTS).map(|_| 0.into()).collect());
    let network = Network::on(runtime.handle(), "race");
    let handled = Arc::clone(&ends);
    let stage = network.stage("stage").queue(50).batch(1).servlets(8);
    let stage = stage.handler(move |_| {
        Ok(by(move |batch: &mut Batch<usize>| {
            let handled = Arc::clone(&handled);
            Box::pin(async move {
                while let Some(n) = batch.next() {
                    for _ in 0..n % 4 {
                        tussah::yield_now().await;
                    }
                    batch.settle();
                    handled[n].fetch_add(1, Ordering::Relaxed);
                }
            })
        }))
    })?;
    let (to, from) = std::sync::mpsc::channel::<CancelHandle>();
    let cancels = std::thread::spawn(move || from.iter().filter(CancelHandle::cancel).count());
    let (sender, told) = (stage.sender(), Arc::clone(&ends));
    runtime.block_on(async move {
        for n in 0..EVENTS {
            let told = Arc::clone(&told);
            let event = Event::new(n).on_drop(move |why| {
                assert_eq!(why, Reason::Cancelled);
                told[n].fetch_add(1, Ordering::Relaxed);
            });
            let (event, cancel) = event.cancellable();
            sender.send(event).await.expect("it is open");
            to.send(cancel).expect("it is there to the end");
        }
    });
    let cancelled = cancels.join().expect("no panic") as u64;
    runtime.block_on(stage.drain());
    let ends: Vec<_> = ends
        .iter()
        .map(|count| count.load(Ordering::Relaxed))
        .collect();
    // A few are cancelled between their last wait and their end: they are handled, and count as
    // cancelled.
    assert!(ends.iter().all(|count| *count == 1), "{ends:?}");
    let stats = stage.stats();
    assert_eq!(stats.cancelled, cancelled);
    assert_eq!(stats.finished + stats.cancelled, EVENTS as u64);
    adds_up(&stage);
    Ok(())
}
