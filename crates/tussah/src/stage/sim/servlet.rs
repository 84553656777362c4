//! The steps of a simulated servlet.

use std::cmp::Reverse;

use super::cpus::Who;
use super::engine::{Engine, outcome};
use super::plan::at;
use super::{EventEnd, Outcome, Planned};
use crate::stage::event::Batch;
use crate::stage::state::Run;

/// A servlet, between two events of its run or within one.
pub(super) struct Servlet {
    run: Run<Planned>,
    batch: Batch<Planned>,
    phase: Phase,
    /// The event in service.
    event: Option<Planned>,
    /// The events of the batch that have been handled.
    done: Vec<Planned>,
    /// The work of the batch that must be done before its next event.
    overhead_ns: u64,
    ended_ns: u64,
    suspended: bool,
}

/// The next step of a servlet when it has a CPU again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// End the run and take the next run.
    Turn,
    /// Fill the batch.
    Fill,
    /// Take an event.
    Take,
    /// Compute for the event.
    Compute,
    /// Ask for a permit, after computing.
    Hold,
    /// Wait while holding the permit.
    Held,
    /// Release the permit.
    Release,
    /// Wait without a permit.
    Wait,
    /// End the event.
    End,
}

impl Default for Servlet {
    fn default() -> Self {
        Self {
            run: Run::default(),
            batch: Batch::default(),
            phase: Phase::Turn,
            event: None,
            done: Vec::new(),
            overhead_ns: 0,
            ended_ns: 0,
            suspended: false,
        }
    }
}

