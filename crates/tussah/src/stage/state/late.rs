//! Queued events that end before their turn, because their deadline has passed or the controller
//! considers them overdue.
//!
//! Checking a whole queue for deadlines costs a few nanoseconds per event. Between two checks, the
//! state therefore waits at least [`PAUSE_NS`], and at least [`PAUSE_EVENT_NS`] per queued event.
//! For overdue events, it only checks the oldest event of each class, so a check costs no more than
//! the events that it ends.

use super::State;
use super::work::departure;
use crate::stage::control::Departure;
use crate::stage::event::{Class, Event, NEVER, Reason, Watch};
use crate::stage::queue::Queue;

/// Bound, in nanoseconds: the shortest time between two checks of a queue for deadlines, and so the
/// delay with which an event may end. A caller that waits for a response does not notice it.
const PAUSE_NS: u64 = 1_000_000;
/// Bound, in nanoseconds for each queued event: the shortest time between two checks of a long
/// queue for deadlines. A check takes a few nanoseconds per event, so it costs a few percent of a
/// worker's time.
const PAUSE_EVENT_NS: u64 = 100;
/// Bound, in nanoseconds: the maximum time between two checks for overdue events in an
/// overload. With the delay of a busy worker, a client gets its rejection within 50 ms.
const SWEEP_NS: u64 = 25_000_000;

impl<E> State<E> {
    /// Schedules a check for overdue events, if any event can be overdue now.
    pub(crate) fn schedule_sweep(&mut self, now_ns: u64) {
        if !matches!(self.queue, Queue::Lanes(_)) || !self.works() {
            return;
        }
        let overdue = (0..self.classes).any(|class| {
            let longest = Departure {
                class: Class(class as u8),
                sojourn_ns: u64::MAX,
                queue_len: self.credits,
                key: None,
                now_ns,
            };
            self.controllers.is_overdue(&longest)
        });
        self.watch.overdue = overdue;
        self.sweep_soon(now_ns);
    }

    /// Schedules a check for overdue events if the last sample found that any event can be overdue.
    /// The next sample may come too late for the events of a stage that was idle.
    #[inline]
    pub(super) fn sweep_soon(&mut self, now_ns: u64) {
        if self.watch.overdue {
            self.watch.sweep_ns = self.watch.sweep_ns.min(now_ns.saturating_add(SWEEP_NS));
        }
    }

    /// Takes out the oldest event of the last class that has one, to make room for a newer event.
    /// In a queue with keys, it is the oldest event of some key.
    pub(crate) fn shed_oldest(&mut self, now_ns: u64) -> Option<Event<E>> {
        loop {
            let event = match &mut self.queue {
                Queue::Lanes(lanes) => {
                    let mut classes = (0..self.classes).rev();
                    classes.find_map(|class| lanes.take_oldest(class))
                }
                Queue::Keyed(keyed) => keyed.take_out(),
            }?;
            if let Some(event) = self.count_out(event) {
                self.counts.shed += 1;
                self.end_busy(now_ns);
                return Some(event);
            }
        }
    }

    /// Takes out the queued events that end now, and schedules the next check.
    pub(crate) fn check_queue(&mut self, now_ns: u64) -> Vec<(Event<E>, Reason)> {
        let mut ended = Vec::new();
        if self.watch.check_ns() <= now_ns {
            self.take_late(now_ns, &mut ended);
        }
        if self.watch.sweep_ns <= now_ns {
            self.watch.sweep_ns = NEVER;
            if self.works() {
                self.take_overdue(0, now_ns, &mut ended);
            }
            if self.len + self.in_service > 0 {
                self.schedule_sweep(now_ns);
            }
        }
        if self.watch.stall_ns <= now_ns {
            self.watch.stall_ns = NEVER;
            self.end_stall();
        }
        if !ended.is_empty() {
            self.end_busy(now_ns);
        }
        if self.len == 0 {
            self.watch.due_ns = NEVER;
        }
        let looks_ns = self.watch.next_ns();
        self.watch = if looks_ns == NEVER {
            Watch {
                not_before_ns: self.watch.not_before_ns,
                overdue: self.watch.overdue,
                ..Watch::default()
            }
        } else {
            Watch {
                looks_ns,
                there: true,
                ..self.watch
            }
        };
        ended
    }

    /// Takes out late events, wherever they are.
    fn take_late(&mut self, now_ns: u64, ended: &mut Vec<(Event<E>, Reason)>) {
        let mut due_ns = NEVER;
        let buried = self.buried > 0;
        let taken = self.queue.take_late(&mut |event| {
            let deadline_ns = event.deadline_ns();
            if deadline_ns > now_ns {
                due_ns = due_ns.min(deadline_ns);
            }
            (1..=now_ns).contains(&deadline_ns) || buried && event.is_buried()
        });
        let looked_at = self.len;
        for event in taken {
            if let Some(event) = self.count_out(event) {
                self.counts.expired += 1;
                ended.push((event, Reason::Expired));
            }
        }
        let pause_ns = PAUSE_NS.max(looked_at.saturating_mul(PAUSE_EVENT_NS));
        self.watch.not_before_ns = now_ns.saturating_add(pause_ns);
        self.watch.due_ns = due_ns;
    }

    /// Sheds the overdue events of the classes from `first` on.
    pub(super) fn take_overdue(
        &mut self,
        first: usize,
        now_ns: u64,
        ended: &mut Vec<(Event<E>, Reason)>,
    ) {
        for class in first..self.classes {
            loop {
                let Queue::Lanes(lanes) = &mut self.queue else {
                    return;
                };
                let Some(event) = lanes.oldest(class) else {
                    break;
                };
                let departure = departure(event, class, self.credits, now_ns);
                if !event.is_buried() && !self.controllers.is_overdue(&departure) {
                    break;
                }
                let event = lanes.take_oldest(class).expect("it was just seen");
                if let Some(event) = self.count_out(event) {
                    self.counts.shed += 1;
                    self.scarcity.reject();
                    ended.push((event, Reason::Shed));
                }
            }
        }
    }
}
