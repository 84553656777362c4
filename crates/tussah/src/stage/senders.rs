//! Senders that wait for room in a stage's queue, counted.

/// How many senders wait, and for which stages they send.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    count: usize,
    /// By the number of the stage; 0 is for others. None of them has no senders.
    stages: Vec<(u32, usize)>,
}

impl Senders {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn add(&mut self, from: u32) {
        self.count += 1;
        match self.stages.iter_mut().find(|(stage, _)| *stage == from) {
            Some((_, count)) => *count += 1,
            None => self.stages.push((from, 1)),
        }
    }

    /// Counts one less that has been added.
    pub(crate) fn remove(&mut self, from: u32) {
        self.count -= 1;
        let place = self.stages.iter().position(|(stage, _)| *stage == from);
        let place = place.expect("it was added");
        self.stages[place].1 -= 1;
        if self.stages[place].1 == 0 {
            self.stages.swap_remove(place);
        }
    }

    /// The numbers of the stages that wait; 0 for others.
    pub(crate) fn stages(&self) -> impl Iterator<Item = u32> {
        self.stages.iter().map(|(stage, _)| *stage)
    }
}

#[cfg(test)]
mod tests {
    use super::Senders;

    #[test]
    fn senders_are_counted_by_stage() {
        let mut senders = Senders::default();
        for from in [7, 0, 7] {
            senders.add(from);
        }
        senders.remove(7);
        assert_eq!(senders.stages().collect::<Vec<_>>(), [7, 0]);
        senders.remove(7);
        assert_eq!(senders.stages().collect::<Vec<_>>(), [0]);
        assert!(!senders.is_empty());
        senders.remove(0);
        assert!(senders.is_empty());
    }
}
