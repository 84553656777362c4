//! The steps of a servlet in a simulated system.

use super::engine::{Engine, From, Job};
use super::{Backoff, RequestEnd, RequestOutcome, Step};
use crate::stage::event::Batch;
use crate::stage::sim::cpus::Who;
use crate::stage::state::Run;

/// A servlet of a stage.
pub(super) struct Servlet {
    /// The index of its stage.
    stage: usize,
    run: Run<Job>,
    batch: Batch<Job>,
    phase: Phase,
    job: Option<Job>,
    /// The entry of the stage's steps with which the event began.
    program: usize,
    /// The next step.
    step: usize,
    has_failed: bool,
    suspended: bool,
    ended_ns: u64,
    /// The number of calls so far, those that have not ended, and the retries of the current step.
    calls: u64,
    open: usize,
    retries: u32,
    call_failed: bool,
}

/// The next action of a servlet when it has a CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// RequestEnd the run and take the next run.
    Turn,
    /// Take the event, or end the run.
    Take,
    /// Take the next step, or end the event.
    Step,
    /// Hold the permit that it has got.
    Held(usize),
    /// Return the permit.
    Release(usize),
    /// Look at the results of the calls.
    Called,
}

/// The steps of an event.
const NO_STEPS: &[Step] = &[];

impl Servlet {
    pub(super) fn of(stage: usize) -> Self {
        Self {
            stage,
            run: Run::default(),
            batch: Batch::default(),
            phase: Phase::Turn,
            job: None,
            program: 0,
            step: 0,
            has_failed: false,
            suspended: false,
            ended_ns: 0,
            calls: 0,
            open: 0,
            retries: 0,
            call_failed: false,
        }
    }
}

impl<'a, F: FnMut(&RequestOutcome)> Engine<'a, F> {
    /// Runs a servlet that has a CPU until it computes or no longer needs the CPU.
    pub(super) fn go_on(&mut self, id: usize) {
        let servlet = &mut self.servlets[id];
        if std::mem::take(&mut servlet.suspended) {
            servlet.run.resumed_ns = self.now_ns;
        }
        loop {
            let goes_on = match self.servlets[id].phase {
                Phase::Turn => self.turn(id),
                Phase::Take => self.take(id),
                Phase::Step => self.step(id),
                Phase::Held(resource) => {
                    let hold = match self.last_step(id) {
                        Some(Step::Hold(_, hold)) => *hold,
                        _ => unreachable!("it holds a permit"),
                    };
                    self.servlets[id].phase = Phase::Release(resource);
                    let ns = hold.draw(&mut self.random);
                    self.pause(id, ns)
                }
                Phase::Release(resource) => {
                    self.release(resource);
                    self.servlets[id].phase = Phase::Step;
                    true
                }
                Phase::Called => self.called(id),
            };
            if !goes_on {
                return;
            }
        }
    }

