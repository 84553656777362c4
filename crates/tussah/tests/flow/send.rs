//! Sending: outboxes, edges, delays, and calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tussah::flow::{Args, Dropped, Graph, Out, Via, WhenFull, module};
use tussah::sync::Mutex;

use super::{Note, Notes};
use crate::{by_hand, runtime};

/// Sends all numbers below its item.
#[derive(Default)]
struct Below;

#[module]
impl Below {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        (0..number).for_each(|number| out.send(number));
    }
}

fn below_and_note(notes: &Notes, via: Via) -> Graph {
    let mut graph = Graph::new("g");
    graph
        .add::<Below>("below", Args::new())
        .expect("the name is free");
    graph
        .add::<Note<u64>>("note", notes.args())
        .expect("the name is free");
    graph.connect_via("below", "note", via).expect("both exist");
    graph
}

#[test]
fn a_plain_module_sends_more_than_the_receiver_has_room_for() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let running = below_and_note(&notes, Via::queue(1000))
            .start()
            .expect("it is whole");
        running
            .input("below")
            .expect("it takes numbers")
            .send(2000u64)
            .await;
        running.drain().await;
    });
    // All in order, although at most 1000 of them had room.
    assert_eq!(
        notes.take(),
        (0..2000).map(|n| n.to_string()).collect::<Vec<_>>()
    );
}

/// Notes the items that another module has dropped.
struct Lost(Notes);

#[module]
impl Lost {
    fn init(notes: Notes) -> Self {
        Self(notes)
    }

    fn run(&mut self, lost: Dropped<u64>) {
        self.0.add(format!("{:?}: {}", lost.item, lost.reason));
    }
}

#[test]
fn a_plain_module_cannot_send_without_bound() {
    let notes = Notes::default();
    runtime(1).block_on(async {
        let mut graph = below_and_note(&Notes::default(), Via::queue(1));
        graph
            .add::<Lost>("lost", notes.args())
            .expect("the name is free");
        graph.connect("below.dropped", "lost").expect("both exist");
        let running = graph.start().expect("it is whole");
        running
            .input("below")
            .expect("it takes numbers")
            .send(5000u64)
            .await;
        running.drain().await;
    });
    assert_eq!(notes.take(), ["Some(5000): its handler panicked"]);
}

#[test]
fn an_item_goes_to_all_edges_of_a_port() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let mut graph = below_and_note(&notes, Via::default());
        graph
            .add::<Note<u64>>("other", notes.args())
            .expect("the name is free");
        graph.connect("below", "other").expect("both exist");
        let running = graph.start().expect("it is whole");
        running
            .input("below")
            .expect("it takes numbers")
            .send(2u64)
            .await;
        running.drain().await;
    });
    assert_eq!(notes.sorted(), ["0", "0", "1", "1"]);
}

#[test]
fn a_call_runs_in_the_sender() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let running = below_and_note(&notes, Via::call())
            .start()
            .expect("it is whole");
        running
            .input("below")
            .expect("it takes numbers")
            .send(3u64)
            .await;
        while running.stats("below").expect("it exists").finished < 1 {
            tussah::yield_now().await;
        }
        let stats = running.stats("note").expect("it exists");
        assert_eq!((stats.called, stats.refused), (3, 0));
        running.drain().await;
    });
    assert_eq!(notes.take(), ["0", "1", "2"]);
}

/// The number of steps that two senders of one module have made.
type Steps = Arc<AtomicUsize>;

fn wait_for(steps: &Steps, step: usize) {
    while steps.load(Ordering::SeqCst) < step {
        std::thread::yield_now();
    }
}

/// Sends 0, and then 1 when the receiver is free again.
struct WhileInUse(Steps);

#[module]
impl WhileInUse {
    fn init(steps: Steps) -> Self {
        Self(steps)
    }

    fn run(&self, _start: u64, out: &impl Out<u64>) {
        wait_for(&self.0, 1);
        out.send(0);
        self.0.store(2, Ordering::SeqCst);
        wait_for(&self.0, 3);
        // The receiver is released soon after its last step.
        for _ in 0..1000 {
            std::thread::yield_now();
        }
        out.send(1);
    }
}

