//! Test support for controllers: handmade samples, and a queue with servers on a virtual clock.

mod clients;

use std::collections::VecDeque;

use super::{
    Admission, Arrival, ClassSample, Controller, Departure, Order, Sample, Servlets, Verdict,
};
use crate::stage::event::Class;
pub(super) use crate::stage::sim::Random;

pub(super) use self::clients::{Back, Clients};

pub(super) const MS: u64 = 1_000_000;

pub(super) const SECOND: u64 = 1_000_000_000;

/// Returns a sample of an idle stage with one servlet and one class, for a test to change.
pub(super) fn quiet() -> Sample<'static> {
    Sample {
        interval_ns: MS,
        busy_ns: 0,
        queue_len: 0,
        queue_max: 1000,
        threshold: 1000,
        arrived: 0,
        admitted: 0,
        refused: 0,
        shed: 0,
        finished: 0,
        failed: 0,
        in_service: 0,
        batches: 0,
        service_ns: 0,
        compute_ns: 0,
        held_up_ns: 0,
        ready_ns: 0,
        fresh_batches: 0,
        service_squares: 0.0,
        bytes: 0,
        batch_max: 1,
        servlets: Servlets {
            busy: 0,
            parked: 1,
            target: 1,
            max: 100,
        },
        workers: 2,
        waiting: 0,
        blocking: false,
        process_servlets: 1,
        process_servlets_mean: 1.0,
        pace_ns: 0,
        outgoing_max: u64::MAX,
        random: 0,
        classes: &[],
    }
}

/// Returns an arrival of one credit at a queue of this length.
pub(super) fn arrival(class: u8, queue_len: u64, in_service: u64) -> Arrival {
    Arrival {
        class: Class(class),
        credits: 1,
        cohort: 0,
        queue_len,
        ahead: queue_len,
        in_service,
        now_ns: 0,
        random: 0,
    }
}

/// The distribution of service times.
#[derive(Clone, Copy)]
pub(super) enum Service {
    Exponential,
    /// The standard deviation equals the mean.
    Lognormal,
    /// One service in ten takes five times as long as the others.
    Bimodal,
    Constant,
}

impl Service {
    fn draw(self, mean: f64, random: &mut Random) -> f64 {
        match self {
            Service::Exponential => mean * random.exponential(),
            Service::Lognormal => {
                let variance = std::f64::consts::LN_2;
                let radius = (-2.0 * random.unit().ln()).sqrt();
                let normal = radius * (std::f64::consts::TAU * random.unit()).cos();
                mean * (variance.sqrt() * normal - variance / 2.0).exp()
            }
            Service::Bimodal if random.unit() < 0.1 => mean * 5.0 / 1.4,
            Service::Bimodal => mean / 1.4,
            Service::Constant => mean,
        }
    }
}

/// A stage with its arrivals.
#[derive(Clone, Copy)]
pub(super) struct Model {
    pub(super) servers: usize,
    pub(super) service: Service,
    pub(super) service_mean_ns: f64,
    pub(super) batch_max: usize,
    pub(super) queue_max: u64,
    pub(super) classes: usize,
    pub(super) cost: u32,
}

impl Model {
    /// Two servers, exponential services of 100 µs, single events, one class.
    pub(super) fn two_servers() -> Self {
        Self {
            servers: 2,
            service: Service::Exponential,
            service_mean_ns: 100_000.0,
            batch_max: 1,
            queue_max: 1_000_000,
            classes: 1,
            cost: 1,
        }
    }

    /// Returns the capacity in events per nanosecond.
    pub(super) fn capacity(&self) -> f64 {
        self.servers as f64 / self.service_mean_ns
    }
}

/// An event that was served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) at_ns: u64,
    pub(super) response_ns: u64,
    pub(super) class: u8,
}

struct Running {
    ends_ns: u64,
    began_ns: u64,
    arrivals_ns: Vec<(u64, u8)>,
}

/// A stage on a virtual clock, run by one controller of admission.
pub(super) struct Sim<C> {
    pub(super) controller: C,
    pub(super) model: Model,
    pub(super) now_ns: u64,
    pub(super) done: Vec<Done>,
    pub(super) offered: u64,
    pub(super) refused: u64,
    pub(super) shed: u64,
    random: Random,
    next_arrival_ns: u64,
    clients: Option<Clients>,
    queues: Vec<VecDeque<u64>>,
    queue_len: u64,
    in_service: u64,
    running: Vec<Running>,
    order: Order,
    sampled_ns: u64,
    idle_ns: u64,
    emptied_ns: Option<u64>,
    counts: Counts,
    classes: Vec<ClassSample>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    arrived: u64,
    refused: u64,
    shed: u64,
    finished: u64,
    batches: u64,
    service_ns: u64,
}

