//! A simulated run: the loop that processes one event at a time on a virtual clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::iter::Peekable;
use std::sync::Arc;

use super::cpus::{Cpus, Who};
use super::servlet::Servlet;
use super::{EventEnd, Outcome, Planned, Schedule, Simulation, Tick};
use crate::stage::control::Controller;
use crate::stage::event::{CLASSES_MAX, Event, NotTaken};
use crate::stage::queue::{ByKey, Lanes, Queue};
use crate::stage::state::{Bounds, ControllerSet, How, Kind, Parts, Process, State, Wake};

pub(super) struct Engine<'a, F> {
    pub(super) simulation: &'a Simulation,
    plan: Peekable<Schedule<'a>>,
    /// The events of clients in a closed loop, and the next send time of each client that is not
    /// waiting.
    clients: Schedule<'a>,
    sends: BinaryHeap<Reverse<u64>>,
    pub(super) state: State<Planned>,
    pub(super) cpus: Cpus,
    pub(super) now_ns: u64,
    pub(super) servlets: Vec<Servlet>,
    /// Parked servlets, the most recent one last, and the free places of servlets that ended.
    pub(super) parked: Vec<usize>,
    pub(super) free: Vec<usize>,
    /// The end of each wait, and the servlet that waits.
    pub(super) waits: BinaryHeap<Reverse<(u64, u64, usize)>>,
    pub(super) waits_begun: u64,
    /// True if a hot event is in service.
    pub(super) hot: bool,
    /// The servlets that wait until no hot event is in service.
    pub(super) hot_next: VecDeque<usize>,
    /// The number of permits.
    pub(super) permits: usize,
    /// The number of permits that are held.
    pub(super) held: usize,
    /// The servlets that wait for a permit.
    pub(super) hold_next: VecDeque<usize>,
    /// The number of changes of `permits` that have taken effect.
    permits_changed: usize,
    /// The number of changes of the CPUs' speed that have taken effect.
    speed: usize,
    /// Rejected events whose rejection has not been computed yet.
    rejections: VecDeque<Outcome>,
    pub(super) tell: F,
    ticks: Vec<Tick>,
    pub(super) tick: Tick,
    pub(super) response_sum_ns: u128,
}

impl<'a, F: FnMut(&Outcome)> Engine<'a, F> {
    pub(super) fn new(
        simulation: &'a Simulation,
        controllers: Vec<Box<dyn Controller>>,
        seed: u64,
        tell: F,
    ) -> Self {
        let classes = simulation.arrivals.classes.len().clamp(1, CLASSES_MAX);
        let queue = if simulation.keyed {
            // Any two events that are not hot may be in service at the same time.
            let key_of = |event: &Planned| if event.hot { 0 } else { event.number };
            Queue::Keyed(Box::new(ByKey::new(key_of, None, classes)))
        } else {
            Queue::Lanes(Lanes::new(classes))
        };
        let mut state = State::new(Parts {
            queue,
            controllers: ControllerSet::new(controllers, classes, 0),
            bounds: Bounds {
                queue_max: simulation.queue_max.max(1),
                class_max: [u64::MAX; CLASSES_MAX],
                batch_max: simulation.batch_max.max(1),
                servlets_max: simulation.servlets_max.max(1),
            },
            classes,
            kind: if simulation.blocking {
                Kind::Blocking
            } else {
                Kind::Async
            },
            workers: simulation.workers.max(1),
            servlets: simulation.servlets,
            batch: simulation.batch_max,
            seed: !seed,
            process: Arc::new(Process::default()),
        });
        state.has_handler = true;
        Self {
            simulation,
            plan: simulation.plan(seed).peekable(),
            clients: simulation.plan(!seed),
            sends: first_sends(simulation.arrivals.clients)
                .map(Reverse)
                .collect(),
            state,
            cpus: Cpus::new(simulation.workers, simulation.blocking),
            now_ns: 0,
            servlets: Vec::new(),
            parked: Vec::new(),
            free: Vec::new(),
            waits: BinaryHeap::new(),
            waits_begun: 0,
            hot: false,
            hot_next: VecDeque::new(),
            permits: usize::MAX,
            held: 0,
            hold_next: VecDeque::new(),
            permits_changed: 0,
            speed: 0,
            rejections: VecDeque::new(),
            tell,
            ticks: Vec::new(),
            tick: Tick::default(),
            response_sum_ns: 0,
        }
    }

    /// Runs the simulation, and returns the log of the controllers' decisions.
    #[cfg(test)]
    pub(super) fn log(mut self) -> crate::stage::control::log::Log {
        self.go();
        self.state.log
    }

    pub(super) fn run(mut self) -> Vec<Tick> {
        self.go();
        self.ticks
    }

