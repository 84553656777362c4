//! The resources that the events of a stage wait for, and the events rejected for lack of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{Counts, Now};
use crate::stage::control::{LimitUse, Resource};
use crate::sync::Limit;

/// Bound, in limits and stages: the most that a stage remembers of those that its events wait
/// for. Statistics and reasons do not name further ones.
const LIMITS_MAX: usize = 16;

/// Bound, in resources: the most whose rejections a stage counts separately. Rejections for lack of
/// further ones count as for an unknown resource.
const RESOURCES_MAX: usize = 32;

/// The weight of each sample in the mean number of events that wait for a limit, and the mean from
/// which the limit counts as scarce. Overload control leaves only few of them waiting.
const MEAN_PART: f64 = 0.125;
const WAITING_MIN: f64 = 0.5;

/// The number of events in the sums of times, of which the older half is then dropped.
const WINDOW: u64 = 200;

/// The limits and the stages that the events of a stage wait for.
#[derive(Default)]
pub(crate) struct Waits {
    known: Mutex<Vec<Known>>,
    /// The number of blocking handlers that wait for a permit. Relaxed: only the number itself
    /// matters.
    blocked: AtomicUsize,
}

/// A resource that an event of a stage waits for.
#[derive(Clone)]
pub(crate) enum Awaited {
    /// A limit: the event's handler waits for a permit.
    Limit(Limit),
    /// The servlets of a stage: the event is in its queue. The name is the stage's own, not a copy,
    /// because another network may have a stage with the same name.
    Stage(LimitUse),
}

struct Known {
    of: Awaited,
    /// The events of the stage that wait.
    waiting: usize,
    mean: f64,
}

/// An event's wait, which ends when this is dropped.
pub(crate) struct Waiting {
    waits: Arc<Waits>,
    of: Awaited,
}

impl Awaited {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Limit(limit), Self::Limit(other)) => limit.is(other),
            (Self::Stage(used), Self::Stage(other)) => Arc::ptr_eq(&used.name, &other.name),
            _ => false,
        }
    }

    fn shown(&self) -> (Resource, LimitUse) {
        let (resource, used): (fn(_) -> _, _) = match self {
            Self::Limit(limit) => (Resource::Limit, limit.in_use()),
            Self::Stage(used) => (Resource::Stage, used.clone()),
        };
        (resource(Arc::clone(&used.name)), used)
    }
}

impl Waits {
    /// Notes that an event begins to wait.
    pub(crate) fn begin(self: Arc<Self>, of: Awaited) -> Option<Waiting> {
        let mut known = self.known.lock();
        let place = known.iter().position(|one| one.of.is(&of));
        let place = match place {
            Some(place) => place,
            None => {
                if known.len() == LIMITS_MAX {
                    let unused = known.iter().position(|one| one.is_unused())?;
                    known.swap_remove(unused);
                }
                known.push(Known {
                    of: of.clone(),
                    waiting: 0,
                    mean: 0.0,
                });
                known.len() - 1
            }
        };
        known[place].waiting += 1;
        // The use of a stage is that of its latest event.
        known[place].of.clone_from(&of);
        drop(known);
        Some(Waiting { waits: self, of })
    }

