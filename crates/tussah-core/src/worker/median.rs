//! A running median.

/// Returns a running estimate of the median: each sample moves it a step toward itself, however far
/// away it is. So one long turn among many short ones does not make the short ones seem worth
/// stealing.
pub(super) fn toward_median(median: u64, sample: u64) -> u64 {
    if median == 0 {
        return sample.max(1);
    }
    let step = median / 8 + 1;
    if sample > median {
        median + step.min(sample - median)
    } else {
        (median - step.min(median - sample)).max(1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::toward_median;

    #[test]
    fn one_long_turn_moves_the_median_by_a_step() {
        assert_eq!(toward_median(0, 40), 40);
        assert_eq!(toward_median(80, 400_000), 91);
        assert_eq!(toward_median(80, 81), 81);
        assert_eq!(toward_median(80, 10), 69);
        assert_eq!(toward_median(1, 0), 1);
        let mut median = 1_000_000;
        for sample in (0..200).map(|n| if n % 10 == 0 { 1_000_000 } else { 50 }) {
            median = toward_median(median, sample);
        }
        assert!(median < 100, "{median}");
    }
}
