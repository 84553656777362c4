//! A key with its events, and the turns of the keys.

use std::collections::VecDeque;

use crate::stage::control::KeyLoad;
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
    /// The number of events that have arrived, and the number of these that have ended.
    pub(super) arrived: u64,
    pub(super) ended: u64,
    /// The number of events that the controller has rejected.
    pub(super) rejected: u64,
    /// The number of events that were served recently, and the time that this took, in nanoseconds.
    pub(super) recent: (u64, u64),
}

impl<E> Default for Key<E> {
    fn default() -> Self {
        Self {
            events: VecDeque::new(),
            busy: false,
            buried: 0,
            listed: None,
            pays: 0,
            arrived: 0,
            ended: 0,
            rejected: 0,
            recent: (0, 0),
        }
    }
}

impl<E> Key<E> {
    /// Returns the number of events that have not been cancelled.
    pub(super) fn waiting(&self) -> usize {
        self.events.len() - self.buried
    }

    /// Notes that events have ended, and the time that they took if it is known.
    pub(super) fn ended(&mut self, events: u64, ns: Option<u64>) {
        self.ended += events;
        if let Some(ns) = ns {
            let (known, known_ns) = self.recent;
            // The counts are halved when they exceed the window.
            let part = if known > WINDOW { 2 } else { 1 };
            self.recent = (known / part + events, (known_ns / part).saturating_add(ns));
        }
    }
}

/// A key, and the other keys with which it takes turns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyTurns {
    /// The number of events of the key that are queued.
    pub(crate) queued: u64,
    /// True if events of the key are in service.
    pub(super) is_busy: bool,
    pub(super) arrived: u64,
    pub(super) ended: u64,
    pub(super) rejected: u64,
    pub(super) recent: (u64, u64),
    /// The number of keys that have events or are busy, and the number of these that are not busy.
    pub(super) keys: u64,
    pub(super) ready: u64,
}

impl KeyTurns {
    /// Returns the events of the key, of which `taken` have just left the queue, if an event of any
    /// key takes `mean_ns` on average.
    pub(crate) fn load(&self, taken: u64, mean_ns: f64) -> KeyLoad {
        let (events, ns) = self.recent;
        let service_ns = (ns as f64 + PRIOR * mean_ns) / (events as f64 + PRIOR);
        KeyLoad {
            events: self.queued + taken.max(u64::from(self.is_busy)),
            service_ns: service_ns as u64,
            arrived: self.arrived,
            ended: self.ended,
            rejected: self.rejected,
        }
    }

    /// Returns the number of events that the stage serves before the next event of the key, if the
    /// other keys get as many events as are served. Each key has up to `turn` events in its turn.
    /// The other keys have `queued` events in the queue, and `in_service` events are in service.
    pub(crate) fn ahead(&self, turn: u64, queued: u64, in_service: u64) -> u64 {
        let of_turns = |keys: u64, events: u64| keys.saturating_mul(turn).min(events);
        let first = of_turns(self.ready, queued);
        let round = of_turns(self.keys, queued.saturating_add(in_service));
        let rounds = (self.queued / turn).saturating_mul(round);
        rounds.saturating_add(self.queued).saturating_add(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_long_events_has_a_mean_of_its_own() {
        let mut key = Key::<()>::default();
        let service_ns = |key: &Key<()>| {
            let turns = KeyTurns {
                recent: key.recent,
                ..KeyTurns::default()
            };
            turns.load(0, 100.0).service_ns
        };
        assert_eq!(service_ns(&key), 100);
        key.ended(1, Some(600));
        assert_eq!(service_ns(&key), 200);
        for _ in 0..1000 {
            key.ended(1, Some(600));
        }
        assert!(service_ns(&key) > 500, "{}", service_ns(&key));
        // A change is soon known.
        for _ in 0..64 {
            key.ended(1, Some(50));
        }
        assert!(service_ns(&key) < 150, "{}", service_ns(&key));
        key.ended(7, None);
        assert_eq!(key.ended, 1 + 1000 + 64 + 7);
    }

    /// Returns the events before a new event of a key that has `queued` events, of 10 keys of which
    /// 6 are ready, while the others have 20 events in the queue and 4 events are in service.
    fn ahead(queued: u64, turn: u64) -> u64 {
        let turns = KeyTurns {
            queued,
            keys: 10,
            ready: 6,
            ..KeyTurns::default()
        };
        turns.ahead(turn, 20, 4)
    }

    #[test]
    fn an_event_waits_for_the_turns_of_the_keys_before_its_own() {
        // One event of each ready key, and one of each key for each earlier event of its own key.
        assert_eq!(ahead(0, 1), 6);
        assert_eq!(ahead(1, 1), 6 + 1 + 10);
        assert_eq!(ahead(5, 1), 6 + 5 + 50);
        // The others have fewer events than three each.
        assert_eq!(ahead(2, 3), 18 + 2);
        assert_eq!(ahead(3, 3), 18 + 3 + 24);
        assert_eq!(ahead(8, 100), 20 + 8);
        assert_eq!(ahead(u64::MAX, 1), u64::MAX);
    }
}
