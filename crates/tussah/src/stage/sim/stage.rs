//! A stage of a simulation, its events, and the permits of resources.

use std::collections::VecDeque;
use std::sync::Arc;

use super::clients::Attempt;
use super::cpus::Cpus;
use super::system::{SimStage, StageTotals, System};
use super::{Planned, Tick};
use crate::stage::control::Controller;
use crate::stage::event::{CLASSES_MAX, Classes};
use crate::stage::queue::{ByKey, Lanes, Queue};
use crate::stage::state::{Bounds, ControllerSet, Kind, Parts, Process, State};

/// An event of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// The recipient of the answer.
    pub(super) from: From,
    /// The attempt of a client on which all work for it is done.
    pub(super) attempt: Attempt,
    /// The demands of the client's request.
    pub(super) planned: Planned,
    /// The path to which it belongs.
    pub(super) path: Option<usize>,
    /// The position of the event among all events of the run.
    pub(super) number: u64,
    /// The time at which the event arrived at its stage.
    pub(super) arrived_ns: u64,
    pub(super) degraded: bool,
}

/// The recipient of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum From {
    Client,
    /// A servlet, with the number of its calls so far.
    Servlet(usize, u64),
    Nobody,
}

pub(super) struct Stage {
    pub(super) state: State<Job>,
    /// Parked servlets, the most recent one last, and the places of servlets that ended.
    pub(super) parked: Vec<usize>,
    pub(super) free: Vec<usize>,
    /// The color of hot events.
    pub(super) color: Permits,
    pub(super) totals: StageTotals,
    /// The counters at the last tick, and the response times since then.
    ticked: StageTotals,
    response_sum_ns: u128,
    response_max_ns: u64,
}

/// The permits of a resource, and the servlets that wait for one, in order.
pub(super) struct Permits {
    /// The number of permits.
    count: usize,
    /// The number of permits that are held.
    held: usize,
    /// The most recent time at which no permit was free.
    exhausted_ns: Option<u64>,
    next: VecDeque<usize>,
}

impl Stage {
    pub(super) fn new(
        system: &System,
        stage: &SimStage,
        controllers: Vec<Box<dyn Controller>>,
        seed: u64,
        process: &Arc<Process>,
    ) -> Self {
        let classes = system.clients.iter().map(|it| it.arrivals.classes.len());
        let classes = match &stage.class_shares[..] {
            [] => Classes::by_priority(classes.max().unwrap_or(1).clamp(1, CLASSES_MAX)),
            shares => Classes::by_share(&shares[..shares.len().min(CLASSES_MAX)]),
        };
        let queue = if stage.keyed {
            // Any two events that are not hot may be in service at the same time.
            let key_of = |job: &Job| if job.planned.hot { 0 } else { job.number };
            Queue::Keyed(Box::new(ByKey::new(key_of, None, classes)))
        } else {
            Queue::Lanes(Lanes::new(classes))
        };
        let mut state = State::new(Parts {
            queue,
            controllers: ControllerSet::new(controllers, classes, 0),
            bounds: Bounds {
                queue_max: stage.queue_max.max(1),
                class_max: [u64::MAX; CLASSES_MAX],
                batch_max: stage.batch_max.max(1),
                servlets_max: stage.servlets_max.max(1),
            },
            classes,
            kind: if system.blocking {
                Kind::Blocking
            } else {
                Kind::Async
            },
            workers: system.workers.max(1),
            servlets: stage.servlets,
            batch: stage.batch_max,
            seed,
            process: Arc::clone(process),
        });
        state.has_handler = true;
        Self {
            state,
            parked: Vec::new(),
            free: Vec::new(),
            color: Permits::new(1),
            totals: StageTotals::default(),
            ticked: StageTotals::default(),
            response_sum_ns: 0,
            response_max_ns: 0,
        }
    }

    /// Counts an event whose batch has ended.
    pub(super) fn handled(&mut self, has_failed: bool, is_wasted: bool, response_ns: u64) {
        self.totals.handled += 1;
        self.totals.failed += u64::from(has_failed);
        self.totals.wasted += u64::from(is_wasted);
        self.response_sum_ns += u128::from(response_ns);
        self.response_max_ns = self.response_max_ns.max(response_ns);
    }

    /// Returns the state, with the counters since the previous tick.
    pub(super) fn tick(&mut self, now_ns: u64) -> Tick {
        let before = std::mem::replace(&mut self.ticked, self.totals);
        let served = self.totals.handled - before.handled;
        let sum_ns = std::mem::take(&mut self.response_sum_ns);
        let mean_ns = sum_ns.checked_div(u128::from(served));
        Tick {
            at_ns: now_ns,
            queue_len: self.state.len(),
            servlets: self.state.servlets.target,
            busy: self.state.servlets.busy,
            batch: self.state.batch,
            threshold: self.state.threshold,
            arrived: self.totals.arrived - before.arrived,
            rejected: self.totals.rejected - before.rejected,
            served,
            response_mean_ns: mean_ns.map_or(0, |mean_ns| mean_ns as u64),
            response_max_ns: std::mem::take(&mut self.response_max_ns),
        }
    }
}

impl Permits {
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            held: 0,
            exhausted_ns: None,
            next: VecDeque::new(),
        }
    }

    /// Returns whether no permit was free within the last second.
    pub(super) fn is_scarce(&self, now_ns: u64) -> bool {
        self.exhausted_ns
            .is_some_and(|at_ns| now_ns - at_ns < 1_000_000_000)
    }

    /// Takes a permit for a servlet, or queues it for one. Returns whether it has a permit.
    pub(super) fn hold(&mut self, servlet: usize, now_ns: u64) -> bool {
        let is_free = self.held < self.count;
        if self.held + 1 >= self.count {
            self.exhausted_ns = Some(now_ns);
        }
        if is_free {
            self.held += 1;
        } else {
            self.next.push_back(servlet);
        }
        is_free
    }

    /// Returns a permit.
    pub(super) fn release(&mut self, cpus: &mut Cpus) {
        self.held -= 1;
        self.grant(cpus);
    }

    /// Changes the number of permits.
    pub(super) fn set(&mut self, count: usize, cpus: &mut Cpus) {
        self.count = count;
        self.grant(cpus);
    }

    /// Gives free permits to the servlets that have waited longest.
    fn grant(&mut self, cpus: &mut Cpus) {
        while self.held < self.count
            && let Some(next) = self.next.pop_front()
        {
            self.held += 1;
            cpus.want(next);
        }
    }
}
