//! One client: a thread that makes a request whenever one is due.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fastrand::Rng;
use tussah::time::{Sleep, sleep, sleep_until};

use super::client_tally::ClientTally;
use super::connect::Failure;
use super::exchange::{Answered, Exchange, Flight};
use super::pace::Pace;
use super::settings::CloseBy;
use super::shared::{CONNECT_PAUSE, Run};

/// The pace when no request is due.
const IDLE: Pace = Pace::Closed { think_ns: 0 };

/// A client. Its counts are in the run's records once it has been dropped.
pub(in crate::load) struct Client {
    run: Arc<Run>,
    number: usize,
    pace: Pace,
    tally: ClientTally,
    exchange: Exchange,
    random: Rng,
    limit: Limit,
    /// The number of requests until the next one whose body is compared.
    until_check: u32,
}

impl Client {
    pub(in crate::load) fn new(run: Arc<Run>, number: usize) -> Self {
        let seed = run.settings.seed.wrapping_add(number as u64);
        // Mixing turns neighboring seeds into unrelated sequences.
        let seed = Rng::with_seed(seed).u64(..);
        Self {
            number,
            pace: IDLE,
            exchange: Exchange::new(),
            random: Rng::with_seed(seed),
            limit: Limit::new(),
            until_check: (seed % u64::from(run.settings.check_every.max(1))) as u32,
            tally: ClientTally::new(run.clone(), Rng::with_seed(!seed)),
            run,
        }
    }

    /// Connects, waits for the other clients, and makes requests until the run has enough. After
    /// that it waits until it is aborted.
    pub(in crate::load) async fn run(mut self) {
        self.arrive().await;
        let start_ns = self.run.begun().await;
        self.pace = self.run.settings.pace(self.number, start_ns);
        let mut due_ns = self.pace.first(start_ns, &mut self.random);
        let mut now_ns = self.run.now_ns();
        loop {
            if due_ns > now_ns {
                sleep_until(self.run.instant(due_ns)).await;
                let woken_ns = self.run.now_ns();
                self.tally.woken(due_ns, woken_ns);
                now_ns = woken_ns;
            }
            if !self.fill(due_ns, now_ns) {
                // Requests that come due from now on are not needed.
                self.pace = IDLE;
                return;
            }
            now_ns = match self.make(now_ns).await {
                Ok(()) => self.tally.last_ns(),
                Err(failure) => self.tally.failed(failure, self.exchange.fail()),
            };
            self.close_if_last();
            due_ns = self.next(now_ns);
        }
    }

    /// Returns the due time of the next request. In a closed loop it is not before the end of a
    /// pause.
    fn next(&mut self, now_ns: u64) -> u64 {
        let due_ns = self.pace.after(now_ns);
        match self.pace {
            Pace::Closed { .. } => due_ns.max(self.tally.not_before_ns()),
            Pace::Open { .. } => due_ns,
        }
    }

    /// Makes the first connection, while few other clients connect. A client that fails continues
    /// without a connection.
    async fn arrive(&mut self) {
        let run = self.run.clone();
        let permit = run.connecting.acquire().await;
        let began_ns = run.now_ns();
        match self.connect(began_ns).await {
            Ok(_) => run.connected(),
            Err(failure) => self.tally.failed_before(failure),
        }
        sleep(CONNECT_PAUSE).await;
        drop(permit);
        run.arrived();
    }

    /// Connects, and returns the time of completion.
    async fn connect(&mut self, began_ns: u64) -> Result<u64, Failure> {
        let stream = self.run.dial.connect(self.number).await?;
        self.exchange.connected(stream);
        Ok(self.tally.connected(began_ns))
    }

    /// Returns a request of this client.
    fn flight(&mut self, due_ns: u64, sent_ns: u64, claimed: bool) -> Flight {
        let run = &*self.run;
        let begun = self.exchange.begun;
        let checked = match run.settings.check_every {
            0 => false,
            every if self.until_check == 0 => {
                self.until_check = every - 1;
                true
            }
            _ => {
                self.until_check -= 1;
                false
            }
        };
        let per_connection = run.settings.requests_per_connection;
        Flight {
            target: run.requests.pick(&mut self.random),
            first: begun == 0,
            last: per_connection.is_some_and(|count| begun + 1 >= count),
            checked,
            claimed,
            due_ns,
            sent_ns,
        }
    }

    /// Adds the requests to send now. Returns false if the run needs no more requests.
    fn fill(&mut self, due_ns: u64, now_ns: u64) -> bool {
        let pipeline = self.run.settings.pipeline;
        let mut next = Some(due_ns);
        while let Some(due_ns) = next {
            let Some(claimed) = self.tally.claim(now_ns) else {
                break;
            };
            let flight = self.flight(due_ns, now_ns, claimed);
            self.exchange.push(flight);
            if flight.last || self.exchange.flights().len() >= pipeline {
                break;
            }
            next = self.pace.another(due_ns, now_ns);
        }
        !self.exchange.flights().is_empty()
    }

    /// Connects if necessary and makes the requests.
    async fn make(&mut self, now_ns: u64) -> Result<(), Failure> {
        let mut sent_ns = now_ns;
        if !self.exchange.is_connected() {
            sent_ns = self.connect(now_ns).await?;
            self.exchange.sent_at(sent_ns);
        }
        self.exchange(sent_ns).await
    }

    /// Sends the requests and receives all responses.
    async fn exchange(&mut self, sent_ns: u64) -> Result<(), Failure> {
        let Self {
            run,
            tally,
            exchange,
            limit,
            ..
        } = self;
        let deadline_ns = sent_ns + run.settings.timeout.as_nanos() as u64;
        poll_fn(|context| {
            let answered = |flight: Flight, answer: Answered| tally.answered(flight, answer);
            match exchange.poll(context, &run.requests, answered) {
                Poll::Ready(result) => Poll::Ready(result),
                Poll::Pending => limit
                    .poll(context, run, deadline_ns)
                    .map(|()| Err(super::fault::Fault::Timeout.into())),
            }
        })
        .await
    }

    /// Closes the connection after its last request, or if the server closes it.
    fn close_if_last(&mut self) {
        let settings = &self.run.settings;
        let count = settings.requests_per_connection;
        let is_last = count.is_some_and(|count| self.exchange.begun >= count);
        if !is_last && !self.exchange.closes() {
            return;
        }
        if let Some(stream) = self.exchange.disconnect()
            && settings.close_by == CloseBy::Reset
        {
            stream.reset_on_drop();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let flights = self.exchange.flights().iter();
        self.tally.close(flights, &self.pace);
    }
}

/// A time limit that costs nothing unless it is exceeded: the timer is reset only after an earlier
/// limit has passed.
struct Limit {
    timer: Pin<Box<Sleep>>,
    is_set: bool,
}

impl Limit {
    fn new() -> Self {
        Self {
            timer: Box::pin(sleep_until(tussah::time::now())),
            is_set: false,
        }
    }

    /// Returns ready once the deadline has passed. Deadlines never become earlier.
    fn poll(&mut self, context: &mut Context<'_>, run: &Run, deadline_ns: u64) -> Poll<()> {
        while !self.is_set || self.timer.is_elapsed() {
            if self.is_set && run.now_ns() >= deadline_ns {
                return Poll::Ready(());
            }
            self.is_set = true;
            self.timer.as_mut().reset(run.instant(deadline_ns));
            // The timer wakes this thread, whose waker never changes.
            if self.timer.as_mut().poll(context).is_pending() {
                break;
            }
        }
        Poll::Pending
    }
}