    /// Notes that a blocking handler begins to wait for a permit.
    pub(crate) fn block(&self) {
        self.blocked.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that such a wait has ended.
    pub(crate) fn unblock(&self) {
        self.blocked.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn blocked(&self) -> usize {
        self.blocked.load(Ordering::Relaxed)
    }

    /// Takes a sample, and returns the resource for which most events wait, if any is scarce.
    fn look(&self) -> Option<(Resource, LimitUse)> {
        let mut known = self.known.lock();
        for one in known.iter_mut() {
            one.mean += MEAN_PART * (one.waiting as f64 - one.mean);
        }
        let most = known.iter().max_by(|a, b| a.mean.total_cmp(&b.mean));
        most.filter(|most| most.mean >= WAITING_MIN)
            .map(|most| most.of.shown())
    }
}

impl Known {
    fn is_unused(&self) -> bool {
        self.waiting == 0 && self.mean < WAITING_MIN
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut known = self.waits.known.lock();
        if let Some(one) = known.iter_mut().find(|one| one.of.is(&self.of)) {
            one.waiting -= 1;
        }
    }
}

/// The resource that is scarce in a stage, and the rejections so far.
#[derive(Default)]
pub(crate) struct Scarcity {
    pub(crate) waits: Arc<Waits>,
    scarce: Resource,
    /// The events that the controller of admission has rejected or shed, by the resource that was
    /// scarce.
    rejected: Vec<(Resource, u64)>,
    /// The number of the latest events, their time, and the part of it in which their handlers
    /// computed or waited for a worker. Then the same since the stage began, at the last look.
    latest: [u64; 3],
    looked_at: [u64; 3],
}

impl Scarcity {
    /// Finds the scarce resource, and returns its use if it is a limit or a stage.
    pub(crate) fn look(&mut self, counts: &Counts, now: &Now) -> Option<LimitUse> {
        let compute_ns = counts.compute_ns + counts.ready_ns;
        let now_is = [counts.finished, counts.service_ns, compute_ns];
        for (at, is) in now_is.into_iter().enumerate() {
            self.latest[at] += is - std::mem::replace(&mut self.looked_at[at], is);
        }
        if self.latest[0] > WINDOW {
            self.latest = self.latest.map(|sum| sum / 2);
        }
        let [_, service_ns, compute_ns] = self.latest;
        let (awaited, used) = self.waits.look().unzip();
        self.scarce = match awaited {
            Some(awaited) => awaited,
            None if !now.blocking && compute_ns > service_ns / 2 => Resource::Workers,
            None if now.servlets.busy >= now.servlets.max => Resource::Servlets,
            None => Resource::Unknown,
        };
        used
    }

    /// Counts an event that the controller of admission has rejected or shed.
    pub(crate) fn reject(&mut self) {
        let is_scarce = |(resource, _): &&mut (Resource, u64)| *resource == self.scarce;
        if let Some((_, count)) = self.rejected.iter_mut().find(is_scarce) {
            *count += 1;
        } else if self.rejected.len() < RESOURCES_MAX || self.scarce == Resource::Unknown {
            self.rejected.push((self.scarce.clone(), 1));
        } else {
            self.scarce = Resource::Unknown;
            self.reject();
        }
    }

    pub(crate) fn rejected(&self) -> &[(Resource, u64)] {
        &self.rejected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(scarcity: &mut Scarcity, times: usize) -> Option<LimitUse> {
        let looks = (0..times).map(|_| scarcity.look(&Counts::default(), &Now::default()));
        looks.last().flatten()
    }

    #[test]
    fn the_limit_for_which_most_handlers_wait_is_scarce() {
        let mut scarcity = Scarcity::default();
        let [few, many] = ["few", "many"].map(|name| Limit::new(name, 0));
        let begin =
            |limit: &Limit| Arc::clone(&scarcity.waits).begin(Awaited::Limit(limit.clone()));
        let mut waiting = vec![begin(&few), begin(&many), begin(&many)];
        // A wait that has just begun proves nothing.
        assert_eq!(look(&mut scarcity, 1), None);
        let found = look(&mut scarcity, 20).expect("one is scarce");
        assert_eq!(found.to_string(), "0 of 0 in `many`, 0 waiting");
        scarcity.reject();
        waiting.truncate(1);
        look(&mut scarcity, 20);
        scarcity.reject();
        scarcity.reject();
        waiting.clear();
        assert_eq!(look(&mut scarcity, 20), None);
        let by = |name: &str, count| (Resource::Limit(name.into()), count);
        assert_eq!(scarcity.rejected(), [by("many", 1), by("few", 2)]);
    }

    #[test]
    fn limits_and_resources_are_bounded() {
        let mut scarcity = Scarcity::default();
        for number in 0..100 {
            let limit = Limit::new(number.to_string(), 0);
            let waiting = Arc::clone(&scarcity.waits).begin(Awaited::Limit(limit));
            assert!(waiting.is_some());
            look(&mut scarcity, 20);
            scarcity.reject();
            drop(waiting);
            look(&mut scarcity, 20);
        }
        assert_eq!(scarcity.waits.known.lock().len(), LIMITS_MAX);
        assert_eq!(scarcity.rejected.len(), RESOURCES_MAX + 1);
        let counts = scarcity.rejected.iter().map(|(_, count)| count);
        assert_eq!(counts.sum::<u64>(), 100);
        // While all are in use, no further limit is remembered.
        let mut waiting = Vec::new();
        for number in 0..LIMITS_MAX {
            let limit = Limit::new(number.to_string(), 0);
            waiting.push(Arc::clone(&scarcity.waits).begin(Awaited::Limit(limit)));
        }
        assert!(waiting.iter().all(Option::is_some));
        let waits = Arc::clone(&scarcity.waits);
        assert!(waits.begin(Awaited::Limit(Limit::new("more", 0))).is_none());
    }

    #[test]
    fn without_a_limit_the_times_show_which_resource_is_scarce() {
        let of = |service_ns, compute_ns, ready_ns, busy| {
            let mut scarcity = Scarcity::default();
            let counts = Counts {
                finished: 10,
                service_ns,
                compute_ns,
                ready_ns,
                ..Counts::default()
            };
            let mut now = Now::default();
            (now.servlets.busy, now.servlets.max) = (busy, 8);
            scarcity.look(&counts, &now);
            scarcity.scarce
        };
        assert_eq!(of(100, 60, 0, 2), Resource::Workers);
        assert_eq!(of(100, 20, 40, 2), Resource::Workers);
        assert_eq!(of(100, 20, 0, 8), Resource::Servlets);
        assert_eq!(of(100, 20, 0, 2), Resource::Unknown);
    }
}
