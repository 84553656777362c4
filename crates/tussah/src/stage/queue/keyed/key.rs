//! A key with its events, and the turns of the keys.

use std::collections::VecDeque;

use crate::stage::event::Event;

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
}

impl<E> Default for Key<E> {
    fn default() -> Self {
        Self {
            events: VecDeque::new(),
            busy: false,
            buried: 0,
            listed: None,
            pays: 0,
        }
    }
}

impl<E> Key<E> {
    /// Returns the number of events that have not been cancelled.
    pub(super) fn waiting(&self) -> usize {
        self.events.len() - self.buried
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
}

impl KeyTurns {
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
        };
        turns.ahead(turn, 20, 4)
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
