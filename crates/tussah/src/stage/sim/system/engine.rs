//! A simulated run of several stages: the loop that processes one action at a time, and the
//! clients.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use super::servlet::Servlet;
use super::{Clients, RequestEnd, RequestOutcome, StageTotals, System};
use crate::stage::control::Controller;
use crate::stage::event::{CLASSES_MAX, Event};
use crate::stage::queue::{Lanes, Queue};
use crate::stage::sim::Random;
use crate::stage::sim::cpus::{Cpus, Who};
use crate::stage::sim::plan::at;
use crate::stage::state::{Bounds, ControllerSet, How, Kind, Parts, Process, State, Wake};

/// An event of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// The recipient of the answer.
    pub(super) from: From,
    /// The attempt of a client on which all work for it is done: the client and the number.
    pub(super) attempt: Option<(u64, u32)>,
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
    pub(super) parked: Vec<usize>,
    pub(super) free: Vec<usize>,
    pub(super) totals: StageTotals,
}

pub(super) struct Resource {
    permits: usize,
    held: usize,
    next: VecDeque<usize>,
}

/// A client with an open request.
struct Client {
    kind: usize,
    attempts: u32,
    begun_ns: u64,
    last_ns: u64,
    /// True while it waits for an answer.
    waits: bool,
}

/// An action at some time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Action {
    /// A new client of this kind arrives, in an open loop.
    Arrive(usize),
    /// A client in a closed loop makes its next request.
    Begin(usize),
    /// A client makes its next attempt.
    Attempt(u64),
    /// A client's patience ends, if this is still its attempt.
    Timeout(u64, u32),
    /// A servlet needs a CPU again.
    Want(usize),
}

pub(super) struct Engine<'a, F> {
    pub(super) system: &'a System,
    pub(super) stages: Vec<Stage>,
    pub(super) resources: Vec<Resource>,
    pub(super) servlets: Vec<Servlet>,
    pub(super) cpus: Cpus,
    pub(super) now_ns: u64,
    pub(super) random: Random,
    /// The load and the handlers draw from sources of their own, so that all controllers face the
    /// same arrivals.
    arrivals: Random,
    clients: BTreeMap<u64, Client>,
    clients_begun: u64,
    actions: BinaryHeap<Reverse<(u64, u64, Action)>>,
    planned: u64,
    tell: F,
}

impl<'a, F: FnMut(&RequestOutcome)> Engine<'a, F> {
    pub(super) fn new(
        system: &'a System,
        mut controllers: impl FnMut(usize) -> Vec<Box<dyn Controller>>,
        seed: u64,
        tell: F,
    ) -> Self {
        let process = Arc::new(Process::default());
        let workers = system.workers.max(1);
        let stage = |(number, stage): (usize, &super::SimStage)| {
            let servlets_max = stage.servlets_max.max(1);
            let mut state = State::new(Parts {
                queue: Queue::Lanes(Lanes::new(1)),
                controllers: ControllerSet::new(controllers(number), 1, 0),
                bounds: Bounds {
                    queue_max: stage.queue_max.max(1),
                    class_max: [u64::MAX; CLASSES_MAX],
                    batch_max: 1,
                    servlets_max,
                },
                classes: 1,
                kind: Kind::Async,
                workers,
                servlets: servlets_max,
                batch: 1,
                seed: !seed ^ number as u64,
                process: Arc::clone(&process),
            });
            state.has_handler = true;
            Stage {
                state,
                parked: Vec::new(),
                free: Vec::new(),
                totals: StageTotals::default(),
            }
        };
        let resource = |&permits: &usize| Resource {
            permits,
            held: 0,
            next: VecDeque::new(),
        };
        let mut engine = Self {
            system,
            stages: system.stages.iter().enumerate().map(stage).collect(),
            resources: system.resources.iter().map(resource).collect(),
            servlets: Vec::new(),
            cpus: Cpus::new(workers, false),
            now_ns: 0,
            random: Random::new(seed),
            arrivals: Random::new(seed.rotate_left(32) ^ 1),
            clients: BTreeMap::new(),
            clients_begun: 0,
            actions: BinaryHeap::new(),
            planned: 0,
            tell,
        };
        for (kind, clients) in system.clients.iter().enumerate() {
            engine.plan_arrival(kind);
            for number in 0..clients.closed {
                // Within the first millisecond.
                let ns = 1_000_000 * u64::from(number) / u64::from(clients.closed);
                engine.plan(ns, Action::Begin(kind));
            }
        }
        engine
    }