    fn steps(&self, id: usize) -> &'a [Step] {
        let servlet = &self.servlets[id];
        let programs = &self.system.stages[servlet.stage].steps;
        programs
            .get(servlet.program)
            .map_or(NO_STEPS, |(_, steps)| steps)
    }

    /// Returns the step that a servlet has begun.
    fn last_step(&self, id: usize) -> Option<&'a Step> {
        self.steps(id).get(self.servlets[id].step.checked_sub(1)?)
    }

    /// Ends a servlet's run and takes the next one, or parks the servlet. Returns whether it has a
    /// run.
    fn turn(&mut self, id: usize) -> bool {
        let servlet = &mut self.servlets[id];
        let number = servlet.stage;
        let stage = &mut self.stages[number];
        let (run, batch) = (&mut servlet.run, &mut servlet.batch);
        if run.is_open() {
            stage.state.finish(run, batch, servlet.ended_ns);
            stage.state.decide(self.now_ns);
        }
        let too_many = stage.state.has_too_many();
        let works = !too_many && stage.state.take(run, self.now_ns);
        if works {
            servlet.phase = Phase::Take;
        } else if too_many {
            stage.state.ended();
            stage.free.push(id);
        } else if stage.state.park() {
            stage.parked.push(id);
        } else {
            stage.free.push(id);
        }
        let dropped = std::mem::take(&mut run.dropped);
        self.wake_servlet(number);
        for (event, _) in dropped {
            self.shed(number, event.into_inner());
        }
        works
    }

    /// Takes the next event of the run, or ends the run. Returns whether the servlet keeps its CPU.
    fn take(&mut self, id: usize) -> bool {
        let servlet = &mut self.servlets[id];
        if servlet.run.ahead.is_empty() {
            servlet.phase = Phase::Turn;
            servlet.ended_ns = self.now_ns;
            if !servlet.run.waits {
                self.cpus.want(id);
            }
            return servlet.run.waits;
        }
        servlet.run.fill(&mut servlet.batch);
        let job = servlet.batch.next().expect("a batch has one event");
        let stage = &self.system.stages[servlet.stage];
        let next = stage
            .steps
            .partition_point(|(since_ns, _)| *since_ns <= self.now_ns);
        (servlet.job, servlet.program) = (Some(job), next.saturating_sub(1));
        (servlet.step, servlet.retries, servlet.has_failed) = (0, 0, false);
        servlet.phase = Phase::Step;
        let skips = stage.skips_abandoned && self.is_abandoned(&job);
        if skips {
            let servlet = &mut self.servlets[id];
            servlet.batch.leave_out(1);
            servlet.step = usize::MAX;
        }
        true
    }

    /// Returns whether the client for which an event is handled has stopped waiting.
    fn is_abandoned(&self, job: &Job) -> bool {
        job.attempt
            .is_some_and(|(client, attempt)| !self.waits(client, attempt))
    }

    /// Takes the next step. Returns whether the servlet keeps its CPU.
    fn step(&mut self, id: usize) -> bool {
        let steps = self.steps(id);
        let servlet = &mut self.servlets[id];
        let Some(step) = steps.get(servlet.step).filter(|_| !servlet.has_failed) else {
            self.end(id);
            return true;
        };
        servlet.step += 1;
        match step {
            Step::Compute(time) => {
                let work_ns = time.draw(&mut self.random);
                self.cpus
                    .begin(Who::Servlet(id), work_ns as f64, self.now_ns);
                false
            }
            Step::Wait(time) => {
                let ns = time.draw(&mut self.random);
                self.pause(id, ns)
            }
            Step::Hold(resource, _) => {
                servlet.phase = Phase::Held(*resource);
                let has_permit = self.hold(*resource, id);
                if !has_permit {
                    self.suspend(id);
                }
                has_permit
            }
            Step::Fail(share) => {
                servlet.has_failed = self.random.unit() < *share;
                true
            }
            Step::Send(stages) => {
                let attempt = servlet.job.and_then(|job| job.attempt);
                for &stage in stages {
                    let from = From::Nobody;
                    self.offer(stage, Job { from, attempt });
                }
                true
            }
            Step::Forward(stage) => {
                let job = servlet.job.expect("an event is in service");
                servlet.job = Some(Job {
                    from: From::Nobody,
                    ..job
                });
                if !self.offer(*stage, job) {
                    self.answer(job, RequestEnd::Rejected);
                }
                true
            }
            Step::Call(stages, _) => self.call(id, stages),
        }
    }

    /// Calls stages. Returns whether the servlet keeps its CPU.
    fn call(&mut self, id: usize, stages: &[usize]) -> bool {
        let servlet = &mut self.servlets[id];
        servlet.calls += 1;
        (servlet.open, servlet.call_failed) = (stages.len(), false);
        servlet.phase = Phase::Called;
        let job = Job {
            from: From::Servlet(id, servlet.calls),
            attempt: servlet.job.and_then(|job| job.attempt),
        };
        for &stage in stages {
            if !self.offer(stage, job) {
                let servlet = &mut self.servlets[id];
                servlet.open -= 1;
                servlet.call_failed = true;
            }
        }
        let waits = self.servlets[id].open > 0;
        if waits {
            self.suspend(id);
        }
        !waits
    }

    /// Ends a call of a servlet.
    pub(super) fn call_ends(&mut self, id: usize, call: u64, is_answered: bool) {
        let servlet = &mut self.servlets[id];
        if servlet.calls != call {
            return;
        }
        servlet.open -= 1;
        servlet.call_failed |= !is_answered;
        if servlet.open == 0 && servlet.suspended {
            self.cpus.want(id);
        }
    }

    /// Goes on after calls, or repeats them. Returns whether the servlet keeps its CPU.
    fn called(&mut self, id: usize) -> bool {
        let backoff = match self.last_step(id) {
            Some(Step::Call(_, backoff)) => *backoff,
            _ => Backoff::never(),
        };
        let servlet = &mut self.servlets[id];
        servlet.phase = Phase::Step;
        if !servlet.call_failed {
            servlet.retries = 0;
            return true;
        }
        if servlet.retries == backoff.retries {
            servlet.has_failed = true;
            return true;
        }
        let ns = backoff.before_ns(servlet.retries, self.random.unit());
        servlet.retries += 1;
        servlet.step -= 1;
        self.pause(id, ns)
    }

    /// Suspends a servlet for this time. Returns whether it keeps its CPU, because the time is
    /// zero.
    fn pause(&mut self, id: usize, ns: u64) -> bool {
        if ns > 0 {
            self.want_after(ns, id);
            self.suspend(id);
        }
        ns == 0
    }

    /// Notes that a servlet waits and needs no CPU in the meantime.
    fn suspend(&mut self, id: usize) {
        let Servlet {
            run,
            suspended,
            stage,
            ..
        } = &mut self.servlets[id];
        let number = *stage;
        run.compute_ns += self.now_ns - run.resumed_ns;
        run.resumed_ns = self.now_ns;
        *suspended = true;
        if !run.waits {
            self.stages[number].state.waits(run);
            self.wake_servlet(number);
        }
    }

    /// Ends the event in service.
    fn end(&mut self, id: usize) {
        let servlet = &mut self.servlets[id];
        let job = servlet.job.take().expect("an event is in service");
        servlet.phase = Phase::Take;
        let (number, has_failed) = (servlet.stage, servlet.has_failed);
        if has_failed {
            servlet.batch.fail(1);
        }
        servlet.batch.end();
        servlet.run.ended();
        let is_skipped = servlet.step == usize::MAX;
        let is_abandoned = !is_skipped && self.is_abandoned(&job);
        let totals = &mut self.stages[number].totals;
        totals.handled += 1;
        totals.failed += u64::from(has_failed);
        totals.wasted += u64::from(is_abandoned);
        self.answer(
            job,
            if has_failed {
                RequestEnd::Failed
            } else {
                RequestEnd::Answered
            },
        );
    }
}
