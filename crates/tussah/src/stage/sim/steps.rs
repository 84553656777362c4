//! The steps of a simulated handler.

use super::Outcome;
use super::cpus::Who;
use super::engine::Engine;
use super::servlet::Phase;
use super::stage::{From, Job};
use super::system::{Backoff, Step};
use crate::stage::state::WaitsFor;

impl<'a, F: FnMut(&Outcome)> Engine<'a, F> {
    fn steps(&self, id: usize) -> &'a [Step] {
        let servlet = &self.servlets[id];
        let programs = &self.system.stages[servlet.stage].steps;
        programs
            .get(servlet.program)
            .map_or(&[], |(_, steps)| steps)
    }

    /// Takes the next step. Returns whether the servlet keeps its CPU.
    pub(super) fn step(&mut self, id: usize) -> bool {
        let steps = self.steps(id);
        let servlet = &mut self.servlets[id];
        let Some(step) = steps.get(servlet.step).filter(|_| !servlet.has_failed) else {
            return self.end(id);
        };
        servlet.step += 1;
        match step {
            Step::Serve => self.serve(id),
            Step::Compute(time) => {
                let work_ns = time.draw(&mut self.random);
                self.compute(id, work_ns)
            }
            Step::Wait(time) => {
                let ns = time.draw(&mut self.random);
                self.pause(id, ns)
            }
            Step::Hold(resource, time) => {
                let ns = time.draw(&mut self.random);
                self.hold(id, *resource, ns)
            }
            Step::Fail(share) => {
                servlet.has_failed = self.random.unit() < *share;
                true
            }
            Step::Send(stages) => {
                let job = Job {
                    from: From::Nobody,
                    ..servlet.job()
                };
                for &stage in stages {
                    self.offer(stage, job);
                }
                true
            }
            Step::Forward(stage) => {
                let job = servlet.job();
                servlet.job = Some(Job {
                    from: From::Nobody,
                    ..job
                });
                self.offer(*stage, job);
                true
            }
            Step::Call(stages, _) => self.call(id, stages),
        }
    }

    /// Takes the next part of a planned service. Returns whether the servlet keeps its CPU.
    fn serve(&mut self, id: usize) -> bool {
        let servlet = &mut self.servlets[id];
        let planned = servlet.job().planned;
        servlet.part += 1;
        let part = servlet.part;
        if part < 4 {
            // The step has more parts.
            servlet.step -= 1;
        }
        match part {
            1 => self.compute(id, planned.compute_ns),
            2 if planned.hold_ns > 0 => self.hold(id, 0, planned.hold_ns),
            2 => true,
            3 => self.pause(id, planned.wait_ns),
            _ => {
                (servlet.part, servlet.has_failed) = (0, planned.fails);
                true
            }
        }
    }

    /// Begins to compute. Returns false, as the servlet continues later.
    fn compute(&mut self, id: usize, mut work_ns: u64) -> bool {
        let servlet = &mut self.servlets[id];
        let job = servlet.job();
        if job.degraded {
            let degraded = self.system.stages[servlet.stage].degraded;
            work_ns = (work_ns as f64 * degraded) as u64;
        }
        if std::mem::take(&mut servlet.is_new_batch) {
            work_ns = work_ns.saturating_add(job.planned.batch_ns);
        }
        self.cpus
            .begin(Who::Servlet(id), work_ns as f64, self.now_ns);
        false
    }

    /// Takes a permit or waits for one. Returns whether the servlet keeps its CPU.
    fn hold(&mut self, id: usize, resource: usize, ns: u64) -> bool {
        self.servlets[id].phase = Phase::Held(resource, ns);
        let has_permit = self.resources[resource].hold(id, self.now_ns);
        if self.system.limits && self.resources[resource].is_scarce(self.now_ns) {
            self.servlets[id].run.permits = 1;
        }
        if !has_permit && self.system.limits {
            self.suspend_for(id, WaitsFor::Permit);
        } else if !has_permit {
            self.suspend(id);
        }
        has_permit
    }

    /// Calls stages. Returns whether the servlet keeps its CPU.
    fn call(&mut self, id: usize, stages: &[usize]) -> bool {
        let servlet = &mut self.servlets[id];
        servlet.calls += 1;
        // The servlet itself counts as open until it has made all calls.
        (servlet.open, servlet.call_failed) = (stages.len() + 1, false);
        servlet.phase = Phase::Called;
        let job = Job {
            from: From::Servlet(id, servlet.calls),
            ..servlet.job()
        };
        for &stage in stages {
            self.offer(stage, job);
        }
        let servlet = &mut self.servlets[id];
        servlet.open -= 1;
        let waits = servlet.open > 0;
        if waits {
            self.suspend(id);
        }
        !waits
    }

    /// Ends a call of a servlet.
    pub(super) fn call_ends(&mut self, id: usize, call: u64, is_served: bool) {
        let servlet = &mut self.servlets[id];
        if servlet.calls != call {
            return;
        }
        servlet.open -= 1;
        servlet.call_failed |= !is_served;
        if servlet.open == 0 {
            self.cpus.want(id);
        }
    }

    /// Goes on after calls, or repeats them. Returns whether the servlet keeps its CPU.
    pub(super) fn called(&mut self, id: usize) -> bool {
        let steps = self.steps(id);
        let servlet = &mut self.servlets[id];
        let backoff = match steps.get(servlet.step - 1) {
            Some(Step::Call(_, backoff)) => *backoff,
            _ => Backoff::never(),
        };
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
}