/// Handles 2 for as long as the other sender needs to find it in use, and notes numbers.
struct InUse(Notes, Steps);

#[module]
impl InUse {
    fn init(notes: Notes, steps: Steps) -> Self {
        Self(notes, steps)
    }

    fn run(&mut self, number: u64) {
        if number == 2 {
            self.1.store(1, Ordering::SeqCst);
            wait_for(&self.1, 2);
            self.1.store(3, Ordering::SeqCst);
        }
        self.0.add(number);
    }
}

#[test]
fn calls_of_one_sender_keep_their_order_beside_another_sender() {
    let notes = Notes::default();
    runtime(2).block_on(async {
        let (mut graph, steps) = (Graph::new("g"), Steps::default());
        let args = || Args::new().with("steps", Arc::clone(&steps));
        graph
            .add::<WhileInUse>("zero", args())
            .expect("the name is free");
        graph
            .add::<Pass>("two", Args::new())
            .expect("the name is free");
        graph
            .add::<InUse>("in use", args().with("notes", notes.clone()))
            .expect("the name is free");
        for name in ["zero", "two"] {
            graph
                .connect_via(name, "in use", Via::call())
                .expect("both exist");
        }
        let running = graph.start().expect("it is whole");
        for (name, number) in [("two", 2u64), ("zero", 0)] {
            let input = running.input(name).expect("it takes numbers");
            input.send(number).await;
        }
        running.drain().await;
    });
    assert_eq!(notes.take(), ["2", "0", "1"]);
}

/// Sends numbers on.
#[derive(Default)]
struct Pass;

#[module]
impl Pass {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

#[test]
fn a_call_waits_for_the_room_of_what_the_receiver_sends() {
    let (notes, lock) = (Notes::default(), Arc::new(Mutex::new(())));
    runtime(2).block_on(async {
        let mut graph = Graph::new("g");
        graph
            .add::<Pass>("pass", Args::new())
            .expect("the name is free");
        graph
            .add::<Below>("below", Args::new())
            .expect("the name is free");
        let args = notes.args().with("lock", Arc::clone(&lock));
        graph
            .add::<Locked>("locked", args)
            .expect("the name is free");
        graph
            .connect_via("pass", "below", Via::call())
            .expect("both exist");
        graph.connect("below", "locked").expect("both exist");
        let running = graph.start().expect("it is whole");
        let turn = lock.lock().await;
        let input = running.input("pass").expect("it takes numbers");
        input.send(1500u64).await;
        while running.stats("below").expect("it exists").called == 0 {
            tussah::yield_now().await;
        }
        // There is no room for all 1500.
        crate::idle().await;
        assert_eq!(running.stats("pass").expect("it exists").finished, 0);
        drop(turn);
        running.drain().await;
        assert_eq!(running.stats("pass").expect("it exists").finished, 1);
    });
    assert_eq!(
        notes.take(),
        (0..1500).map(|n| n.to_string()).collect::<Vec<_>>()
    );
}

/// Waits for its turn in a lock that the test holds.
struct Locked(Notes, Arc<Mutex<()>>);

#[module]
impl Locked {
    fn init(notes: Notes, lock: Arc<Mutex<()>>) -> Self {
        Self(notes, lock)
    }

