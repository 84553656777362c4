//! The paths of simulated events: a servlet of a stage with whole paths waits until all events that
//! descend from its event have ended.

use super::Outcome;
use super::engine::Engine;
use super::stage::Job;

/// A path that has not ended.
pub(super) struct Path {
    /// The stage at which it begins, and the servlet there that waits for its end.
    entry: usize,
    servlet: usize,
    /// The number of its events that have not ended.
    open: u64,
    has_failed: bool,
    /// The path of the event with which it began.
    outer: Option<usize>,
}

impl<F: FnMut(&Outcome)> Engine<'_, F> {
    /// Begins the path of an event that a servlet takes.
    pub(super) fn begin_path(&mut self, servlet: usize, job: &mut Job) {
        let path = Path {
            entry: self.servlets[servlet].stage,
            servlet,
            open: 1,
            has_failed: false,
            outer: job.path,
        };
        let last = self.paths.last_key_value();
        let number = last.map_or(0, |(number, _)| number + 1);
        self.paths.insert(number, path);
        job.path = Some(number);
    }

    fn path(&mut self, number: usize) -> &mut Path {
        let path = self.paths.get_mut(&number);
        path.expect("it has an open event")
    }

    /// Makes an event that is offered to a stage part of its sender's path. An event that returns
    /// to the entry of its path leaves the path.
    pub(super) fn join_path(&mut self, job: &mut Job, stage: usize) {
        let mut at = job.path;
        while let Some(number) = at {
            let Path { entry, outer, .. } = *self.path(number);
            if entry == stage {
                job.path = outer;
                break;
            }
            at = outer;
        }
        if let Some(number) = job.path {
            self.path(number).open += 1;
        }
    }

    /// Ends an event of a path. With the last event, the path ends, and its servlet continues.
    pub(super) fn leave_path(&mut self, number: usize, has_failed: bool) {
        let path = self.path(number);
        path.open -= 1;
        path.has_failed |= has_failed;
        if path.open > 0 {
            return;
        }
        let (servlet, has_failed, outer) = (path.servlet, path.has_failed, path.outer);
        self.paths.remove(&number);
        self.servlets[servlet].has_failed |= has_failed;
        self.cpus.want(servlet);
        if let Some(outer) = outer {
            self.leave_path(outer, has_failed);
        }
    }
}
