//! The keys of a keyed stage, and their load.

use super::{Run, State};
use crate::stage::control::KeyLoad;
use crate::stage::queue::Queue;

impl<E> State<E> {
    /// Counts an event that the queue has looked at as an arrival of its key. If the queue counts
    /// the events of each key, returns the credits that are served before this event, and the
    /// events of its key.
    pub(super) fn arrives_in_key(&mut self, class: usize) -> Option<(u64, KeyLoad)> {
        let Queue::Keyed(keyed) = &mut self.queue else {
            return None;
        };
        keyed.arrives();
        let key = keyed.looked_at()?;
        let (turn, _) = self.share();
        let others = self.all_classes.ahead(class, &self.queued);
        let others = others.saturating_sub(key.queued);
        let ahead = key.ahead(turn as u64, others, self.in_service);
        Some((self.in_credits(ahead), key.load(0, self.service_mean_ns)))
    }

    /// Returns the credits in the queue that wait only for a servlet.
    pub(super) fn ready(&self) -> u64 {
        match &self.queue {
            Queue::Lanes(_) => self.credits(),
            Queue::Keyed(keyed) => keyed.ready_keys().map_or(self.credits(), |keys| {
                let (turn, _) = self.share();
                self.in_credits(self.len.min(keys.saturating_mul(turn as u64)))
            }),
        }
    }

    /// Returns the cost of this many queued events, if each has the mean cost.
    pub(super) fn in_credits(&self, events: u64) -> u64 {
        if self.credits == self.len {
            events
        } else {
            (events as f64 * self.credits as f64 / self.len.max(1) as f64) as u64
        }
    }

    /// Returns the events of the key from which an event was just taken, if somebody `asks`.
    pub(super) fn opened_key(&self, asks: bool) -> Option<KeyLoad> {
        match &self.queue {
            Queue::Keyed(keyed) if asks => {
                let key = keyed.opened();
                key.map(|key| key.load(1, self.service_mean_ns))
            }
            _ => None,
        }
    }

    /// Ends the busy time of a run's keys, and notes how many of their events have ended. The time
    /// of the events is known if all of them are of one key.
    pub(super) fn served_keys(
        &mut self,
        run: &mut Run<E>,
        (finished, lost): (u64, u64),
        service_ns: u64,
    ) {
        if let Queue::Keyed(keyed) = &mut self.queue {
            let is_one = run.keys.len() == 1;
            for &(key, events) in &run.keys {
                let events = if is_one {
                    finished + lost
                } else {
                    events as u64
                };
                keyed.ended(key, events, (is_one && lost == 0).then_some(service_ns));
            }
        }
        self.release_keys(run);
    }
}
