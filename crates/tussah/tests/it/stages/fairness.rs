//! Senders that wait for room: each has its turn.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_lite::future::poll_once;
use tussah::net::{TcpListener, TcpStream};
use tussah::stage::control::{
    Admission, Arrival, Cadence, Controller, Owns, Sample, Settings, policy::Threshold,
};
use tussah::stage::observe::StageStats;
use tussah::stage::{Batch, BuildError, Class, Network, Refusal, Sender, Stage, StageBuilder};
use tussah::sync::Notify;

use super::support::{Noted, adds_up, by, each, until};
use crate::{idle, runtime};

/// The senders that send at the same time.
const SENDERS: usize = 20;

/// Events that are handled before the senders are compared, for each of them.
const EACH: u64 = 500;

/// Counts the events of each sender, up to N in all.
struct Counts {
    by_sender: Vec<AtomicU64>,
    all: AtomicU64,
    complete: Notify,
    began: AtomicU64,
}

impl Counts {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            by_sender: (0..SENDERS).map(|_| AtomicU64::new(0)).collect(),
            all: AtomicU64::new(0),
            complete: Notify::new(),
            began: AtomicU64::new(0),
        })
    }

    fn add(&self, sender: usize) {
        let before = self.all.fetch_add(1, Ordering::Relaxed);
        if before < EACH * SENDERS as u64 {
            self.by_sender[sender].fetch_add(1, Ordering::Relaxed);
        } else if before == EACH * SENDERS as u64 {
            self.complete.notify_one();
        }
    }

    /// A sender is about to send for the first time.
    fn begin(&self) {
        self.began.fetch_add(1, Ordering::Relaxed);
    }

    async fn until_all_have_begun(&self) {
        while self.began.load(Ordering::Relaxed) < SENDERS as u64 {
            tussah::yield_now().await;
        }
        idle().await;
    }

    /// Checks Jain's index: 1 if all have sent as much, 1/n if one has sent all. On one worker no
    /// sender stands still while the others go on.
    #[track_caller]
    fn assert_fair(&self, what: &str) {
        let counts = self.by_sender.iter();
        let counts: Vec<_> = counts.map(|it| it.load(Ordering::Relaxed) as f64).collect();
        let sum: f64 = counts.iter().sum();
        let squares: f64 = counts.iter().map(|count| count * count).sum();
        let index = sum * sum / (counts.len() as f64 * squares);
        assert!(
            index >= 0.98,
            "Jain's index is {index:.3}, {what}: {counts:?}"
        );
    }
}

/// A stage that is slower than those who send to it; it is paused, and full of events of nobody.
fn slow(network: &Network, queue: u64, batch: usize, counts: &Arc<Counts>) -> Stage<usize> {
    let note = Arc::clone(counts);
    let stage = network.stage("stage").queue(queue).batch(batch).manual();
    let stage = stage.servlets(1).handler(move |_| {
        Ok(by(move |batch: &mut Batch<usize>| {
            let note = Arc::clone(&note);
            Box::pin(async move {
                for sender in batch.drain() {
                    if sender < SENDERS {
                        note.add(sender);
                    }
                    // So that it is slower than all senders together.
                    for n in 0..2000 {
                        std::hint::black_box(n);
                    }
                }
            })
        }))
    });
    stage.expect("a stage");
    let stage = network.find("stage").expect("it is there");
    stage.pause();
    while stage.sender().try_send(SENDERS).is_ok() {}
    stage
}

#[test]
fn threads_that_send_to_a_full_stage_have_their_turns() {
    // With several workers the system may keep one from running. Its threads then have room that
    // they do not use, and do not wait. The next test counts on two workers.
    for (queue, batch) in [(64, 100), (10, 1), (1024, 100)] {
        let runtime = runtime(1);
        let network = Network::on(runtime.handle(), "fairness");
        let counts = Counts::new();
        runtime.block_on(async {
            let stage = slow(&network, queue, batch, &counts);
            for number in 0..SENDERS {
                let (sender, counts) = (stage.sender(), Arc::clone(&counts));
                runtime.spawn(async move {
                    counts.begin();
                    while sender.send(number).await.is_ok() {}
                });
            }
            counts.until_all_have_begun().await;
            stage.resume();
            counts.complete.notified().await;
            network.close();
        });
        counts.assert_fair(&format!("{queue} in the queue, {batch} at once"));
    }
}