impl<C: Controller> Sim<C> {
    pub(super) fn new(controller: C, model: Model, seed: u64) -> Self {
        Self {
            controller,
            model,
            now_ns: 0,
            done: Vec::new(),
            offered: 0,
            refused: 0,
            shed: 0,
            random: Random::new(seed),
            next_arrival_ns: 0,
            clients: None,
            queues: vec![VecDeque::new(); model.classes],
            queue_len: 0,
            in_service: 0,
            running: Vec::new(),
            order: Order::Fifo,
            sampled_ns: 0,
            idle_ns: 0,
            emptied_ns: Some(0),
            counts: Counts::default(),
            classes: vec![ClassSample::default(); model.classes],
        }
    }

    /// Continues for this time, at a multiple of the initial capacity of the model.
    pub(super) fn run(&mut self, load: f64, capacity: f64, for_ns: u64) {
        let until_ns = self.now_ns + for_ns;
        let gap_ns = 1.0 / (load * capacity);
        self.next_arrival_ns = self.now_ns + (gap_ns * self.random.exponential()) as u64;
        self.go(until_ns, Some(gap_ns));
    }

    /// Continues for this time in a closed loop: only these clients send, each after its previous
    /// response.
    pub(super) fn run_closed(&mut self, clients: Clients, for_ns: u64) {
        self.clients = Some(clients);
        self.go(self.now_ns + for_ns, None);
    }

    /// Continues with the same clients.
    pub(super) fn go_on(&mut self, for_ns: u64) {
        self.go(self.now_ns + for_ns, None);
    }

    fn go(&mut self, until_ns: u64, gap_ns: Option<f64>) {
        loop {
            if let Some(clients) = &self.clients {
                self.next_arrival_ns = clients.next_ns();
            }
            let ends = self.running.iter().enumerate().min_by_key(|r| r.1.ends_ns);
            let ends = ends.map(|(i, running)| (i, running.ends_ns));
            let next_ns = ends.map_or(u64::MAX, |e| e.1).min(self.next_arrival_ns);
            if next_ns > until_ns {
                self.now_ns = until_ns;
                return;
            }
            self.now_ns = next_ns;
            match ends {
                Some((i, ends_ns)) if ends_ns == next_ns => self.finish(i),
                _ => {
                    if let Some(clients) = &mut self.clients {
                        clients.sends();
                    }
                    self.arrive();
                    if let Some(gap_ns) = gap_ns {
                        self.next_arrival_ns += (gap_ns * self.random.exponential()) as u64;
                    }
                }
            }
            self.begin();
            self.sample_if_due();
        }
    }

    fn arrive(&mut self) {
        let class = (self.random.next() % self.model.classes as u64) as u8;
        self.offered += 1;
        self.counts.arrived += 1;
        self.classes[usize::from(class)].arrived += 1;
        let cost = u64::from(self.model.cost);
        let arrival = Arrival {
            class: Class(class),
            credits: self.model.cost,
            cohort: self.random.next() as u16,
            queue_len: self.queue_len,
            ahead: cost
                * self.queues[..=usize::from(class)]
                    .iter()
                    .map(|q| q.len() as u64)
                    .sum::<u64>(),
            in_service: self.in_service,
            now_ns: self.now_ns,
            random: self.random.next(),
        };
        if self.queue_len + cost > self.model.queue_max
            || self.controller.on_enqueue(&arrival) == Admission::Reject
        {
            self.refused += 1;
            self.counts.refused += 1;
            self.classes[usize::from(class)].refused += 1;
            self.turned_away();
            return;
        }
        if let Some(emptied_ns) = self.emptied_ns.take() {
            self.idle_ns += self.now_ns - emptied_ns;
        }
        self.queues[usize::from(class)].push_back(self.now_ns);
        self.queue_len += cost;
    }

