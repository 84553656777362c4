//! Turns: which class of a queue is served next.

use super::PASSED_OVER_MAX;
use crate::stage::event::Classes;

/// The turns of the classes of a queue: by priority or by share.
///
/// With shares, this is start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996). Each event
/// costs one unit divided by the share of its class. Of the classes that wait, the one that has
/// been charged least is next.
pub(super) struct Turns {
    classes: Classes,
    lines: Vec<Line>,
    /// The charge at which the latest event started.
    started: f64,
}

#[derive(Clone, Default)]
struct Line {
    /// Events that were taken from higher classes while an event waited here.
    passed_over: u32,
    /// The charge for all events of the class until now.
    charged: f64,
}

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

    /// Counts events of a class that were taken. `waits` tells which classes have events left.
    pub(super) fn took(&mut self, class: usize, events: usize, waits: impl Fn(usize) -> bool) {
        let share = self.classes.share(class);
        if share > 0 {
            let line = &mut self.lines[class];
            // A class that needed less than its share saves nothing for later.
            self.started = self.started.max(line.charged);
            line.charged = self.started + events as f64 / f64::from(share);
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
    fn a_class_lends_what_it_does_not_need_and_saves_nothing() {
        let mut turns = Turns::new(Classes::by_share(&[4, 2, 1]));
        assert_eq!(serve(&mut turns, 300, [false, true, true]), [0, 200, 100]);
        let [first, ..] = serve(&mut turns, 700, [true; 3]);
        assert!((400..=401).contains(&first), "{first}");
    }
}
