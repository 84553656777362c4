//! The loop of a simulated run: it takes one action at a time, on a virtual clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use super::clients::{Attempt, Client, ClientSet};
use super::cpus::{Cpus, Who};
use super::path::Path;
use super::servlet::Servlet;
use super::stage::{From, Job, Permits, Stage};
use super::system::{StageTotals, System};
use super::{EventEnd, Outcome, Random, Tick};
use crate::stage::control::Controller;
use crate::stage::event::{Event, NotTaken};
use crate::stage::state::{How, Process, Wake};

/// An action at some time. Of the actions at the same time, that of the lowest rank comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Action {
    /// The entry of `System::speeds` with this index applies.
    Speed(usize),
    /// A resource has this number of permits.
    Permits(usize, usize),
    /// A servlet needs a CPU again.
    Want(usize),
    /// A new client of this kind arrives, in an open loop.
    Arrive(usize),
    /// A client in a closed loop makes its next request.
    Begin(usize),
    /// A client makes its next attempt.
    Attempt(usize),
    /// A client's patience ends, if this is still its attempt.
    Timeout(Attempt),
}

impl Action {
    fn rank(self) -> u8 {
        match self {
            Action::Speed(_) => 0,
            Action::Permits(..) => 1,
            Action::Want(_) => 2,
            Action::Arrive(_) => 3,
            Action::Begin(_) | Action::Attempt(_) => 4,
            Action::Timeout(_) => 5,
        }
    }
}

pub(super) struct Engine<'a, F> {
    pub(super) system: &'a System,
    pub(super) stages: Vec<Stage>,
    pub(super) resources: Vec<Permits>,
    pub(super) servlets: Vec<Servlet>,
    /// The paths that have not ended.
    pub(super) paths: BTreeMap<usize, Path>,
    pub(super) cpus: Cpus,
    pub(super) now_ns: u64,
    /// The source of everything that is not planned on arrival.
    pub(super) random: Random,
    pub(super) kinds: Vec<ClientSet<'a>>,
    /// The clients with an open request, and the free places.
    pub(super) clients: Vec<Client>,
    pub(super) gone: Vec<usize>,
    pub(super) attempts: u64,
    actions: BinaryHeap<Reverse<(u64, u8, u64, Action)>>,
    actions_planned: u64,
    offered: u64,
    /// Rejected events whose rejection has not been computed yet.
    rejections: VecDeque<(Job, EventEnd)>,
    pub(super) tell: F,
    ticks: Vec<Tick>,
}

impl<'a, F: FnMut(&Outcome)> Engine<'a, F> {
    pub(super) fn new(
        system: &'a System,
        mut controllers: impl FnMut(usize) -> Vec<Box<dyn Controller>>,
        seed: u64,
        tell: F,
    ) -> Self {
        let process = Arc::new(Process::default());
        let stages = system.stages.iter().enumerate();
        let stages = stages.map(|(number, stage)| {
            let seed = !seed ^ number as u64;
            Stage::new(system, stage, controllers(number), seed, &process)
        });
        let kinds = system.clients.iter().enumerate();
        let kinds = kinds.map(|(kind, clients)| {
            // Each kind has a source of its own, so that all controllers face the same arrivals.
            let seed = seed ^ (kind as u64).rotate_left(16);
            ClientSet::new(clients, system.until_ns, seed)
        });
        let mut engine = Self {
            system,
            stages: stages.collect(),
            resources: system
                .resources
                .iter()
                .map(|_| Permits::new(usize::MAX))
                .collect(),
            servlets: Vec::new(),
            paths: BTreeMap::new(),
            cpus: Cpus::new(system.workers, system.blocking),
            now_ns: 0,
            random: Random::new(seed.rotate_left(32) ^ 1),
            kinds: kinds.collect(),
            clients: Vec::new(),
            gone: Vec::new(),
            attempts: 0,
            actions: BinaryHeap::new(),
            actions_planned: 0,
            offered: 0,
            rejections: VecDeque::new(),
            tell,
            ticks: Vec::new(),
        };
        for (index, (at_ns, _)) in system.speeds.iter().enumerate() {
            engine.plan(*at_ns, Action::Speed(index));
        }
        for (resource, entries) in system.resources.iter().enumerate() {
            for &(at_ns, permits) in entries {
                engine.plan(at_ns, Action::Permits(resource, permits));
            }
        }
        for kind in 0..system.clients.len() {
            engine.plan_first(kind);
        }
        engine
    }

    /// Runs the simulation, and notes a tick of the first stage each `tick_ns`.
    pub(super) fn run(&mut self, tick_ns: u64) {
        let mut tick_at_ns = tick_ns;
        loop {
            let cpu_ns = self.cpus.next_ns();
            let action_ns = self.actions.peek().map_or(u64::MAX, |next| next.0.0);
            let mut check = (u64::MAX, 0);
            for (number, stage) in self.stages.iter_mut().enumerate() {
                stage.state.watch_stall(|| self.now_ns);
                if stage.state.watch.is_short() {
                    stage.state.watch.set();
                }
                check = check.min((stage.state.watch.looks_ns, number));
            }
            let next_ns = cpu_ns.min(action_ns).min(check.0).min(tick_at_ns);
            if next_ns > self.system.until_ns {
                return;
            }
            self.now_ns = next_ns.max(self.now_ns);
            if cpu_ns == next_ns {
                match self.cpus.end(self.now_ns) {
                    Who::Rejection => self.rejected(),
                    Who::Servlet(id) if self.cpus.is_urgent() => self.cpus.want_back(id),
                    Who::Servlet(id) => self.go_on(id),
                }
            } else if action_ns == next_ns {
                let Reverse((.., action)) = self.actions.pop().expect("it was just seen");
                self.act(action);
            } else if check.0 == next_ns {
                let ended = self.stages[check.1].state.check_queue(self.now_ns);
                for (event, _) in ended {
                    self.reject(check.1, event.into_inner(), EventEnd::Shed);
                }
                self.wake_servlet(check.1);
            } else {
                let tick = self.stages.first_mut().map(|stage| stage.tick(self.now_ns));
                self.ticks.extend(tick);
                tick_at_ns = tick_at_ns.saturating_add(tick_ns);
            }
            self.dispatch();
        }
    }