    async fn run(&mut self, number: u64) {
        let _turn = self.1.lock().await;
        self.0.add(number);
    }
}

#[test]
fn an_edge_that_sheds_never_waits() {
    let (notes, lost) = (Notes::default(), Notes::default());
    let lock = Arc::new(Mutex::new(()));
    runtime(1).block_on(async {
        let held = lock.lock_arc().await;
        let mut graph = Graph::new("g");
        graph
            .add::<Below>("below", Args::new())
            .expect("the name is free");
        let args = notes.args().with("lock", lock.clone());
        graph
            .add::<Locked>("locked", args)
            .expect("the name is free");
        graph
            .add::<Lost>("lost", lost.args())
            .expect("the name is free");
        let via = Via::queue(1).when_full(WhenFull::Shed);
        graph
            .connect_via("below", "locked", via)
            .expect("both exist");
        let all = Via::queue(5000);
        graph
            .connect_via("locked.dropped", "lost", all)
            .expect("both exist");
        let running = graph.start().expect("it is whole");
        running
            .input("below")
            .expect("it takes numbers")
            .send(5000u64)
            .await;
        while running.stats("below").expect("it exists").finished < 1 {
            tussah::yield_now().await;
        }
        drop(held);
        running.drain().await;
    });
    let (notes, lost) = (notes.take().len(), lost.take());
    assert!(
        notes < 5000 && lost.len() == 5000 - notes,
        "{notes}, {}",
        lost.len()
    );
    assert!(lost[0].ends_with("): shed"), "{}", lost[0]);
}

#[test]
fn an_edge_delays_its_items() {
    let (clock, runtime) = by_hand();
    let (notes, lost) = (Notes::default(), Notes::default());
    runtime.block_on(async {
        let via = Via::queue(2).after(Duration::from_millis(50));
        let mut graph = below_and_note(&notes, via);
        graph
            .add::<Lost>("lost", lost.args())
            .expect("the name is free");
        graph.connect("note.dropped", "lost").expect("both exist");
        let running = graph.start().expect("it is whole");
        running
            .input("below")
            .expect("it takes numbers")
            .send(3u64)
            .await;
        while running.stats("below").expect("it exists").finished < 1 {
            tussah::yield_now().await;
        }
        clock.advance(Duration::from_millis(49));
        for _ in 0..100 {
            tussah::yield_now().await;
        }
        assert_eq!(notes.take(), [""; 0]);
        clock.advance(Duration::from_millis(1));
        while notes.0.lock().len() < 2 {
            tussah::yield_now().await;
        }
        running.drain().await;
    });
    assert_eq!(notes.take(), ["0", "1"]);
    // The third item had no room.
    assert_eq!(lost.take(), ["Some(2): shed"]);
}

#[test]
fn a_drain_waits_for_delayed_items_and_takes_no_others() {
    let (clock, runtime) = by_hand();
    let (notes, lost) = (Notes::default(), Notes::default());
    runtime.block_on(async {
        let via = Via::queue(10).after(Duration::from_millis(50));
        let mut graph = below_and_note(&notes, via);
        graph
            .add::<Lost>("lost", lost.args())
            .expect("the name is free");
        graph.connect("note.dropped", "lost").expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("below").expect("it takes numbers");
        input.send(3u64).await;
        let drained = async {
            running.drain().await;
            notes.add("drained");
        };
        let moves = async {
            while running.stats("below").expect("it exists").finished < 1 {
                tussah::yield_now().await;
            }
            running
                .input("note")
                .expect("it takes numbers")
                .send(7u64)
                .await;
            assert_eq!(notes.take(), [""; 0]);
            clock.advance(Duration::from_millis(50));
        };
        futures_lite::future::zip(drained, moves).await;
    });
    assert_eq!(notes.take(), ["0", "1", "2", "drained"]);
    assert_eq!(lost.take(), ["Some(7): its stage was shut down"]);
}

#[test]
fn the_oldest_item_makes_room() {
    let (notes, lost) = (Notes::default(), Notes::default());
    runtime(1).block_on(async {
        let via = Via::queue(10).when_full(WhenFull::DropOldest);
        let mut graph = below_and_note(&notes, via);
        graph
            .add::<Lost>("lost", lost.args())
            .expect("the name is free");
        graph
            .connect_via("note.dropped", "lost", Via::queue(10_000))
            .expect("both exist");
        let running = graph.start().expect("it is whole");
        let input = running.input("below").expect("it takes numbers");
        input.send(5000u64).await;
        running.drain().await;
    });
    let (notes, lost) = (notes.take(), lost.take());
    assert!(lost.len() > 1000, "{}", lost.len());
    assert_eq!(notes.len() + lost.len(), 5000);
    assert_eq!(notes.last().map(String::as_str), Some("4999"));
    assert!(lost[0].ends_with("shed"), "{}", lost[0]);
}
