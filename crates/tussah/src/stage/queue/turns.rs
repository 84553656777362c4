//! Turns: which class of a queue is served next.

use super::PASSED_OVER_MAX;
use crate::stage::event::Classes;

/// The turns of the classes of a queue: by priority or by share.
///
/// With shares, this is start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996). Each event
/// costs one unit divided by the share of its class. Of the classes that wait, the one that has
/// been charged least is next. A class that begins to wait is charged at least as much as the class
/// that was served last, so it saves nothing for later.
pub(super) struct Turns {
    classes: Classes,
    lines: Vec<Line>,
    /// The charge of a class when its latest event was taken; the largest of all classes.
    started: f64,
}

#[derive(Clone, Default)]
struct Line {
    /// Events that were taken from higher classes while an event waited here.
    passed_over: u32,
    /// The charge for all events of the class until now.
    charged: f64,
}

/// The value from which the charges begin at 0 again, so that they stay exact.
const CHARGED_MAX: f64 = 1024.0;

impl Turns {
    pub(super) fn new(classes: Classes) -> Self {
        Self {
            classes,
            lines: vec![Line::default(); classes.count()],
            started: 0.0,
        }
    }

    /// Returns the class to serve next, among those that wait.
    pub(super) fn next(&self, waits: impl Fn(usize) -> bool) -> Option<usize> {
        let mut waiting = (0..self.lines.len()).filter(|class| waits(*class));
        if self.classes.share(0) > 0 {
            let charged = |class: &usize| self.lines[*class].charged;
            return waiting.min_by(|a, b| charged(a).total_cmp(&charged(b)));
        }
        let is_starved = |class: &usize| self.lines[*class].passed_over >= PASSED_OVER_MAX;
        let starved = waiting.clone().find(is_starved);
        starved.or_else(|| waiting.next())
    }

    /// Notes that a class begins to wait.
    #[inline]
    pub(super) fn came(&mut self, class: usize) {
        let line = &mut self.lines[class];
        line.charged = line.charged.max(self.started);
    }

    /// Takes back the charge for an event that was taken and not served.
    pub(super) fn refund(&mut self, class: usize) {
        let share = self.classes.share(class);
        if share > 0 {
            self.lines[class].charged -= 1.0 / f64::from(share);
        }
    }

    /// Counts events of a class that were taken. `waits` tells which classes have events left.
    pub(super) fn took(&mut self, class: usize, events: usize, waits: impl Fn(usize) -> bool) {
        let share = self.classes.share(class);
        if share > 0 {
            let line = &mut self.lines[class];
            self.started = self.started.max(line.charged);
            line.charged += events as f64 / f64::from(share);
            if self.started >= CHARGED_MAX {
                let started = std::mem::take(&mut self.started);
                self.lines
                    .iter_mut()
                    .for_each(|line| line.charged -= started);
            }
            return;
        }
        self.lines[class].passed_over = 0;
        for (below, line) in self.lines.iter_mut().enumerate().skip(class + 1) {
            line.passed_over = match waits(below) {
                true => line.passed_over.saturating_add(events as u32),
                false => 0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves this many events of classes that always wait, or never. Returns the numbers served.
    fn serve(turns: &mut Turns, events: usize, waits: [bool; 3]) -> [usize; 3] {
        let mut served = [0; 3];
        for _ in 0..events {
            let class = turns.next(|class| waits[class]).expect("one waits");
            turns.took(class, 1, |class| waits[class]);
            served[class] += 1;
        }
        served
    }

    #[test]
    fn a_class_with_priority_starves_no_other() {
        let mut turns = Turns::new(Classes::by_priority(3));
        assert_eq!(serve(&mut turns, 66, [true; 3]), [64, 1, 1]);
        assert_eq!(serve(&mut turns, 66, [false, true, true]), [0, 65, 1]);
    }

    #[test]
    fn classes_are_served_in_proportion_to_their_shares() {
        let mut turns = Turns::new(Classes::by_share(&[4, 2, 1]));
        assert_eq!(serve(&mut turns, 700, [true; 3]), [400, 200, 100]);
    }

    #[test]
    fn a_class_that_is_served_in_runs_gets_its_share() {
        let mut turns = Turns::new(Classes::by_share(&[3, 1]));
        let mut served = [0; 2];
        while served[0] + served[1] < 40_000 {
            let class = turns.next(|_| true).expect("both wait");
            let events = [100, 1][class];
            (0..events).for_each(|_| turns.took(class, 1, |_| true));
            served[class] += events;
        }
        assert!((29_900..=30_100).contains(&served[0]), "{served:?}");
    }

    #[test]
    fn an_event_that_was_not_served_costs_nothing() {
        let mut turns = Turns::new(Classes::by_share(&[1, 1]));
        let mut served = [0; 2];
        for _ in 0..1000 {
            let class = turns.next(|_| true).expect("both wait");
            (0..8).for_each(|_| turns.took(class, 1, |_| true));
            (0..7).for_each(|_| turns.refund(class));
            served[class] += 1;
        }
        assert_eq!(served, [500, 500]);
    }

    #[test]
    fn large_shares_stay_exact() {
        let mut turns = Turns::new(Classes::by_share(&[u32::MAX, u32::MAX, 1]));
        (0..100_000).for_each(|_| turns.took(2, 1, |class| class == 2));
        turns.came(0);
        turns.came(1);
        assert_eq!(serve(&mut turns, 1000, [true, true, false]), [500, 500, 0]);
    }

    #[test]
    fn a_class_lends_what_it_does_not_need_and_saves_nothing() {
        let mut turns = Turns::new(Classes::by_share(&[4, 2, 1]));
        assert_eq!(serve(&mut turns, 300, [false, true, true]), [0, 200, 100]);
        turns.came(0);
        let [first, ..] = serve(&mut turns, 700, [true; 3]);
        assert!((400..=401).contains(&first), "{first}");
    }
}
