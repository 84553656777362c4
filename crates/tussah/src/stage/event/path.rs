//! The path of an event: all events that descend from it.
//!
//! A stage [with a whole path](crate::stage::StageBuilder::whole_path) begins a path for each event
//! that a servlet takes, and does not end the batch before the path ends. Each event of the path
//! has a [`Hold`] on it. The path ends when the last hold is dropped. So it does not matter how an
//! event ends: handled, refused, shed, late, cancelled, or dropped by its handler or its stage.
//!
//! A hold travels like a trace: events that a handler sends between taking an event and taking the
//! next one belong to the path of that event.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Event, More};
use crate::stage::state::{Awaited, Waiting, Waits};
use crate::sync::oneshot;

/// A path, which ends when this is dropped.
pub(crate) struct Path {
    /// The resources that events of the entry wait for. No other stage has the same.
    waits: Arc<Waits>,
    /// True if an event of the path failed, or ended without being handled.
    has_failed: AtomicBool,
    /// Sends `has_failed` to the servlet that waits for the end.
    ended: Option<oneshot::Sender<bool>>,
    /// The path of the event with which this path began.
    outer: Option<Arc<Path>>,
}

/// The part of an event in its path.
pub(crate) struct Hold {
    path: Arc<Path>,
    at: At,
}

/// The place of an event with a hold.
enum At {
    /// With its sender or its handler.
    Hand,
    /// In a queue. The entry of the path counts it, and so do those of the outer paths, unless they
    /// know too many resources.
    Queue {
        _waiting: Option<Waiting>,
        _outer: Vec<Waiting>,
    },
    /// With its sender, after a stage has refused it.
    Refused,
}

impl Path {
    /// Returns the resources that events of the entry wait for, then those of the outer paths.
    pub(crate) fn waits(&self) -> impl Iterator<Item = &Arc<Waits>> {
        let paths = std::iter::successors(Some(self), |path| path.outer.as_deref());
        paths.map(|path| &path.waits)
    }

    /// Notes that an event of the path failed, or ended without being handled.
    pub(crate) fn fail(&self) {
        // Whoever drops the last hold sees this, because dropping an `Arc` synchronizes.
        self.has_failed.store(true, Ordering::Relaxed);
        if let Some(outer) = &self.outer {
            outer.fail();
        }
    }

    /// Returns the path to which an event of this path belongs once it is sent to an entry. An
    /// event that returns to the entry of its path leaves the path, and the paths within it,
    /// because the entry's servlets wait for the others.
    fn on_to(self: &Arc<Self>, entry: &Arc<Waits>) -> Option<Arc<Self>> {
        let mut path = self;
        while !Arc::ptr_eq(&path.waits, entry) {
            match &path.outer {
                None => return Some(Arc::clone(self)),
                Some(outer) => path = outer,
            }
        }
        path.outer.clone()
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            // The servlet may have ended with its runtime.
            let _ = ended.send(*self.has_failed.get_mut());
        }
    }
}

impl Hold {
    fn of(path: Arc<Path>) -> Self {
        Self { path, at: At::Hand }
    }

    /// Notes that the event is in the queue of a stage.
    pub(crate) fn queued(&mut self, stage: &Awaited) {
        let waits = self.path.waits();
        let mut waits = waits.map(|waits| Arc::clone(waits).begin(stage.clone()));
        self.at = At::Queue {
            _waiting: waits.next().flatten(),
            _outer: waits.flatten().collect(),
        };
    }

    /// Notes that the event has left a queue.
    pub(crate) fn taken(&mut self) {
        self.at = At::Hand;
    }

    pub(crate) fn fail(&self) {
        self.path.fail();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let At::Refused = self.at {
            self.path.fail();
        }
    }
}

impl More {
    /// Notes that the event failed, or ended without being handled.
    pub(crate) fn fail(&self) {
        if let Some(hold) = &self.hold {
            hold.fail();
        }
    }
}

impl<E> Event<E> {
    /// Begins a path with this event, within its present path. The receiver gets whether the path
    /// has failed when the path ends.
    pub(crate) fn begin_path(&mut self, waits: Arc<Waits>) -> oneshot::Receiver<bool> {
        let (ended, receiver) = oneshot::channel();
        let more = self.more();
        let outer = more.hold.take();
        more.hold = Some(Hold::of(Arc::new(Path {
            waits,
            has_failed: AtomicBool::new(false),
            ended: Some(ended),
            outer: outer.map(|hold| Arc::clone(&hold.path)),
        })));
        receiver
    }

    /// Returns the event's path, if it belongs to one.
    pub(crate) fn path(&self) -> Option<&Arc<Path>> {
        let hold = self.more.as_ref()?.hold.as_ref()?;
        Some(&hold.path)
    }

    /// Makes an event that is about to be sent belong to a path, unless it belongs to one already.
    #[cold]
    pub(crate) fn join(&mut self, path: Arc<Path>) {
        let more = self.more();
        more.hold.get_or_insert_with(|| Hold::of(path));
    }

    /// Makes an event that is sent to the entry of a path leave that path.
    #[inline]
    pub(crate) fn goes_to(&mut self, entry: &Arc<Waits>) {
        let Some(path) = self.path() else { return };
        let on = path.on_to(entry);
        let stays = on.as_ref().is_some_and(|on| Arc::ptr_eq(on, path));
        if !stays {
            self.more().hold = on.map(Hold::of);
        }
    }

    /// Notes that a stage refused the event.
    pub(crate) fn refused(mut self) -> Self {
        if let Some(hold) = self.hold() {
            hold.at = At::Refused;
        }
        self
    }

    pub(crate) fn hold(&mut self) -> Option<&mut Hold> {
        self.more.as_mut()?.hold.as_mut()
    }
}
