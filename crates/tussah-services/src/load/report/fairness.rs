//! A measure of how evenly clients are served.

/// The average number of completions of a client in a window, so that chance does not look like
/// unfairness.
const COMPLETIONS: f64 = 20.0;

/// Bound, in windows: the maximum number of parts of a run with separate counts for each
/// client. Later completions count only for the whole run.
const SLOTS_MAX: u64 = 3600;

/// The equal parts of a run in which completions are counted. A window consists of consecutive
/// slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::load) struct Slots {
    slot_ns: u64,
    /// The number of slots in a window, if its length is given.
    window: Option<usize>,
}

impl Slots {
    /// Returns slots of at most a second for windows of a given length, or slots of a second while
    /// the length is unknown.
    pub(in crate::load) fn new(window_ns: Option<u64>, run_ns: Option<u64>) -> Self {
        // A long run gets longer slots.
        let slot_ns_min = run_ns.unwrap_or(0).div_ceil(SLOTS_MAX);
        let second = slot_ns_min.max(1_000_000_000);
        match window_ns {
            None => Self {
                slot_ns: second,
                window: None,
            },
            Some(window_ns) => {
                let count = window_ns.div_ceil(second);
                Self {
                    slot_ns: (window_ns / count).max(slot_ns_min).max(1),
                    window: Some(count as usize),
                }
            }
        }
    }

    /// Counts a completion at a time since the start.
    pub(in crate::load) fn count(self, served: &mut Vec<u32>, since_ns: u64) {
        let slot = since_ns / self.slot_ns;
        if slot >= SLOTS_MAX {
            return;
        }
        let slot = slot as usize;
        if slot >= served.len() {
            served.resize(slot + 1, 0);
        }
        served[slot] += 1;
    }

    /// Judges a run by the completions of each client, in total and in each slot.
    pub(in crate::load) fn judge(self, clients: &[(u64, &[u32])], run_ns: u64) -> Fairness {
        let totals: Vec<f64> = clients.iter().map(|(total, _)| *total as f64).collect();
        let index = jain(&totals).unwrap_or(0.0);
        let slots = (run_ns / self.slot_ns).min(SLOTS_MAX) as usize;
        let mean = totals.iter().sum::<f64>() / totals.len().max(1) as f64;
        let window = self.window.unwrap_or_else(|| {
            // The run may end within a slot.
            let each = mean * self.slot_ns as f64 / run_ns.max(1) as f64;
            (COMPLETIONS / each.max(f64::MIN_POSITIVE)).ceil().max(1.0) as usize
        });
        if window > slots {
            return Fairness {
                index,
                window_s: run_ns as f64 / 1e9,
                windows: vec![index],
                completions: mean,
            };
        }
        let mut sums = vec![0.0; clients.len()];
        let windows = (0..slots).filter_map(|slot| {
            for (sum, (_, served)) in sums.iter_mut().zip(clients) {
                let at = |slot: usize| f64::from(served.get(slot).copied().unwrap_or(0));
                *sum += at(slot);
                if let Some(left) = slot.checked_sub(window) {
                    *sum -= at(left);
                }
            }
            (slot + 1 >= window).then(|| jain(&sums)).flatten()
        });
        Fairness {
            index,
            windows: windows.collect(),
            window_s: (window as u64 * self.slot_ns) as f64 / 1e9,
            completions: mean * (window as u64 * self.slot_ns) as f64 / run_ns as f64,
        }
    }
}

/// The fairness between clients, by Jain's index.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::load) struct Fairness {
    /// The index over the whole run; 0 without a served request.
    pub(in crate::load) index: f64,
    /// The length of a window.
    pub(in crate::load) window_s: f64,
    /// The average number of completions of a client in a window.
    pub(in crate::load) completions: f64,
    /// The index in each window that has a served request. A new window begins at each slot. If the
    /// run is shorter than a window, the only element is the index of the run.
    pub(in crate::load) windows: Vec<f64>,
}

/// Jain's index, "A Quantitative Measure of Fairness and Discrimination" (1984), section 3: 1 if
/// all shares are equal, 1/n if one of n has everything; `None` if all shares are 0.
pub(in crate::load) fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn jain_is_one_for_equals_and_one_of_n_for_a_monopoly() {
        assert_eq!(jain(&[7.0, 7.0, 7.0, 7.0]), Some(1.0));
        assert_eq!(jain(&[8.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[]), None);
    }

    #[test]
    fn slots() {
        let check = |window_ms: Option<u64>, run_s: u64, slot_ms: u64, count: Option<usize>| {
            let slots = Slots::new(window_ms.map(|ms| ms * 1_000_000), Some(run_s * SECOND));
            let expected = Slots {
                slot_ns: slot_ms * 1_000_000,
                window: count,
            };
            assert_eq!(slots, expected, "{window_ms:?} of {run_s}");
        };
        check(None, 10, 1_000, None);
        check(None, 7_200, 2_000, None);
        check(Some(100), 10, 100, Some(1));
        check(Some(2_400), 10, 800, Some(3));
        check(Some(5_000), 10, 1_000, Some(5));
    }

    #[test]
    fn windows_slide() {
        // One client gets everything in the first second, the other client in the second.
        let slots = Slots::new(Some(SECOND), None);
        let clients: [(u64, &[u32]); 2] = [(20, &[20, 0]), (20, &[0, 20])];
        let fairness = slots.judge(&clients, 2 * SECOND);
        assert_eq!(fairness.index, 1.0);
        assert_eq!(fairness.windows, [0.5, 0.5]);
        let fairness = Slots::new(Some(2 * SECOND), None).judge(&clients, 2 * SECOND);
        assert_eq!(fairness.windows, [1.0]);
        let clients: [(u64, &[u32]); 2] = [(30, &[20, 0, 10]), (30, &[0, 20, 10])];
        let fairness = Slots::new(Some(2 * SECOND), None).judge(&clients, 3 * SECOND);
        assert_eq!(fairness.windows, [1.0, 0.8]);
    }

    #[test]
    fn the_window_gives_twenty_completions() {
        let slots = Slots::new(None, None);
        let served = [8; 10];
        let clients: [(u64, &[u32]); 2] = [(80, &served), (80, &served)];
        let fairness = slots.judge(&clients, 10 * SECOND);
        assert_eq!((fairness.window_s, fairness.completions), (3.0, 24.0));
        assert_eq!(fairness.windows.len(), 8);
        // A run that is shorter than a window is one window.
        let fairness = slots.judge(&clients, SECOND / 2);
        assert_eq!((fairness.window_s, fairness.windows.len()), (0.5, 1));
    }

    #[test]
    fn counts_in_slots() {
        let slots = Slots::new(None, None);
        let mut served = Vec::new();
        for since_ns in [0, SECOND - 1, 2 * SECOND, SLOTS_MAX * SECOND, u64::MAX] {
            slots.count(&mut served, since_ns);
        }
        assert_eq!(served, [2, 0, 1]);
    }
}