    pub(super) fn into_ticks(self) -> Vec<Tick> {
        self.ticks
    }

    pub(super) fn into_totals(self) -> Vec<StageTotals> {
        self.stages.into_iter().map(|stage| stage.totals).collect()
    }

    /// Returns the log of the decisions in the first stage.
    #[cfg(test)]
    pub(super) fn into_log(mut self) -> crate::stage::control::log::Log {
        self.stages.swap_remove(0).state.log
    }

    pub(super) fn plan(&mut self, at_ns: u64, action: Action) {
        self.actions_planned += 1;
        let place = (at_ns, action.rank(), self.actions_planned, action);
        self.actions.push(Reverse(place));
    }

    /// Plans an action after this time.
    pub(super) fn plan_after(&mut self, ns: u64, action: Action) {
        self.plan(self.now_ns.saturating_add(ns), action);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Speed(index) => self
                .cpus
                .set_speed(self.system.speeds[index].1, self.now_ns),
            Action::Permits(resource, permits) => {
                self.resources[resource].set(permits, &mut self.cpus);
            }
            Action::Want(servlet) => self.cpus.want(servlet),
            Action::Arrive(kind) => self.arrive(kind),
            Action::Begin(kind) => self.begin_again(kind),
            Action::Attempt(client) => self.retry(client),
            Action::Timeout(attempt) => {
                if self.waits(attempt) {
                    self.attempt_ends(attempt.client, EventEnd::TimedOut);
                }
            }
        }
    }

    /// Gives free CPUs to the work that waits for one.
    fn dispatch(&mut self) {
        while let Some(who) = self.cpus.dispatch() {
            match who {
                Who::Rejection => {
                    let work_ns = self.system.rejection_ns as f64;
                    self.cpus.begin(who, work_ns, self.now_ns);
                }
                Who::Servlet(id) => self.go_on(id),
            }
        }
    }

    /// Offers an event to a stage.
    pub(super) fn offer(&mut self, number: usize, mut job: Job) {
        self.offered += 1;
        self.join_path(&mut job, number);
        let job = Job {
            number: self.offered,
            arrived_ns: self.now_ns,
            degraded: false,
            ..job
        };
        let arrivals = &self.system.clients[job.attempt.kind].arrivals;
        let mut event = Event::new(job).class(job.planned.class);
        if arrivals.cohorts {
            event = event.cohort(job.planned.user);
        }
        if arrivals.credits > 1 {
            event = event.credits(arrivals.credits);
        }
        let mut how = How::default();
        self.stages[number].totals.arrived += 1;
        loop {
            let state = &mut self.stages[number].state;
            state.queue.look_at(&event);
            let offered = state.offer(event, how, self.now_ns);
            state.decide(self.now_ns);
            self.wake_servlet(number);
            match offered {
                Ok(()) => return,
                Err((refused, NotTaken::Degrade)) => {
                    event = refused;
                    event.degraded = true;
                    how.asked = true;
                }
                Err(_) => return self.reject(number, job, EventEnd::Rejected),
            }
        }
    }

    /// Rejects or sheds an event, which takes CPU time.
    pub(super) fn reject(&mut self, number: usize, job: Job, end: EventEnd) {
        self.stages[number].totals.rejected += 1;
        self.rejections.push_back((job, end));
        if self.system.rejection_ns == 0 {
            self.rejected();
        } else {
            self.cpus.want_urgently();
        }
    }

    fn rejected(&mut self) {
        let rejection = self.rejections.pop_front();
        let (job, end) = rejection.expect("each rejection ends once");
        self.answer(job, end);
    }

    /// Answers an event.
    pub(super) fn answer(&mut self, job: Job, end: EventEnd) {
        if let Some(path) = job.path {
            self.leave_path(path, end != EventEnd::Served);
        }
        match job.from {
            From::Servlet(id, call) => self.call_ends(id, call, end == EventEnd::Served),
            From::Client if self.waits(job.attempt) => self.attempt_ends(job.attempt.client, end),
            From::Client | From::Nobody => {}
        }
    }

    /// Wakes or starts a servlet if the stage wants one.
    pub(super) fn wake_servlet(&mut self, number: usize) {
        let stage = &mut self.stages[number];
        let id = match stage.state.wake_servlet() {
            Wake::Nobody => return,
            Wake::Unpark => stage.parked.pop().expect("the state counts who is parked"),
            Wake::Spawn => stage.free.pop().unwrap_or_else(|| {
                self.servlets.push(Servlet::new(number));
                self.servlets.len() - 1
            }),
        };
        self.cpus.want(id);
    }
}