    pub(super) fn run(mut self) -> Vec<StageTotals> {
        loop {
            let cpu_ns = self.cpus.next_ns();
            let action_ns = self.actions.peek().map_or(u64::MAX, |next| next.0.0);
            let mut looks = (u64::MAX, 0);
            for (number, stage) in self.stages.iter_mut().enumerate() {
                if stage.state.watch.is_short() {
                    stage.state.watch.set();
                }
                looks = looks.min((stage.state.watch.looks_ns, number));
            }
            let next_ns = cpu_ns.min(action_ns).min(looks.0);
            if next_ns > self.system.until_ns {
                return self.stages.into_iter().map(|stage| stage.totals).collect();
            }
            self.now_ns = next_ns.max(self.now_ns);
            if cpu_ns == next_ns {
                if let Who::Servlet(id) = self.cpus.end(self.now_ns) {
                    self.go_on(id);
                }
            } else if action_ns == next_ns {
                let Reverse((_, _, action)) = self.actions.pop().expect("it was just seen");
                self.act(action);
            } else {
                let ended = self.stages[looks.1].state.check_queue(self.now_ns);
                for (event, _) in ended {
                    self.shed(looks.1, event.into_inner());
                }
            }
            while let Some(Who::Servlet(id)) = self.cpus.dispatch() {
                self.go_on(id);
            }
        }
    }

    fn plan(&mut self, at_ns: u64, action: Action) {
        self.planned += 1;
        self.actions.push(Reverse((at_ns, self.planned, action)));
    }

    /// Wakes a servlet after this time.
    pub(super) fn want_after(&mut self, ns: u64, servlet: usize) {
        self.plan(self.now_ns.saturating_add(ns), Action::Want(servlet));
    }

    /// Plans the next arrival of a kind of clients, if there is one.
    fn plan_arrival(&mut self, kind: usize) {
        let rates = &self.system.clients[kind].rates;
        let mut from_ns = self.now_ns as f64;
        // The remainder of an exponential time is exponential, so it can be drawn again when the
        // rate changes.
        while from_ns < self.system.until_ns as f64 {
            let (per_second, next) = at(rates, from_ns);
            let until_ns = rates.get(next).map_or(f64::INFINITY, |rate| rate.0 as f64);
            let per_second = per_second.unwrap_or(0.0);
            let gap_ns = if per_second > 0.0 {
                self.arrivals.exponential() * 1e9 / per_second
            } else {
                f64::INFINITY
            };
            if from_ns + gap_ns < until_ns {
                return self.plan((from_ns + gap_ns) as u64, Action::Arrive(kind));
            }
            from_ns = until_ns;
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Arrive(kind) => {
                self.plan_arrival(kind);
                self.begin(kind);
            }
            Action::Begin(kind) => self.begin(kind),
            Action::Attempt(client) => self.attempt(client),
            Action::Timeout(client, attempt) => {
                if self.waits(client, attempt) {
                    self.attempt_ends(client, RequestEnd::TimedOut);
                }
            }
            Action::Want(servlet) => self.cpus.want(servlet),
        }
    }

    fn begin(&mut self, kind: usize) {
        self.clients_begun += 1;
        let client = Client {
            kind,
            attempts: 0,
            begun_ns: self.now_ns,
            last_ns: self.now_ns,
            waits: false,
        };
        self.clients.insert(self.clients_begun, client);
        self.attempt(self.clients_begun);
    }

    fn attempt(&mut self, number: u64) {
        let client = self.clients.get_mut(&number).expect("its request is open");
        client.attempts += 1;
        (client.last_ns, client.waits) = (self.now_ns, true);
        let (attempt, kind) = (client.attempts, client.kind);
        let Clients {
            stage, timeout_ns, ..
        } = self.system.clients[kind];
        if timeout_ns < u64::MAX {
            let at_ns = self.now_ns.saturating_add(timeout_ns);
            self.plan(at_ns, Action::Timeout(number, attempt));
        }
        let job = Job {
            from: From::Client,
            attempt: Some((number, attempt)),
        };
        if !self.offer(stage, job) {
            self.attempt_ends(number, RequestEnd::Rejected);
        }
    }

