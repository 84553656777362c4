//! A key with its events, and the turns of the keys.

use std::collections::VecDeque;

use crate::stage::event::Event;

/// The number of services of a key that are remembered.
const WINDOW: u64 = 32;

/// The weight, in events, of the mean service time of all keys in the estimate for one key.
const PRIOR: f64 = 4.0;

/// A key that is busy or has events.
pub(super) struct Key<E> {
    pub(super) events: VecDeque<Event<E>>,
    pub(super) busy: bool,
    /// The number of cancelled events among `events`.
    pub(super) buried: usize,
    /// The class in which the key is ready, and its ticket there.
    pub(super) listed: Option<(usize, u64)>,
    /// The class that pays for the events that are taken: the key's class when it was opened.
    pub(super) pays: usize,
    /// The number of events of the key that were served recently, and the time that this took, in
    /// nanoseconds.
    pub(super) served: (u64, u64),
}

impl<E> Default for Key<E> {
    fn default() -> Self {
        Self {
            events: VecDeque::new(),
            busy: false,
            buried: 0,
            listed: None,
            pays: 0,
            served: (0, 0),
        }
    }
}

impl<E> Key<E> {
    /// Returns the number of events that have not been cancelled.
    pub(super) fn waiting(&self) -> usize {
        self.events.len() - self.buried
    }

    /// Notes the number of events that were served, and the time that this took.
    pub(super) fn served(&mut self, events: u64, ns: u64) {
        let (known, known_ns) = self.served;
        // The counts are halved when they exceed the window.
        let part = if known > WINDOW { 2 } else { 1 };
        self.served = (known / part + events, (known_ns / part).saturating_add(ns));
    }
}

/// The turns for which the next event of a key waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyTurns {
    /// The number of events of the key that are queued.
    pub(crate) queued: u64,
    /// True if an event of the key is in service.
    pub(crate) is_busy: bool,
    /// The number of keys that have events or are busy.
    pub(super) keys: u64,
    /// The number of events of the key that were served recently, and the time that this took, in
    /// nanoseconds.
    pub(super) served: (u64, u64),
}

impl KeyTurns {
    /// Returns the time that an event of the key takes, in nanoseconds, if the mean of all keys is
    /// `mean_ns`.
    pub(crate) fn service_ns(&self, mean_ns: f64) -> f64 {
        let (events, ns) = self.served;
        (ns as f64 + PRIOR * mean_ns) / (events as f64 + PRIOR)
    }

    /// Returns the number of events that the stage serves before this event if the other keys get
    /// as many events as are served. Each key has up to `turn` events in its turn. The other keys
    /// have `queued` events in the queue, and `in_service` events are in service.
    pub(crate) fn ahead(&self, turn: u64, queued: u64, in_service: u64) -> u64 {
        let of_turns = |keys: u64, events: u64| keys.saturating_mul(turn).min(events);
        let first = of_turns(self.keys, queued);
        let round = of_turns(self.keys, queued.saturating_add(in_service));
        let rounds = (self.queued / turn).saturating_mul(round);
        rounds.saturating_add(self.queued).saturating_add(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the events before a new event of a key that has `queued` events, while 9 other keys
    /// have 20 events in the queue and 4 events are in service.
    fn ahead(queued: u64, turn: u64) -> u64 {
        let turns = KeyTurns {
            queued,
            is_busy: false,
            keys: 10,
            served: (0, 0),
        };
        turns.ahead(turn, 20, 4)
    }

    #[test]
    fn a_key_with_long_events_has_a_mean_of_its_own() {
        let mut key = Key::<()>::default();
        let service_ns = |key: &Key<()>| {
            let turns = KeyTurns {
                queued: 0,
                is_busy: true,
                keys: 1,
                served: key.served,
            };
            turns.service_ns(100.0)
        };
        assert_eq!(service_ns(&key), 100.0);
        key.served(1, 600);
        assert_eq!(service_ns(&key), 200.0);
        for _ in 0..1000 {
            key.served(1, 600);
        }
        assert!(service_ns(&key) > 500.0, "{}", service_ns(&key));
        // A change is soon known.
        for _ in 0..64 {
            key.served(1, 50);
        }
        assert!(service_ns(&key) < 150.0, "{}", service_ns(&key));
    }

    #[test]
    fn an_event_waits_for_the_turns_of_the_keys_before_its_own() {
        // One event of each key, and again for each earlier event of its own key.
        assert_eq!(ahead(0, 1), 10);
        assert_eq!(ahead(1, 1), 10 + 1 + 10);
        assert_eq!(ahead(5, 1), 10 + 5 + 50);
        // The others have fewer events than three each.
        assert_eq!(ahead(2, 3), 20 + 2);
        assert_eq!(ahead(3, 3), 20 + 3 + 24);
        assert_eq!(ahead(8, 100), 20 + 8);
        assert_eq!(ahead(u64::MAX, 1), u64::MAX);
    }
}