    fn begin(&mut self) {
        while self.running.len() < self.model.servers && self.queue_len > 0 {
            let mut batch = Vec::new();
            while batch.len() < self.model.batch_max {
                let Some((at_ns, class)) = self.take() else {
                    break;
                };
                let verdict = self.controller.on_dequeue(&Departure {
                    class: Class(class),
                    sojourn_ns: self.now_ns - at_ns,
                    queue_len: self.queue_len,
                    now_ns: self.now_ns,
                });
                if verdict == Verdict::Serve {
                    batch.push((at_ns, class));
                } else {
                    self.shed += 1;
                    self.counts.shed += 1;
                    self.turned_away();
                }
            }
            if batch.is_empty() {
                break;
            }
            let mut takes_ns = 0.0;
            for _ in &batch {
                let mean_ns = self.model.service_mean_ns;
                takes_ns += self.model.service.draw(mean_ns, &mut self.random);
            }
            self.in_service += batch.len() as u64;
            self.running.push(Running {
                ends_ns: self.now_ns + takes_ns as u64,
                began_ns: self.now_ns,
                arrivals_ns: batch,
            });
        }
        if self.running.is_empty() && self.emptied_ns.is_none() {
            self.emptied_ns = Some(self.now_ns);
        }
    }

    fn turned_away(&mut self) {
        if let Some(clients) = &mut self.clients {
            let inside = self.queue_len / u64::from(self.model.cost) + self.in_service;
            clients.turned_away(self.now_ns, inside, &mut self.random);
        }
    }

    fn take(&mut self) -> Option<(u64, u8)> {
        let (class, queue) = (0..).zip(&mut self.queues).find(|q| !q.1.is_empty())?;
        self.queue_len -= u64::from(self.model.cost);
        let at_ns = match self.order {
            Order::Fifo => queue.pop_front(),
            Order::Lifo => queue.pop_back(),
        };
        Some((at_ns?, class))
    }

    fn finish(&mut self, index: usize) {
        let batch = self.running.swap_remove(index);
        self.in_service -= batch.arrivals_ns.len() as u64;
        self.counts.batches += 1;
        self.counts.service_ns += self.now_ns - batch.began_ns;
        for (at_ns, class) in batch.arrivals_ns {
            let response_ns = self.now_ns - at_ns;
            self.counts.finished += 1;
            let sample = &mut self.classes[usize::from(class)];
            // This holds the sum until the sample is taken.
            sample.response_mean_ns += response_ns;
            sample.finished += 1;
            self.done.push(Done {
                at_ns: self.now_ns,
                response_ns,
                class,
            });
            if let Some(clients) = &mut self.clients {
                clients.answered(self.now_ns, &mut self.random);
            }
        }
    }

    fn sample_if_due(&mut self) {
        let cadence = self.controller.cadence();
        let counts = self.counts;
        let by_events = cadence.arrived > 0 && counts.arrived >= cadence.arrived
            || cadence.finished > 0 && counts.finished >= cadence.finished
            || cadence.arrived == 0 && cadence.finished == 0;
        let interval_ns = self.now_ns - self.sampled_ns;
        if !by_events || interval_ns < cadence.interval_ns.max(1) {
            return;
        }
        if let Some(emptied_ns) = &mut self.emptied_ns {
            self.idle_ns += self.now_ns - *emptied_ns;
            *emptied_ns = self.now_ns;
        }
        for (class, queue) in self.classes.iter_mut().zip(&self.queues) {
            class.queued = queue.len() as u64;
            class.response_mean_ns /= class.finished.max(1);
        }
        let sample = Sample {
            interval_ns,
            busy_ns: interval_ns - self.idle_ns,
            queue_len: self.queue_len,
            queue_max: self.model.queue_max,
            threshold: self.model.queue_max,
            arrived: counts.arrived,
            admitted: counts.arrived - counts.refused,
            refused: counts.refused,
            shed: counts.shed,
            finished: counts.finished,
            in_service: self.in_service,
            batches: counts.batches,
            service_ns: counts.service_ns,
            compute_ns: counts.service_ns,
            workers: self.model.servers,
            batch_max: self.model.batch_max,
            servlets: Servlets {
                busy: self.running.len(),
                parked: self.model.servers - self.running.len(),
                target: self.model.servers,
                max: self.model.servers,
            },
            random: self.random.next(),
            classes: &self.classes,
            ..quiet()
        };
        let settings = self.controller.sample(&sample, self.now_ns);
        self.order = settings.order.unwrap_or(self.order);
        self.sampled_ns = self.now_ns;
        self.idle_ns = 0;
        self.counts = Counts::default();
        self.classes.fill(ClassSample::default());
    }
}
