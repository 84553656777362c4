//! Measures fairness between clients: Jain's index in windows.

use std::time::{Duration, Instant};

/// The average number of completions of a client that ends a window.
const COMPLETIONS: u64 = 20;

/// The minimum length of a window.
const WINDOW_MIN: Duration = Duration::from_secs(1);

/// A counter of completions by client and window.
#[derive(Debug)]
pub struct Windows {
    counts: Vec<u64>,
    total: u64,
    start: Instant,
    worst: Option<f64>,
    /// The number of complete windows.
    pub ended: usize,
}

impl Windows {
    /// Starts the first window for `clients` clients.
    pub fn new(clients: usize, now: Instant) -> Windows {
        Windows {
            counts: vec![0; clients],
            total: 0,
            start: now,
            worst: None,
            ended: 0,
        }
    }

    /// Returns the index in the worst window, or in the first one if it is incomplete.
    pub fn worst(&self) -> f64 {
        self.worst.unwrap_or_else(|| jain(&self.counts))
    }

    /// Counts a response to a client.
    pub fn completed(&mut self, client: usize, now: Instant) {
        self.counts[client] += 1;
        self.total += 1;
        let enough = COMPLETIONS * self.counts.len() as u64;
        if self.total < enough || now.duration_since(self.start) < WINDOW_MIN {
            return;
        }
        let index = jain(&self.counts);
        self.worst = Some(self.worst.map_or(index, |worst| worst.min(index)));
        self.ended += 1;
        self.counts.fill(0);
        (self.total, self.start) = (0, now);
    }
}

/// Returns Jain's index: 1 if all clients get the same, 1 / n if one client gets everything.
pub fn jain(counts: &[u64]) -> f64 {
    let sum: f64 = counts.iter().map(|count| *count as f64).sum();
    let squares: f64 = counts.iter().map(|count| (*count as f64).powi(2)).sum();
    sum * sum / (counts.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index() {
        let check = |counts: &[u64], expected: f64| assert!((jain(counts) - expected).abs() < 1e-9);
        check(&[3, 3, 3, 3], 1.0);
        check(&[5, 0, 0, 0, 0], 0.2);
        check(&[1, 2, 3], 36.0 / 42.0);
    }

    #[test]
    fn a_window_ends_when_both_time_and_count_are_reached() {
        let start = Instant::now();
        let mut windows = Windows::new(2, start);
        let late = start + Duration::from_secs(2);
        (0..40).for_each(|_| windows.completed(0, start));
        assert_eq!((windows.ended, windows.worst), (0, None));
        windows.completed(0, late);
        assert_eq!((windows.ended, windows.worst), (1, Some(0.5)));
        (0..39).for_each(|at| windows.completed(at % 2, late));
        assert_eq!(windows.ended, 1);
    }
}
