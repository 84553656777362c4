//! Models of the cell: a canceller against a sender and a servlet that takes the event and sends it
//! on.

#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "it is taken twice: beside this module it is a model, which uses less of it"
)]
#[path = "cell.rs"]
mod cell;

use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread::spawn;

use cell::{Cell, Left, Spot};

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
    use loom::sync::{Mutex as Lock, MutexGuard};

    pub(crate) struct Mutex<T>(Lock<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(Lock::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("a model does not go on after a panic")
        }
    }
}

/// The counts of a stage for one event.
#[derive(Debug, Default)]
struct Counts {
    arrived: i32,
    /// Counted as queued.
    queued: i32,
    cancelled: i32,
    taken: i32,
    /// The event is in the queue.
    there: bool,
}

type Stage = Arc<Mutex<Counts>>;

fn stage() -> Stage {
    Arc::new(Mutex::new(Counts::default()))
}

fn lock(stage: &Stage) -> MutexGuard<'_, Counts> {
    stage.lock().expect("a model does not go on after a panic")
}

fn send(cell: &Cell<Stage>, stage: &Stage) {
    let mut counts = lock(stage);
    counts.arrived += 1;
    counts.queued += 1;
    counts.there = true;
    let spot = Spot {
        home: Arc::clone(stage),
        part: 0,
        class: 0,
        credits: 1,
    };
    if cell.queued(spot).is_some() {
        bury(&mut counts);
    }
}

fn bury(counts: &mut Counts) {
    counts.queued -= 1;
    counts.cancelled += 1;
}

/// Takes the event, if it is there and wanted.
fn take(cell: &Cell<Stage>, stage: &Stage) -> bool {
    let mut counts = lock(stage);
    if !std::mem::take(&mut counts.there) {
        return false;
    }
    match cell.leave() {
        Left::Live => {
            counts.queued -= 1;
            counts.taken += 1;
            return true;
        }
        Left::Cancelled => bury(&mut counts),
        Left::Buried(_) => {}
    }
    false
}

fn cancel(cell: &Cell<Stage>) -> bool {
    let Some(home) = cell.cancel() else {
        return false;
    };
    if let Some((stage, visit)) = home {
        let mut counts = lock(&stage);
        if cell.bury(visit).is_some() {
            bury(&mut counts);
        }
    }
    true
}

/// Takes the remaining event, and checks that the event was counted once.
fn settle(cell: &Cell<Stage>, stage: &Stage) -> i32 {
    take(cell, stage);
    let counts = lock(stage);
    assert_eq!(counts.queued, 0, "{counts:?}");
    assert_eq!(
        counts.arrived,
        counts.cancelled + counts.taken,
        "{counts:?}"
    );
    assert!(!counts.there);
    counts.cancelled
}

#[test]
fn a_sender_a_servlet_and_a_canceller() {
    loom::model(|| {
        let (cell, stage) = (Arc::new(Cell::new()), stage());
        let servlet = {
            let (cell, stage) = (Arc::clone(&cell), Arc::clone(&stage));
            spawn(move || take(&cell, &stage))
        };
        let canceller = {
            let cell = Arc::clone(&cell);
            spawn(move || cancel(&cell))
        };
        send(&cell, &stage);
        servlet.join().expect("no panic");
        assert!(canceller.join().expect("no panic"));
        settle(&cell, &stage);
        assert!(cell.is_cancelled());
        // If the event was taken first, the servlet has to detect the cancellation.
        assert_eq!(lock(&stage).arrived, 1);
    });
}

#[test]
fn a_canceller_that_comes_after_the_event_was_sent_on() {
    loom::model(|| {
        let (cell, first, second) = (Arc::new(Cell::new()), stage(), stage());
        send(&cell, &first);
        let canceller = {
            let cell = Arc::clone(&cell);
            spawn(move || cancel(&cell))
        };
        let sent_on = take(&cell, &first);
        if sent_on {
            send(&cell, &second);
        }
        assert!(canceller.join().expect("no panic"));
        let cancelled = settle(&cell, &first);
        assert_eq!(cancelled, i32::from(!sent_on));
        if sent_on {
            // The event ends there: nobody has taken it.
            assert_eq!(settle(&cell, &second), 1);
        }
    });
}

#[test]
fn a_canceller_and_the_end() {
    loom::model(|| {
        let (cell, stage) = (Arc::new(Cell::new()), stage());
        send(&cell, &stage);
        let canceller = {
            let cell = Arc::clone(&cell);
            spawn(move || cancel(&cell))
        };
        let taken = take(&cell, &stage);
        if taken {
            cell.end();
        }
        let cancelled = canceller.join().expect("no panic");
        assert_eq!(cell.is_cancelled(), cancelled);
        assert!(taken || cancelled);
        settle(&cell, &stage);
    });
}
