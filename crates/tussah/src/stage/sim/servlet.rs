//! The steps of a simulated servlet.

use super::engine::{Action, Engine};
use super::stage::Job;
use super::{EventEnd, Outcome};
use crate::stage::event::Batch;
use crate::stage::state::{Run, WaitsFor};

/// A servlet of a stage, between two events of its run or within one.
pub(super) struct Servlet {
    /// The index of its stage.
    pub(super) stage: usize,
    pub(super) run: Run<Job>,
    batch: Batch<Job>,
    pub(super) phase: Phase,
    /// The event in service.
    pub(super) job: Option<Job>,
    /// The path that began with it, until its handler ends.
    pub(super) path: Option<usize>,
    /// The events of the batch that have been handled.
    done: Vec<Done>,
    /// True until the batch has computed.
    pub(super) is_new_batch: bool,
    /// The entry of the stage's steps with which the event began.
    pub(super) program: usize,
    /// The next step, and the next part of it if it is [`Step::Serve`].
    pub(super) step: usize,
    pub(super) part: u8,
    pub(super) has_failed: bool,
    suspended: bool,
    ended_ns: u64,
    /// The number of calls so far, those that have not ended, and the retries of the current step.
    pub(super) calls: u64,
    pub(super) open: usize,
    pub(super) retries: u32,
    pub(super) call_failed: bool,
}

/// An event that has been handled.
#[derive(Clone, Copy)]
struct Done {
    job: Job,
    has_failed: bool,
    is_wasted: bool,
}

/// The next action of a servlet when it has a CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// End the run and take the next run.
    Turn,
    /// Fill the batch, or end the run.
    Fill,
    /// Take an event, or end the batch.
    Take,
    /// Take the next step, or end the event.
    Step,
    /// Hold the permit of this resource for some time.
    Held(usize, u64),
    /// Return the permit.
    Release(usize),
    /// Look at the results of the calls.
    Called,
}

/// The step of a servlet that leaves its event alone.
const SKIPPED: usize = usize::MAX;

impl Servlet {
    pub(super) fn new(stage: usize) -> Self {
        Self {
            stage,
            run: Run::default(),
            batch: Batch::default(),
            phase: Phase::Turn,
            job: None,
            path: None,
            done: Vec::new(),
            is_new_batch: false,
            program: 0,
            step: 0,
            part: 0,
            has_failed: false,
            suspended: false,
            ended_ns: 0,
            calls: 0,
            open: 0,
            retries: 0,
            call_failed: false,
        }
    }

    pub(super) fn job(&self) -> Job {
        self.job.expect("an event is in service")
    }
}

