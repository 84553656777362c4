//! The record of one client's requests.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use super::connect::Failure;
use super::exchange::{Answered, Flight};
use super::fault::Fault;
use super::pace::Pace;
use super::shared::Run;
use crate::load::report::tally::{Ended, Outcome};

/// The counts of a client.
#[derive(Debug, Default)]
pub(in crate::load) struct Record {
    /// Requests that were served.
    pub(in crate::load) total: u64,
    /// The number of served requests in each slot of the measurement.
    pub(in crate::load) served: Vec<u32>,
    /// Requests that were in flight at the end, or due but not sent.
    pub(in crate::load) under_way: u64,
    pub(in crate::load) never_sent: u64,
    /// Requests in flight that had been due for longer than the time limit for a response.
    pub(in crate::load) overdue: u64,
    /// The requests of both kinds that had been due for longer than `--within`.
    pub(in crate::load) late: u64,
    /// The due time of the oldest request of both kinds.
    pub(in crate::load) oldest_ns: Option<u64>,
}

/// The running counts of a client.
pub(in crate::load) struct ClientTally {
    run: Arc<Run>,
    record: Record,
    /// The part of the run's limited number of requests that the client has claimed but not used.
    lot: u64,
    last_ns: u64,
    not_before_ns: u64,
    random: Rng,
}

impl ClientTally {
    pub(in crate::load) fn new(run: Arc<Run>, random: Rng) -> Self {
        Self {
            run,
            record: Record::default(),
            lot: 0,
            last_ns: 0,
            not_before_ns: 0,
            random,
        }
    }

    /// Returns the time at which the last request ended.
    pub(in crate::load) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Returns the end of the pause that the last response requested.
    pub(in crate::load) fn not_before_ns(&self) -> u64 {
        self.not_before_ns
    }

    /// Records that a free client woke up for a request.
    pub(in crate::load) fn woken(&mut self, due_ns: u64, now_ns: u64) {
        if self.run.settings.rate.is_some() && self.run.since(now_ns).is_some() {
            self.run
                .tally(|tally| tally.lag.saturating_record(now_ns - due_ns));
        }
    }

    /// Returns whether the next request counts toward the run's limited number of requests; `None`
    /// if that number has been reached.
    pub(in crate::load) fn claim(&mut self, now_ns: u64) -> Option<bool> {
        let Some(budget) = &self.run.budget else {
            return Some(false);
        };
        if self.run.since(now_ns).is_none() {
            return Some(false);
        }
        if self.lot == 0 {
            self.lot = budget.claim(self.run.settings.connections as u64);
        }
        self.lot = self.lot.checked_sub(1)?;
        Some(true)
    }

    /// Records a new connection and returns the time.
    pub(in crate::load) fn connected(&mut self, began_ns: u64) -> u64 {
        let now_ns = self.run.now_ns();
        let took_ns = now_ns - began_ns;
        let is_measured = self.run.since(now_ns).is_some();
        self.run.tally(|tally| match is_measured {
            true => tally.connect.saturating_record(took_ns),
            false => tally.connect_before.saturating_record(took_ns),
        });
        now_ns
    }

    /// Records that the first connection failed.
    pub(in crate::load) fn failed_before(&mut self, failure: Failure) {
        self.run.failed_before(&failure);
    }

    /// Records an answer.
    pub(in crate::load) fn answered(&mut self, flight: Flight, answer: Answered) {
        self.last_ns = self.run.now_ns();
        if answer.outcome == Outcome::Rejected {
            let asked = answer.head.retry_after;
            let asked = asked.filter(|_| self.run.settings.honor_retry_after);
            // The field contains whole seconds. Without a random part, clients that were rejected
            // at the same moment would return at the same moment forever, unlike real clients.
            let asked = asked.map(|asked| asked.saturating_add(self.part_of_a_second()));
            self.pause(asked.unwrap_or(self.run.settings.retry_pause));
        }
        self.ended(
            &flight,
            answer.outcome,
            Some(answer.head.status),
            answer.bytes,
        );
    }