/// Of those who wait, nobody has a third turn before another has had one, however greedy.
#[test]
fn no_sender_overtakes_a_waiting_one_more_than_twice() {
    let cases = [(64, 100), (10, 1), (1024, 100), (16, 10), (1, 1)];
    for (workers, (queue, batch)) in [1, 2].iter().flat_map(|n| cases.map(|case| (*n, case))) {
        let runtime = runtime(workers);
        let network = Network::on(runtime.handle(), "fairness");
        let counts = Counts::new();
        runtime.block_on(async {
            let stage = slow(&network, queue, batch, &counts);
            let sender = stage.sender();
            let mut sending: Vec<_> = (0..SENDERS).map(|number| sender.send(number)).collect();
            // How often each was passed by each since its own turn.
            let mut passed = [[0; SENDERS]; SENDERS];
            let (mut sent, mut most) = (0, 0);
            while sent < EACH / 5 * SENDERS as u64 {
                // All are polled here, so they are served in the order in which they are ready.
                for number in 0..SENDERS {
                    while let Some(done) = poll_once(&mut sending[number]).await {
                        done.expect("it is open");
                        sent += 1;
                        sending[number] = sender.send(number);
                        passed[number] = [0; SENDERS];
                        for other in (0..SENDERS).filter(|other| *other != number) {
                            passed[other][number] += 1;
                            most = most.max(passed[other][number]);
                        }
                    }
                }
                stage.resume();
                tussah::yield_now().await;
            }
            let what = format!("{workers} workers, {queue} in the queue, {batch} at once");
            assert!(most <= 2, "{what}: passed {most} times");
            drop(sending);
            network.close();
        });
    }
}

/// Sends an event for each byte that comes.
async fn serve(connection: TcpStream, number: usize, sender: Sender<usize>, counts: Arc<Counts>) {
    let mut bytes = [0; 16];
    counts.begin();
    while let Ok(count @ 1..) = connection.read(&mut bytes).await {
        for _ in 0..count {
            if sender.send(number).await.is_err() {
                return;
            }
        }
    }
}

#[test]
fn sockets_whose_connections_send_to_a_slow_stage_have_their_turns() {
    let runtime = runtime(1);
    let network = Network::on(runtime.handle(), "fairness");
    let counts = Counts::new();
    runtime.block_on(async {
        let stage = slow(&network, 64, 100, &counts);
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let address = listener.local_addr().expect("an address");
        for number in 0..SENDERS {
            let client = TcpStream::connect(address).await.expect("it is accepted");
            let (served, _) = listener.accept().await.expect("a connection");
            runtime.spawn(serve(served, number, stage.sender(), Arc::clone(&counts)));
            runtime.spawn(async move { while client.write_all(&[0; 64]).await.is_ok() {} });
        }
        counts.until_all_have_begun().await;
        stage.resume();
        counts.complete.notified().await;
        network.close();
    });
    counts.assert_fair("sockets");
}

/// Whoever only tries gets what is left by those who wait.
#[test]
fn a_sender_that_waits_is_not_overtaken_by_one_that_tries() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("fairness");
        let came = Noted::default();
        let note = came.clone();
        let declared = network.stage("stage").queue(4).declare()?;
        let any = declared.stage();
        let again = any.sender();
        declared.handler(move |_| {
            Ok(each(move |n: u32| {
                note.add(n);
                if n < 1000 {
                    // As soon as there is room there is none.
                    while again.try_send(n + 1).is_ok() {}
                }
            }))
        })?;
        any.pause();
        for _ in 0..4 {
            any.sender().try_send(0).expect("there is room");
        }
        let sender = any.sender();
        let waiting = tussah::spawn(async move { sender.send(10_000).await.is_ok() });
        idle().await;
        any.resume();
        assert!(waiting.await.expect("no panic"));
        let when = came.len();
        assert!(when < 100, "it waited for {when} events");
        network.close();
        Ok(())
    })
}

#[test]
fn try_send_gets_no_room_that_others_wait_for() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("fairness");
        let came = Noted::default();
        let note = came.clone();
        let stage = network.stage("stage").queue(4).batch(1).servlets(1);
        let stage = stage.handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
        stage.pause();
        let sender = stage.sender();
        for n in 0..4 {
            sender.try_send(n).expect("there is room");
        }
        let mut first = pin!(sender.send(4));
        let mut second = pin!(sender.send(5));
        assert!(poll_once(&mut second).await.is_none());
        assert!(poll_once(&mut first).await.is_none());
        stage.set_queue_max(6);
        // There is room for two, and it is theirs.
        assert_eq!(sender.try_send(6).expect_err("full").why, Refusal::Full);
        let mut third = pin!(sender.send(7));
        assert!(poll_once(&mut third).await.is_none());
        first.await.expect("room was handed to it");
        second.await.expect("room was handed to it");
        stage.resume();
        third.await.expect("it is open");
        stage.drain().await;
        assert_eq!(came.take(), [0, 1, 2, 3, 4, 5, 7]);
        adds_up(&stage);
        Ok(())
    })
}