    /// Returns whether a client waits for the answer to this attempt.
    pub(super) fn waits(&self, client: u64, attempt: u32) -> bool {
        let client = self.clients.get(&client);
        client.is_some_and(|client| client.waits && client.attempts == attempt)
    }

    fn attempt_ends(&mut self, number: u64, end: RequestEnd) {
        let client = self.clients.get_mut(&number).expect("its request is open");
        client.waits = false;
        let (kind, attempts) = (client.kind, client.attempts);
        let clients = &self.system.clients[kind];
        if end != RequestEnd::Answered && attempts <= clients.backoff.retries {
            let unit = self.random.unit();
            let mut after_ns = clients.backoff.before_ns(attempts - 1, unit);
            if end == RequestEnd::Rejected {
                after_ns = after_ns.max(clients.retry_after_ns);
            }
            let at_ns = self.now_ns.saturating_add(after_ns);
            return self.plan(at_ns, Action::Attempt(number));
        }
        let client = self.clients.remove(&number).expect("it was just seen");
        (self.tell)(&RequestOutcome {
            clients: kind,
            attempts,
            begun_ns: client.begun_ns,
            last_ns: client.last_ns,
            ended_ns: self.now_ns,
            end,
        });
        if clients.closed > 0 {
            // At least a nanosecond passes, so that a client that is always rejected does not stop
            // the clock.
            let pause_ns = clients.pause.draw(&mut self.random).max(1);
            self.plan(self.now_ns.saturating_add(pause_ns), Action::Begin(kind));
        }
    }

    /// Offers an event to a stage. Returns whether the stage admits it.
    pub(super) fn offer(&mut self, number: usize, job: Job) -> bool {
        let stage = &mut self.stages[number];
        stage.totals.arrived += 1;
        let event = Event::new(job);
        stage.state.queue.look_at(&event);
        let offered = stage.state.offer(event, How::default(), self.now_ns);
        stage.state.decide(self.now_ns);
        stage.totals.rejected += u64::from(offered.is_err());
        self.wake_servlet(number);
        offered.is_ok()
    }

    /// Ends an event that a stage has shed.
    pub(super) fn shed(&mut self, number: usize, job: Job) {
        self.stages[number].totals.rejected += 1;
        self.answer(job, RequestEnd::Rejected);
    }

    /// Answers an event.
    pub(super) fn answer(&mut self, job: Job, end: RequestEnd) {
        match (job.from, job.attempt) {
            (From::Servlet(id, call), _) => self.call_ends(id, call, end == RequestEnd::Answered),
            (From::Client, Some((client, attempt))) if self.waits(client, attempt) => {
                self.attempt_ends(client, end);
            }
            (From::Client | From::Nobody, _) => {}
        }
    }

    /// Wakes or starts a servlet if the stage wants one.
    pub(super) fn wake_servlet(&mut self, number: usize) {
        let stage = &mut self.stages[number];
        let id = match stage.state.wake_servlet() {
            Wake::Nobody => return,
            Wake::Unpark => stage.parked.pop().expect("the state counts who is parked"),
            Wake::Spawn => stage.free.pop().unwrap_or_else(|| {
                self.servlets.push(Servlet::of(number));
                self.servlets.len() - 1
            }),
        };
        self.cpus.want(id);
    }

    /// Takes a permit for a servlet, or queues it for one. Returns whether it has a permit.
    pub(super) fn hold(&mut self, resource: usize, id: usize) -> bool {
        let Resource {
            permits,
            held,
            next,
        } = &mut self.resources[resource];
        if *held < *permits {
            *held += 1;
            return true;
        }
        next.push_back(id);
        false
    }

    /// Returns a permit, which goes to the servlet that has waited longest.
    pub(super) fn release(&mut self, resource: usize) {
        let Resource { held, next, .. } = &mut self.resources[resource];
        match next.pop_front() {
            Some(id) => self.cpus.want(id),
            None => *held -= 1,
        }
    }
}