    /// Records that requests have failed together, and returns the time. If there are none, all
    /// requests had been answered when their connection failed.
    pub(in crate::load) fn failed(
        &mut self,
        failure: Failure,
        flights: impl Iterator<Item = Flight>,
    ) -> u64 {
        self.last_ns = self.run.now_ns();
        self.pause(self.run.settings.retry_pause);
        let mut is_alone = true;
        for flight in flights {
            self.ended(&flight, Outcome::Failed(failure.fault), None, 0);
            is_alone = false;
        }
        if is_alone {
            self.connection_failed(failure.fault);
        }
        if self.run.since(self.last_ns).is_some() {
            self.run.sample(&failure);
        }
        self.last_ns
    }

    /// Counts the failure of a connection as the failure of a request, although none was in flight.
    fn connection_failed(&self, fault: Fault) {
        let Some(since_ns) = self.run.since(self.last_ns) else {
            return;
        };
        let ended = Ended {
            outcome: Outcome::Failed(fault),
            status: None,
            bytes: 0,
            due_ns: self.last_ns,
            from_ns: self.last_ns,
            ended_ns: self.last_ns,
            first: false,
        };
        self.run.tally(|tally| tally.count(&ended, since_ns));
    }

    fn part_of_a_second(&mut self) -> Duration {
        Duration::from_secs_f64(self.random.f64())
    }

    fn pause(&mut self, pause: Duration) {
        // A server may ask for any pause.
        let pause_ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        self.not_before_ns = self.last_ns.saturating_add(pause_ns);
    }

    fn ended(&mut self, flight: &Flight, outcome: Outcome, status: Option<u16>, bytes: u64) {
        let Some(since_ns) = self.run.since(self.last_ns) else {
            self.late(flight.due_ns);
            return;
        };
        if self.run.budget.is_some() && !flight.claimed {
            return;
        }
        if outcome == Outcome::Served {
            self.record.total += 1;
            self.run.slots.count(&mut self.record.served, since_ns);
        }
        let from_ns = match self.run.settings.rate {
            Some(_) => flight.due_ns,
            None => flight.sent_ns,
        };
        let ended = Ended {
            outcome,
            status,
            bytes,
            due_ns: flight.due_ns,
            from_ns,
            ended_ns: self.last_ns,
            first: flight.first,
        };
        self.run.tally(|tally| tally.count(&ended, since_ns));
    }

    /// Records a request that ended outside of the measurement. The request was in flight at the
    /// end of the measurement if it was due by then and ended later.
    fn late(&mut self, due_ns: u64) {
        let end_ns = self.run.end_ns();
        if due_ns <= end_ns && end_ns < self.last_ns {
            self.under_way(due_ns, end_ns);
        }
    }

    /// Records a request that had no response at the end.
    fn under_way(&mut self, due_ns: u64, end_ns: u64) {
        let settings = &self.run.settings;
        let waited = Duration::from_nanos(end_ns - due_ns);
        self.record.under_way += 1;
        self.record.overdue += u64::from(waited > settings.timeout);
        self.record.late += u64::from(settings.within.is_some_and(|limit| waited > limit));
        self.record.wait_since(due_ns);
    }

    /// Closes the record, with the requests still in flight and those that are due but have not
    /// begun.
    pub(in crate::load) fn close<'a>(
        &mut self,
        flights: impl Iterator<Item = &'a Flight>,
        pace: &Pace,
    ) {
        let end_ns = self.run.end_ns();
        let due = flights.map(|flight| flight.due_ns);
        due.filter(|&due_ns| due_ns <= end_ns)
            .for_each(|due_ns| self.under_way(due_ns, end_ns));
        let mut record = std::mem::take(&mut self.record);
        let (missed, since_ns) = pace.missed(end_ns);
        record.never_sent = missed;
        if let Some(since_ns) = since_ns {
            record.wait_since(since_ns);
        }
        if let Some(limit) = self.run.settings.within {
            record.late += pace
                .missed(end_ns.saturating_sub(limit.as_nanos() as u64))
                .0;
        }
        self.run.close(record);
    }
}

impl Record {
    fn wait_since(&mut self, due_ns: u64) {
        self.oldest_ns = Some(
            self.oldest_ns
                .map_or(due_ns, |oldest_ns| oldest_ns.min(due_ns)),
        );
    }
}