/// Room that becomes free one event at a time is kept for the waiting senders until there is enough
/// of it.
#[test]
fn try_send_gets_no_room_that_is_kept_for_others() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("fairness");
        let refused = Noted::default();
        let note = refused.clone();
        let declared = network.stage("stage").queue(4).batch(1).servlets(1);
        let declared = declared.manual().declare()?;
        let stage = declared.stage();
        let again = stage.sender();
        declared.handler(move |_| {
            Ok(each(move |n: u32| {
                if n == 0 {
                    note.add(again.try_send(5).map_err(|error| error.why).err());
                }
            }))
        })?;
        stage.pause();
        for n in 0..4 {
            stage.sender().try_send(n).expect("there is room");
        }
        let sender = stage.sender();
        let mut waits = pin!(sender.send(4));
        assert!(poll_once(&mut waits).await.is_none());
        stage.resume();
        waits.await.expect("it is open");
        stage.drain().await;
        assert_eq!(refused.take(), [Some(Refusal::Full)]);
        adds_up(&stage);
        Ok(())
    })
}

/// Room that was handed to a dropped sender goes to the next one. No sender is forgotten, whichever
/// of them are dropped.
#[test]
fn room_that_was_handed_to_a_sender_that_is_gone_goes_to_the_next() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        for gone in 0..8_u32 {
            let network = Network::new("fairness");
            let came = Noted::default();
            let note = came.clone();
            let stage = network.stage("stage").queue(1);
            let stage = stage.handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
            stage.pause();
            let sender = stage.sender();
            sender.try_send(0).expect("there is room");
            let mut sending = Vec::new();
            for n in 1..4 {
                let mut one = Box::pin(sender.send(n));
                assert!(poll_once(&mut one).await.is_none());
                sending.push(Some(one));
            }
            stage.resume();
            until(&stage, |stats| stats.queued == 0).await;
            // The first has been handed what room there is.
            for (n, one) in sending.iter_mut().enumerate() {
                one.take_if(|_| gone >> n & 1 != 0);
            }
            for mut one in sending.into_iter().flatten() {
                let sent = poll_once(&mut one).await;
                sent.expect("its turn has come").expect("it is open");
                until(&stage, |stats| stats.queued == 0).await;
            }
            stage.drain().await;
            let left = (1..4).filter(|n| gone >> (n - 1) & 1 == 0);
            assert_eq!(came.take(), [0].into_iter().chain(left).collect::<Vec<_>>());
            assert_eq!(stage.stats().queue_len, 0);
            adds_up(&stage);
        }
        Ok(())
    })
}

/// One that has been handed room and does nothing with it holds up nobody but for that room.
#[test]
fn a_stalled_sender_does_not_block_others() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("fairness");
        let came = Noted::default();
        let note = came.clone();
        let stage = network.stage("stage").queue(8);
        let stage = stage.handler(move |_| Ok(each(move |n: u32| note.add(n))))?;
        stage.pause();
        let sender = stage.sender();
        for n in 0..8 {
            sender.try_send(n).expect("there is room");
        }
        let mut idles = pin!(sender.send(100));
        assert!(poll_once(&mut idles).await.is_none());
        let other = stage.sender();
        let other = tussah::spawn(async move {
            for n in 8..200 {
                other.send(n).await.expect("it is open");
            }
        });
        idle().await;
        stage.resume();
        other.await.expect("no panic");
        idles.await.expect("it is open");
        stage.drain().await;
        assert_eq!(came.len(), 201);
        Ok(())
    })
}

/// Events of a cycle find room, though new ones fill the queue as soon as there is any.
#[test]
fn new_events_do_not_starve_a_cycle() -> Result<(), BuildError> {
    // Also where a controller, or the bound of a class, keeps them from filling it.
    type With = fn(StageBuilder<u32>) -> StageBuilder<u32>;
    let with: [With; 4] = [
        |stage| stage.queue(8),
        |stage| stage.queue(100).controller(Threshold::new(8)),
        |stage| stage.queue(100).class_queue(Class(0), 8),
        |stage| stage.queue(100).controller(Hasty).batch(1),
    ];
    for (at, with) in with.into_iter().enumerate() {
        for through_another in [false, true] {
            runtime(1).block_on_spawned(goes_round(at, with, through_another))?;
        }
    }
    Ok(())
}

