//! The counts of a process under all configurations: its stages and its responses, with their
//! values at the start of each of the last seconds.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tussah::stage::Network;
use tussah::stage::control::Resource;
use tussah::stage::observe::{Digest, StageStats};

use super::counts::{Count, Counts, FILES, OTHER, of_route};
use crate::web::answer::route::Routes;

/// The time, in seconds, that the rates and response times of the status page cover, in addition to
/// the current partial second.
pub(crate) const RECENT_S: u64 = 10;

/// Bound, in applications: the maximum number of FastCGI applications of a configuration that have
/// their own counts. Requests to further ones count as other requests.
const APPLICATIONS_MAX: usize = 8;

/// The networks of a process, and the counts of those that have ended.
pub(crate) struct Totals {
    known: Mutex<Known>,
    pub(crate) counts: Counts,
    /// The latest second that has begun.
    second: AtomicU64,
    /// The seconds with counts, the oldest first; each takes 4 KB per route.
    recent: Mutex<VecDeque<Arc<Moment>>>,
}

#[derive(Default)]
struct Known {
    /// The last network is the current one.
    networks: Vec<(usize, Network)>,
    /// The counts by the names of the stages.
    ended: Vec<Counting>,
}

/// A stage's statistics and the distribution of its response times.
pub(crate) type Counting = (StageStats, Digest);

/// The counts at the start of a second of the server's clock.
pub(crate) struct Moment {
    second: u64,
    /// Responses and response times, by source.
    sources: Vec<(u64, Digest)>,
}

impl Totals {
    /// Creates the counts for these routes, `/work` and FastCGI applications.
    pub(crate) fn new(routes: &Routes, workers: usize) -> Self {
        Self {
            known: Mutex::default(),
            counts: Counts::new(routes.all().len() + 1 + APPLICATIONS_MAX, workers),
            second: AtomicU64::new(u64::MAX),
            recent: Mutex::default(),
        }
    }

    /// Returns the number of requests that were cancelled because their clients had disconnected.
    pub(crate) fn cancelled(&self) -> u64 {
        let sources = self.counts.sources();
        sources
            .map(|source| self.counts.of(source).get(Count::Gone))
            .sum()
    }

    /// Begins to count a network, as the current one.
    pub(crate) fn begin(&self, number: usize, network: &Network) {
        self.known.lock().networks.push((number, network.clone()));
    }

    /// Keeps the counts of a network that ends.
    pub(crate) fn end(&self, number: usize) {
        let mut known = self.known.lock();
        let at = known
            .networks
            .iter()
            .position(|(other, _)| *other == number);
        if let Some(at) = at {
            let (_, network) = known.networks.remove(at);
            let mut stages = network.stats_and_times();
            for (stage, _) in &mut stages {
                // Its last responses have been sent, and their events are just ending: the network
                // is empty.
                stage.finished += std::mem::take(&mut stage.in_service);
                stage.queued = 0;
            }
            add(&mut known.ended, stages);
        }
    }

    /// Returns the stages of the current network, with the counts of all stages of the same name.
    pub(crate) fn stages(&self) -> Vec<Counting> {
        let known = self.known.lock();
        let mut stages = Vec::new();
        for (_, network) in known.networks.iter().rev() {
            add(&mut stages, network.stats_and_times());
        }
        add(&mut stages, known.ended.clone());
        stages
    }

    /// Stores the counts at the start of this second, unless that has already been done. Every
    /// function that counts calls it first, so it needs no timer: in a second without a call,
    /// nothing was counted.
    #[inline]
    pub(crate) fn begin_second(&self, second: u64, routes: &Routes) {
        // Relaxed: a response that is counted in the meantime may belong to either second.
        if self.second.load(Ordering::Relaxed) != second {
            self.write_down(second, routes);
        }
    }

    #[cold]
    fn write_down(&self, second: u64, routes: &Routes) {
        if self.second.swap(second, Ordering::Relaxed) == second {
            return;
        }
        let moment = Arc::new(self.moment(second, routes));
        let mut recent = self.recent.lock();
        recent.push_back(moment);
        let begin = second.saturating_sub(RECENT_S);
        while recent.front().is_some_and(|first| first.second < begin) {
            recent.pop_front();
        }
    }

    fn moment(&self, second: u64, routes: &Routes) -> Moment {
        let stages = self.stages();
        let source = |source| {
            let times = times(&stages, source, routes);
            (self.counts.of(source).responses(), times)
        };
        Moment {
            second,
            sources: self.counts.sources().map(source).collect(),
        }
    }

    /// Returns the counts at the start of the last [`RECENT_S`] seconds, in this second, which has
    /// [begun](Self::begin_second).
    pub(crate) fn before(&self, second: u64, routes: &Routes) -> Arc<Moment> {
        let begin = second.saturating_sub(RECENT_S);
        let recent = self.recent.lock();
        let first = recent.iter().find(|moment| moment.second >= begin).cloned();
        drop(recent);
        first.unwrap_or_else(|| Arc::new(self.moment(second, routes)))
    }
}

impl Moment {
    /// Returns the responses to requests of a source, and their times.
    pub(crate) fn of(&self, source: u32) -> &(u64, Digest) {
        &self.sources[source as usize]
    }
}

/// Returns whether a stage answers the requests of a source.
pub(crate) fn answers(stage: &str, source: u32, routes: &Routes) -> bool {
    match source {
        OTHER => false,
        FILES => stage == "disk" || is_cache(stage),
        _ => {
            let route = routes.all().get((source - of_route(0)) as usize);
            let of = stage.split_once(' ');
            let of = of.filter(|(name, _)| ["route", "fastcgi"].contains(name));
            route.is_some_and(|(path, _)| of.is_some_and(|(_, of)| of == path))
        }
    }
}

fn is_cache(stage: &str) -> bool {
    stage.starts_with("page cache ")
}

/// Returns the response times of a source: from the arrival at a route's stage, or at the page
/// cache, to the response.
pub(crate) fn times(stages: &[Counting], source: u32, routes: &Routes) -> Digest {
    let mut times = Digest::default();
    for (stats, digest) in stages {
        // A request that waits for a disk passes the cache again.
        if &*stats.name != "disk" && answers(&stats.name, source, routes) {
            times.merge(digest);
        }
    }
    times
}

/// Adds rejections by scarce resource.
pub(crate) fn add_rejected(sums: &mut Vec<(Resource, u64)>, others: &[(Resource, u64)]) {
    for (resource, count) in others {
        match sums.iter_mut().find(|(same, _)| same == resource) {
            Some((_, sum)) => *sum += count,
            None => sums.push((resource.clone(), *count)),
        }
    }
}

/// Adds the counts of stages with the same name, and appends the others.
fn add(stages: &mut Vec<Counting>, others: Vec<Counting>) {
    for (other, times) in others {
        let same = |(stage, _): &&mut Counting| stage.name == other.name;
        let Some((stage, sum)) = stages.iter_mut().find(same) else {
            stages.push((other, times));
            continue;
        };
        stage.arrived += other.arrived;
        stage.called += other.called;
        stage.finished += other.finished;
        stage.refused += other.refused;
        stage.shed += other.shed;
        add_rejected(&mut stage.rejected_by, &other.rejected_by);
        stage.would_reject += other.would_reject;
        stage.cancelled += other.cancelled;
        stage.failed += other.failed;
        stage.queued += other.queued;
        stage.in_service += other.in_service;
        sum.merge(&times);
    }
}