    fn go(&mut self) {
        let tick_ns = self.simulation.tick_ns.max(1);
        let mut next_tick_ns = tick_ns;
        loop {
            let speed = self.simulation.speeds.get(self.speed);
            let speed_ns = speed.map_or(u64::MAX, |speed| speed.0);
            let permits = self.simulation.permits.get(self.permits_changed);
            let permits_ns = permits.map_or(u64::MAX, |permits| permits.0);
            let cpu_ns = self.cpus.next_ns();
            let wait_ns = self.waits.peek().map_or(u64::MAX, |next| next.0.0);
            let arrival_ns = self.plan.peek().map_or(u64::MAX, |next| next.at_ns);
            let send_ns = self.sends.peek().map_or(u64::MAX, |next| next.0);
            if self.state.watch.is_short() {
                self.state.watch.set();
            }
            let check_ns = self.state.watch.looks_ns;
            let next_ns = speed_ns
                .min(permits_ns)
                .min(cpu_ns)
                .min(wait_ns)
                .min(arrival_ns)
                .min(send_ns)
                .min(check_ns)
                .min(next_tick_ns);
            if next_ns > self.simulation.until_ns {
                return;
            }
            self.now_ns = next_ns.max(self.now_ns);
            if let Some(speed) = speed.filter(|_| speed_ns == next_ns) {
                self.cpus.set_speed(speed.1, self.now_ns);
                self.speed += 1;
            } else if let Some(permits) = permits.filter(|_| permits_ns == next_ns) {
                self.permits = permits.1;
                self.permits_changed += 1;
                self.permit();
            } else if cpu_ns == next_ns {
                match self.cpus.end(self.now_ns) {
                    Who::Rejection => self.told(),
                    Who::Servlet(id) if self.cpus.is_urgent() => self.cpus.want_back(id),
                    Who::Servlet(id) => self.go_on(id),
                }
            } else if wait_ns == next_ns {
                let Reverse((_, _, id)) = self.waits.pop().expect("it was just seen");
                self.cpus.want(id);
            } else if arrival_ns == next_ns {
                let planned = self.plan.next().expect("it was just seen");
                self.arrive(planned);
            } else if send_ns == next_ns {
                self.sends.pop();
                let planned = self.clients.client(self.now_ns);
                self.arrive(planned);
            } else if check_ns == next_ns {
                for (event, _) in self.state.check_queue(self.now_ns) {
                    self.reject(&event.into_inner(), EventEnd::Shed);
                }
            } else {
                self.note_tick();
                next_tick_ns += tick_ns;
            }
            self.dispatch();
        }
    }

    /// Gives free CPUs to the work that waits for one.
    fn dispatch(&mut self) {
        while let Some(who) = self.cpus.dispatch() {
            match who {
                Who::Rejection => {
                    let work_ns = self.simulation.rejection_ns as f64;
                    self.cpus.begin(who, work_ns, self.now_ns);
                }
                Who::Servlet(id) => self.go_on(id),
            }
        }
    }

    fn arrive(&mut self, planned: Planned) {
        let mut event = Event::new(planned).class(planned.class);
        if self.simulation.arrivals.cohorts {
            event = event.cohort(planned.user);
        }
        let mut how = How::default();
        self.tick.arrived += 1;
        loop {
            self.state.queue.look_at(&event);
            let offered = self.state.offer(event, how, self.now_ns);
            self.state.decide(self.now_ns);
            self.wake_servlet();
            match offered {
                Ok(()) => return,
                Err((refused, NotTaken::Degrade)) => {
                    event = refused;
                    let part = event.compute_ns as f64 * self.simulation.degraded;
                    event.compute_ns = part as u64;
                    how.asked = true;
                }
                Err(_) => return self.reject(&planned, EventEnd::Rejected),
            }
        }
    }

    /// Schedules the next event of the client that sent this one, if it was a client in a closed
    /// loop.
    pub(super) fn send_again(&mut self, planned: &Planned, after_ns: u64) {
        if planned.client {
            self.sends
                .push(Reverse(self.now_ns.saturating_add(after_ns)));
        }
    }

    pub(super) fn reject(&mut self, planned: &Planned, end: EventEnd) {
        self.send_again(planned, self.simulation.arrivals.retry_ns.max(1));
        self.tick.rejected += 1;
        self.rejections
            .push_back(outcome(planned, self.now_ns, end));
        if self.simulation.rejection_ns == 0 {
            self.told();
        } else {
            self.cpus.want_urgently();
        }
    }

    fn told(&mut self) {
        let mut outcome = self
            .rejections
            .pop_front()
            .expect("a rejection is told once");
        outcome.ended_ns = self.now_ns;
        (self.tell)(&outcome);
    }

    /// Wakes or starts a servlet if the state wants one.
    pub(super) fn wake_servlet(&mut self) {
        let id = match self.state.wake_servlet() {
            Wake::Nobody => return,
            Wake::Unpark => self.parked.pop().expect("the state counts who is parked"),
            Wake::Spawn => self.free.pop().unwrap_or_else(|| {
                self.servlets.push(Servlet::default());
                self.servlets.len() - 1
            }),
        };
        self.cpus.want(id);
    }

    fn note_tick(&mut self) {
        let served = u128::from(self.tick.served);
        let mean_ns = self.response_sum_ns.checked_div(served);
        self.ticks.push(Tick {
            at_ns: self.now_ns,
            queue_len: self.state.len(),
            servlets: self.state.servlets.target,
            busy: self.state.servlets.busy,
            batch: self.state.batch,
            threshold: self.state.threshold,
            response_mean_ns: mean_ns.map_or(0, |mean_ns| mean_ns as u64),
            ..self.tick
        });
        self.tick = Tick::default();
        self.response_sum_ns = 0;
    }
}

/// Returns the times at which clients in a closed loop send their first events.
fn first_sends(clients: u32) -> impl Iterator<Item = u64> {
    let clients = u64::from(clients);
    (0..clients).map(move |client| 1_000_000 * client / clients)
}

pub(super) fn outcome(planned: &Planned, ended_ns: u64, end: EventEnd) -> Outcome {
    Outcome {
        class: planned.class,
        user: planned.user,
        hot: planned.hot,
        arrived_ns: planned.at_ns,
        ended_ns,
        end,
    }
}