impl<F: FnMut(&Outcome)> Engine<'_, F> {
    /// Runs a servlet that has a CPU until it computes or no longer needs the CPU.
    pub(super) fn go_on(&mut self, id: usize) {
        let servlet = &mut self.servlets[id];
        if std::mem::take(&mut servlet.suspended) {
            servlet.run.resumed_ns = self.now_ns;
        }
        loop {
            let servlet = &mut self.servlets[id];
            let goes_on = match servlet.phase {
                Phase::Turn => self.turn(id),
                Phase::Fill => self.fill(id),
                Phase::Take => {
                    self.take(id);
                    self.may_begin(id)
                }
                Phase::Compute => {
                    servlet.phase = Phase::Hold;
                    let event_ns = servlet.event.map_or(0, |event| event.compute_ns);
                    let work_ns = event_ns.saturating_add(std::mem::take(&mut servlet.overhead_ns));
                    self.cpus
                        .begin(Who::Servlet(id), work_ns as f64, self.now_ns);
                    false
                }
                Phase::Hold => self.hold(id),
                Phase::Held => {
                    servlet.phase = Phase::Release;
                    let hold_ns = servlet.event.map_or(0, |event| event.hold_ns);
                    !self.wait(id, hold_ns)
                }
                Phase::Release => {
                    servlet.phase = Phase::Wait;
                    self.held -= 1;
                    self.permit();
                    true
                }
                Phase::Wait => {
                    servlet.phase = Phase::End;
                    let wait_ns = servlet.event.map_or(0, |event| event.wait_ns);
                    !self.wait(id, wait_ns)
                }
                Phase::End => {
                    self.end(id);
                    true
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Suspends a servlet for this time without its CPU. Returns false if the time is zero.
    fn wait(&mut self, id: usize, wait_ns: u64) -> bool {
        if wait_ns > 0 {
            self.waits_begun += 1;
            let until_ns = self.now_ns.saturating_add(wait_ns);
            self.waits.push(Reverse((until_ns, self.waits_begun, id)));
            self.suspend(id);
        }
        wait_ns > 0
    }

    /// Takes a permit or waits for one, if the event needs one. Returns whether the servlet
    /// continues.
    fn hold(&mut self, id: usize) -> bool {
        let servlet = &mut self.servlets[id];
        if servlet.event.is_none_or(|event| event.hold_ns == 0) {
            servlet.phase = Phase::Wait;
            return true;
        }
        servlet.phase = Phase::Held;
        if self.held < self.permits {
            self.held += 1;
            return true;
        }
        self.hold_next.push_back(id);
        self.suspend(id);
        false
    }

    /// Gives free permits to the servlets that have waited longest.
    pub(super) fn permit(&mut self) {
        while self.held < self.permits
            && let Some(next) = self.hold_next.pop_front()
        {
            self.held += 1;
            self.cpus.want(next);
        }
    }

    /// Ends a servlet's run and takes the next one, or parks the servlet. Returns whether it has a
    /// run.
    fn turn(&mut self, id: usize) -> bool {
        let servlet = &mut self.servlets[id];
        if servlet.run.is_open() {
            self.state
                .finish(&mut servlet.run, &mut servlet.batch, servlet.ended_ns);
            self.state.decide(self.now_ns);
        }
        let too_many = self.state.has_too_many();
        let works = !too_many && self.state.take(&mut servlet.run, self.now_ns);
        if works {
            servlet.phase = Phase::Fill;
        } else if too_many || self.simulation.blocking {
            // An OS thread returns to its pool.
            self.state.ended();
            self.free.push(id);
        } else if self.state.park() {
            self.parked.push(id);
        } else {
            self.free.push(id);
        }
        let mut dropped = std::mem::take(&mut servlet.run.dropped);
        self.wake_servlet();
        for (event, _) in dropped.drain(..) {
            self.reject(&event.into_inner(), EventEnd::Shed);
        }
        // The next run reuses this memory.
        self.servlets[id].run.dropped = dropped;
        works
    }

    /// Fills the batch of a servlet, or ends its run. Returns whether the servlet keeps its CPU.
    fn fill(&mut self, id: usize) -> bool {
        let servlet = &mut self.servlets[id];
        if !servlet.run.ahead.is_empty() {
            servlet.run.fill(&mut servlet.batch);
            let service = at(&self.simulation.services, self.now_ns as f64).0;
            servlet.overhead_ns = service.map_or(0, |service| service.batch_ns);
            servlet.phase = Phase::Take;
            return true;
        }
        servlet.phase = Phase::Turn;
        servlet.ended_ns = self.now_ns;
        let yields = !servlet.run.waits && !self.simulation.blocking;
        if yields {
            self.cpus.want(id);
        }
        !yields
    }

    /// Takes the next event of the batch, or ends the batch.
    fn take(&mut self, id: usize) {
        let servlet = &mut self.servlets[id];
        if let Some(event) = servlet.batch.next() {
            servlet.event = Some(event);
            servlet.phase = Phase::Compute;
            return;
        }
        servlet.batch.end();
        servlet.run.ended();
        servlet.phase = Phase::Fill;
        let mut done = std::mem::take(&mut servlet.done);
        for planned in done.drain(..) {
            let end = if planned.fails {
                EventEnd::Failed
            } else {
                EventEnd::Served
            };
            let outcome = outcome(&planned, self.now_ns, end);
            let response_ns = outcome.response_ns();
            self.tick.served += 1;
            self.response_sum_ns += u128::from(response_ns);
            self.tick.response_max_ns = self.tick.response_max_ns.max(response_ns);
            (self.tell)(&outcome);
            self.send_again(&planned, 0);
        }
        // The next batch reuses this memory.
        self.servlets[id].done = done;
    }

    /// Returns whether a servlet may begin with its event. If not, it waits until the current hot
    /// event has ended.
    fn may_begin(&mut self, id: usize) -> bool {
        let hot = self.servlets[id].event.is_some_and(|event| event.hot);
        if !hot || self.simulation.keyed {
            return true;
        }
        if self.hot {
            self.hot_next.push_back(id);
            self.suspend(id);
            return false;
        }
        self.hot = true;
        true
    }

    /// Notes that a servlet waits and needs no CPU in the meantime.
    fn suspend(&mut self, id: usize) {
        if self.simulation.blocking {
            return;
        }
        let Servlet { run, suspended, .. } = &mut self.servlets[id];
        run.compute_ns += self.now_ns - run.resumed_ns;
        run.resumed_ns = self.now_ns;
        *suspended = true;
        if !run.waits {
            self.state.waits(run);
            self.wake_servlet();
        }
    }

    /// Ends the event in service.
    fn end(&mut self, id: usize) {
        let servlet = &mut self.servlets[id];
        let event = servlet.event.take().expect("an event is in service");
        servlet.phase = Phase::Take;
        servlet.done.push(event);
        if event.fails {
            servlet.batch.fail(1);
        }
        if event.hot && !self.simulation.keyed {
            // The hot color passes to the next servlet.
            match self.hot_next.pop_front() {
                Some(next) => self.cpus.want(next),
                None => self.hot = false,
            }
        }
    }
}
