//! The connections that are open: how many, and which.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tussah::sync::Notify;

use super::connection::Connection;

/// Bound, in connections: those that are told at a time that there are too many; others are closed without a word.
const REFUSED_MAX: usize = 1000;

/// The connections of a server.
pub(crate) struct Connections {
    max: usize,
    refused: AtomicUsize,
    open: Mutex<Open>,
    /// Called when the last one ends.
    none: Notify,
}

#[derive(Default)]
struct Open {
    count: usize,
    places: Vec<Weak<Connection>>,
    free: Vec<u32>,
}

/// A connection that is told that there are too many.
pub(crate) struct Refused<'a>(&'a AtomicUsize);

impl Drop for Refused<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection's place among those that are open.
pub(crate) struct Place(u32);

impl Connections {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            refused: AtomicUsize::new(0),
            open: Mutex::default(),
            none: Notify::new(),
        }
    }

    /// Takes a connection in; `None` if there are as many as there may be.
    pub(crate) fn enter(&self, connection: &Arc<Connection>) -> Option<Place> {
        let mut open = self.open.lock();
        if open.count >= self.max {
            return None;
        }
        open.count += 1;
        let connection = Arc::downgrade(connection);
        let place = if let Some(place) = open.free.pop() {
            open.places[place as usize] = connection;
            place
        } else {
            open.places.push(connection);
            (open.places.len() - 1) as u32
        };
        Some(Place(place))
    }

    /// Takes in one that is to be told that there are too many, until what this returns is dropped; `None` if there are too many of these.
    pub(crate) fn refuse(&self) -> Option<Refused<'_>> {
        let refused = Refused(&self.refused);
        (self.refused.fetch_add(1, Ordering::Relaxed) < REFUSED_MAX).then_some(refused)
    }

    /// A connection has ended.
    pub(crate) fn leave(&self, place: &Place) {
        let mut open = self.open.lock();
        open.places[place.0 as usize] = Weak::new();
        open.free.push(place.0);
        open.count -= 1;
        if open.count == 0 {
            drop(open);
            self.none.notify_waiters();
        }
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().count
    }

    /// Has all look what there is to do.
    pub(crate) fn wake_all(&self) {
        let open: Vec<_> = self.open.lock().places.clone();
        for connection in open.iter().filter_map(Weak::upgrade) {
            connection.wake();
        }
    }

    /// Has all end at once, whatever they do.
    pub(crate) fn cut_all(&self) {
        let open: Vec<_> = self.open.lock().places.clone();
        for connection in open.iter().filter_map(Weak::upgrade) {
            connection.cut();
        }
    }

    /// Waits until none is open.
    pub(crate) async fn none(&self) {
        loop {
            let none = self.none.notified();
            if self.count() == 0 {
                return;
            }
            none.await;
        }
    }
}
