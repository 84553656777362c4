//! The clients of a simulation: their requests, attempts, and retries.

use std::iter::Peekable;

use super::engine::{Action, Engine};
use super::stage::{From, Job};
use super::system::Clients;
use super::{EventEnd, Outcome, Planned, Schedule};

const SECOND: u64 = 1_000_000_000;

/// Bound, in seconds: the longest time that a `Retry-After` states, as in `tussah web`.
const RETRY_AFTER_S_MAX: u64 = 60;

/// The clients of one kind.
pub(super) struct ClientSet<'a> {
    clients: &'a Clients,
    /// The requests that do not depend on answers.
    plan: Peekable<Schedule<'a>>,
    /// The requests of clients in a closed loop, and retries.
    sent: Schedule<'a>,
    /// The current second, the events handled before it, and the `Retry-After`, in seconds.
    second: u64,
    handled: u64,
    retry_after_s: u64,
}

/// A client with an open request.
pub(super) struct Client {
    attempts: u32,
    begun_ns: u64,
    last_ns: u64,
    /// The number of the attempt for which it waits; 0 if it does not.
    waits_for: u64,
    attempt: Attempt,
    planned: Planned,
}

/// An attempt of a client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Attempt {
    /// The index of the client's kind.
    pub(super) kind: usize,
    /// The index of the client.
    pub(super) client: usize,
    /// The position of the attempt among all attempts of the run, counted from 1.
    number: u64,
}

impl<'a> ClientSet<'a> {
    pub(super) fn new(clients: &'a Clients, until_ns: u64, seed: u64) -> Self {
        let schedule = |seed| Schedule::new(&clients.arrivals, &clients.services, until_ns, seed);
        Self {
            clients,
            plan: schedule(seed).peekable(),
            sent: schedule(!seed),
            second: 0,
            handled: 0,
            retry_after_s: 1,
        }
    }
}

impl<F: FnMut(&Outcome)> Engine<'_, F> {
    /// Plans the first requests of a kind of clients. Those of a closed loop begin within the first
    /// millisecond.
    pub(super) fn plan_first(&mut self, kind: usize) {
        self.plan_arrival(kind);
        let clients = u64::from(self.system.clients[kind].arrivals.clients);
        for client in 0..clients {
            self.plan(1_000_000 * client / clients, Action::Begin(kind));
        }
    }

    fn plan_arrival(&mut self, kind: usize) {
        if let Some(next) = self.kinds[kind].plan.peek() {
            let at_ns = next.at_ns;
            self.plan(at_ns, Action::Arrive(kind));
        }
    }

    /// Begins the next request of an open loop.
    pub(super) fn arrive(&mut self, kind: usize) {
        let planned = self.kinds[kind].plan.next().expect("it was planned");
        self.plan_arrival(kind);
        self.begin(kind, planned);
    }

    /// Begins a request of a client in a closed loop.
    pub(super) fn begin_again(&mut self, kind: usize) {
        let planned = self.kinds[kind].sent.client(self.now_ns);
        self.begin(kind, planned);
    }

    fn begin(&mut self, kind: usize, planned: Planned) {
        let place = self.gone.pop().unwrap_or(self.clients.len());
        let client = Client {
            attempts: 0,
            begun_ns: self.now_ns,
            last_ns: self.now_ns,
            waits_for: 0,
            attempt: Attempt {
                kind,
                client: place,
                number: 0,
            },
            planned,
        };
        match self.clients.get_mut(place) {
            Some(gone) => *gone = client,
            None => self.clients.push(client),
        }
        self.attempt(place);
    }

    /// Makes the next attempt of a client. It demands other times than the last one.
    pub(super) fn retry(&mut self, client: usize) {
        let Client {
            attempt, planned, ..
        } = &mut self.clients[client];
        *planned = Planned {
            class: planned.class,
            user: planned.user,
            client: planned.client,
            ..self.kinds[attempt.kind].sent.client(self.now_ns)
        };
        self.attempt(client);
    }

    fn attempt(&mut self, place: usize) {
        self.attempts += 1;
        let client = &mut self.clients[place];
        client.attempts += 1;
        client.last_ns = self.now_ns;
        client.waits_for = self.attempts;
        client.attempt.number = self.attempts;
        let (attempt, planned) = (client.attempt, client.planned);
        let clients = self.kinds[attempt.kind].clients;
        if clients.timeout_ns < u64::MAX {
            self.plan_after(clients.timeout_ns, Action::Timeout(attempt));
        }
        let job = Job {
            from: From::Client,
            attempt,
            planned,
            path: None,
            number: 0,
            arrived_ns: 0,
            degraded: false,
        };
        self.offer(clients.stage, job);
    }

    /// Returns whether a client waits for the answer to this attempt.
    pub(super) fn waits(&self, attempt: Attempt) -> bool {
        self.clients[attempt.client].waits_for == attempt.number
    }

    pub(super) fn attempt_ends(&mut self, place: usize, end: EventEnd) {
        let client = &mut self.clients[place];
        client.waits_for = 0;
        let (attempts, kind, planned) = (client.attempts, client.attempt.kind, client.planned);
        let (begun_ns, last_ns) = (client.begun_ns, client.last_ns);
        let clients = self.kinds[kind].clients;
        let is_rejected = matches!(end, EventEnd::Rejected | EventEnd::Shed);
        if end != EventEnd::Served && attempts <= clients.backoff.retries {
            let unit = self.random.unit();
            let mut after_ns = clients.backoff.before_ns(attempts - 1, unit);
            if is_rejected {
                after_ns = after_ns.max(self.retry_after_ns(kind));
            }
            return self.plan_after(after_ns, Action::Attempt(place));
        }
        (self.tell)(&Outcome {
            clients: kind,
            class: planned.class,
            user: planned.user,
            hot: planned.hot,
            attempts,
            arrived_ns: begun_ns,
            last_ns,
            ended_ns: self.now_ns,
            end,
        });
        self.gone.push(place);
        if planned.client {
            let after_ns = if is_rejected {
                self.retry_after_ns(kind)
            } else {
                clients.arrivals.pause.draw(&mut self.random)
            };
            // A client that never waits must not stop the clock.
            let least_ns = u64::from(begun_ns == self.now_ns);
            self.plan_after(after_ns.max(least_ns), Action::Begin(kind));
        }
    }

    /// Returns the time after which a rejected client may send again.
    fn retry_after_ns(&mut self, kind: usize) -> u64 {
        let set = &mut self.kinds[kind];
        let arrivals = &set.clients.arrivals;
        if !arrivals.told {
            return arrivals.retry_ns;
        }
        let stage = &self.stages[set.clients.stage];
        let second = self.now_ns / SECOND;
        if second > set.second {
            let a_second = (stage.totals.handled - set.handled) / (second - set.second);
            let inside = stage.state.len() + stage.state.in_service();
            set.retry_after_s = inside.div_ceil(a_second.max(1)).clamp(1, RETRY_AFTER_S_MAX);
            (set.second, set.handled) = (second, stage.totals.handled);
        }
        let least_s = set.retry_after_s;
        (least_s + self.random.next() % (least_s + 1)) * SECOND
    }
}