/// Turns away whoever finds somebody else there.
struct Hasty;

impl Controller for Hasty {
    fn name(&self) -> &'static str {
        "hasty"
    }
    fn owns(&self) -> Owns {
        Owns::ADMISSION
    }
    fn cadence(&self) -> Cadence {
        Cadence::every_ns(1_000_000)
    }
    fn sample(&mut self, _: &Sample<'_>, _: u64) -> Settings {
        Settings::default()
    }
    fn on_enqueue(&mut self, arrival: &Arrival) -> Admission {
        match arrival.queue_len {
            0 => Admission::Admit,
            _ => Admission::Reject,
        }
    }
}

/// Sends events round, each 91 times.
async fn goes_round(
    at: usize,
    with: impl Fn(StageBuilder<u32>) -> StageBuilder<u32>,
    through_another: bool,
) -> Result<(), BuildError> {
    let network = Network::new("fairness");
    let [refused, rounds] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let declared = with(network.stage::<u32>("stage").batch(8)).declare()?;
    let any = declared.stage();
    let (back_to, note) = (any.clone(), Arc::clone(&refused));
    // The edge back is made before there is a cycle.
    let other = network.stage("other").queue(200).handler(move |edges| {
        let back = edges.to(&back_to).offer(8)?;
        Ok(each(move |n: u32| {
            if back.try_send(n).is_err() {
                note.fetch_add(1, Ordering::Relaxed);
            }
        }))
    })?;
    let (to, newcomers) = (any.clone(), any.sender());
    let (note, round, by_other) = (Arc::clone(&refused), Arc::clone(&rounds), other.clone());
    declared.handler(move |edges| {
        let back = edges.to(&to).offer(8)?;
        let other = edges.to(&by_other).queue(200)?;
        Ok(each(move |n: u32| {
            round.fetch_add(u64::from(n >= 10), Ordering::Relaxed);
            // Half of them by each way back.
            if n > 10 && through_another && n.is_multiple_of(2) {
                drop(other.try_send(n - 1));
            } else if n > 10 && back.try_send(n - 1).is_err() {
                note.fetch_add(1, Ordering::Relaxed);
            }
            while n > 0 && newcomers.try_send(0).is_ok() {}
        }))
    })?;
    let mut came = 0;
    any.pause();
    while any.sender().try_send(100 - (came % 2) as u32).is_ok() {
        came += 1;
    }
    any.resume();
    let busy = |stage: StageStats| stage.queued + stage.in_service > 0;
    while busy(any.stats()) || busy(other.stats()) {
        tussah::yield_now().await;
    }
    assert_eq!(refused.load(Ordering::Relaxed), 0, "{at}");
    let expected = came * 91 - came / 2;
    assert_eq!(rounds.load(Ordering::Relaxed), expected, "{at}");
    network.close();
    Ok(())
}

/// Events on one edge back take no room from another edge.
#[test]
fn each_edge_back_has_room_of_its_own() -> Result<(), BuildError> {
    runtime(1).block_on(async {
        let network = Network::new("fairness");
        let backs = Noted::default();
        let declared = network.stage::<u32>("stage").queue(8);
        let declared = declared.class_queue(Class(0), 6).declare()?;
        let any = declared.stage();
        let (to, note) = (any.clone(), backs.clone());
        let other = network.stage("other").handler(move |edges| {
            note.add(edges.to(&to).offer(2)?);
            Ok(each(|_: u32| ()))
        })?;
        let (to, note) = (any.clone(), backs.clone());
        declared.handler(move |edges| {
            edges.to(&other).queue(1)?;
            note.add(edges.to(&to).offer(3)?);
            Ok(each(|_: u32| ()))
        })?;
        any.pause();
        while any.sender().try_send(0).is_ok() {}
        assert_eq!(any.stats().queued, 6);
        let backs = backs.take();
        let came = backs.iter().zip([2, 3]).map(|(back, room)| {
            let came = (0..room).filter(|_| back.try_send(0).is_ok()).count();
            (came, room)
        });
        assert_eq!(came.collect::<Vec<_>>(), [(2, 2), (3, 3)]);
        let full = backs
            .iter()
            .map(|back| back.try_send(0).map_err(|error| error.why));
        assert_eq!(full.collect::<Vec<_>>(), [Err(Refusal::Full); 2]);
        any.resume();
        any.settled().await;
        adds_up(&any);
        Ok(())
    })
}