impl<F: FnMut(&Outcome)> Engine<'_, F> {
    /// Runs a servlet that has a CPU until it computes or no longer needs the CPU.
    pub(super) fn go_on(&mut self, id: usize) {
        let servlet = &mut self.servlets[id];
        if std::mem::take(&mut servlet.suspended) {
            let run = &mut servlet.run;
            let suspended_ns = std::mem::replace(&mut run.resumed_ns, self.now_ns);
            if std::mem::take(&mut run.waits_for) == WaitsFor::Permit {
                run.limited_ns += self.now_ns - suspended_ns;
                if self.system.blocking {
                    self.stages[servlet.stage].state.scarcity.waits.unblock();
                }
            }
        }
        loop {
            let goes_on = match self.servlets[id].phase {
                Phase::Turn => self.turn(id),
                Phase::Fill => self.fill(id),
                Phase::Take => self.take(id),
                Phase::Step => self.step(id),
                Phase::Held(resource, ns) => {
                    self.servlets[id].phase = Phase::Release(resource);
                    self.pause(id, ns)
                }
                Phase::Release(resource) => {
                    self.resources[resource].release(&mut self.cpus);
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
            servlet.phase = Phase::Fill;
        } else if too_many || self.system.blocking {
            // An OS thread returns to its pool.
            stage.state.ended();
            stage.free.push(id);
        } else if stage.state.park() {
            stage.parked.push(id);
        } else {
            stage.free.push(id);
        }
        let mut dropped = std::mem::take(&mut run.dropped);
        self.wake_servlet(number);
        for (event, _) in dropped.drain(..) {
            self.reject(number, event.into_inner(), EventEnd::Shed);
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
            servlet.is_new_batch = true;
            servlet.phase = Phase::Take;
            return true;
        }
        servlet.phase = Phase::Turn;
        servlet.ended_ns = self.now_ns;
        let yields = !servlet.run.waits && !self.system.blocking;
        if yields {
            self.cpus.want(id);
        }
        !yields
    }

    /// Takes the next event of the batch, or ends the batch. Returns whether the servlet keeps its
    /// CPU.
    fn take(&mut self, id: usize) -> bool {
        let servlet = &mut self.servlets[id];
        let Some(mut job) = servlet.batch.next() else {
            self.end_batch(id);
            return true;
        };
        let number = servlet.stage;
        let stage = &self.system.stages[number];
        let programs = &stage.steps;
        let next = programs.partition_point(|(since_ns, _)| *since_ns <= self.now_ns);
        servlet.job = Some(job);
        (servlet.program, servlet.step, servlet.part) = (next.saturating_sub(1), 0, 0);
        (servlet.retries, servlet.has_failed) = (0, false);
        servlet.phase = Phase::Step;
        if stage.whole_path {
            self.begin_path(id, &mut job);
            (self.servlets[id].job, self.servlets[id].path) = (Some(job), job.path);
        }
        if stage.skips_abandoned && !self.waits(job.attempt) {
            let servlet = &mut self.servlets[id];
            servlet.batch.leave_out(1);
            servlet.step = SKIPPED;
            return true;
        }
        // The event waits until the current hot event has ended.
        let now_ns = self.now_ns;
        let waits = job.planned.hot && !stage.keyed && !self.stages[number].color.hold(id, now_ns);
        if waits {
            self.suspend(id);
        }
        !waits
    }

    /// Suspends a servlet for this time. Returns whether it keeps its CPU, because the time is
    /// zero.
    pub(super) fn pause(&mut self, id: usize, ns: u64) -> bool {
        if ns > 0 {
            self.plan_after(ns, Action::Want(id));
            self.suspend(id);
        }
        ns == 0
    }

    /// Notes that a servlet waits and needs no CPU in the meantime.
    pub(super) fn suspend(&mut self, id: usize) {
        self.suspend_for(id, WaitsFor::Other);
    }

    /// Notes that a servlet waits for this and needs no CPU in the meantime.
    pub(super) fn suspend_for(&mut self, id: usize, waits_for: WaitsFor) {
        let blocking = self.system.blocking;
        if blocking && waits_for != WaitsFor::Permit {
            return;
        }
        let servlet = &mut self.servlets[id];
        let run = &mut servlet.run;
        run.compute_ns += self.now_ns - run.resumed_ns;
        run.resumed_ns = self.now_ns;
        servlet.suspended = true;
        run.waits_for = waits_for;
        if blocking {
            self.stages[servlet.stage].state.scarcity.waits.block();
        } else if !run.waits {
            let number = servlet.stage;
            self.stages[number].state.waits(run);
            self.wake_servlet(number);
        } else if run.waits_for != run.counted {
            self.stages[servlet.stage].state.waits_after_all(run);
        }
    }

    /// Ends the event in service, after its path. Returns whether the servlet keeps its CPU.
    pub(super) fn end(&mut self, id: usize) -> bool {
        let servlet = &mut self.servlets[id];
        if let Some(path) = servlet.path.take() {
            let has_failed = servlet.has_failed;
            self.suspend(id);
            self.leave_path(path, has_failed);
            return false;
        }
        let mut job = servlet.job.take().expect("an event is in service");
        servlet.phase = Phase::Take;
        let (number, has_failed) = (servlet.stage, servlet.has_failed);
        if self.system.stages[number].whole_path {
            job.path = None;
        }
        let is_skipped = servlet.step == SKIPPED;
        if has_failed {
            servlet.batch.fail(1);
        }
        let is_wasted = !is_skipped && !self.waits(job.attempt);
        self.servlets[id].done.push(Done {
            job,
            has_failed,
            is_wasted,
        });
        if job.planned.hot && !self.system.stages[number].keyed && !is_skipped {
            self.stages[number].color.release(&mut self.cpus);
        }
        true
    }

    /// Ends the batch, and answers its events.
    fn end_batch(&mut self, id: usize) {
        let servlet = &mut self.servlets[id];
        servlet.batch.end();
        servlet.run.ended();
        servlet.phase = Phase::Fill;
        let number = servlet.stage;
        let mut done = std::mem::take(&mut servlet.done);
        for Done {
            job,
            has_failed,
            is_wasted,
        } in done.drain(..)
        {
            let response_ns = self.now_ns - job.arrived_ns;
            self.stages[number].handled(has_failed, is_wasted, response_ns);
            let end = if has_failed {
                EventEnd::Failed
            } else {
                EventEnd::Served
            };
            self.answer(job, end);
        }
        // The next batch reuses this memory.
        self.servlets[id].done = done;
    }
}
