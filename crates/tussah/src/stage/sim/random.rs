//! Random times.

pub use crate::stage::state::Random;

/// A distribution of times, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distribution {
    /// A constant time.
    Constant(f64),
    /// An exponential distribution with this mean.
    Exponential(f64),
    /// A sum of exponentially distributed times with equal means: the mean of the sum, and the
    /// number of times.
    Erlang(f64, u32),
    /// One of two times: the second time with the probability in the last field, otherwise the
    /// first.
    Bimodal(f64, f64, f64),
}

impl Distribution {
    /// Returns the mean, in nanoseconds.
    #[must_use]
    pub fn mean_ns(self) -> f64 {
        match self {
            Distribution::Constant(ns)
            | Distribution::Exponential(ns)
            | Distribution::Erlang(ns, _) => ns,
            Distribution::Bimodal(one_ns, other_ns, share) => {
                one_ns * (1.0 - share) + other_ns * share
            }
        }
    }

    /// Draws a random time, in nanoseconds.
    pub fn draw(self, random: &mut Random) -> u64 {
        let ns = match self {
            Distribution::Constant(ns) => ns,
            Distribution::Exponential(ns) => ns * random.exponential(),
            Distribution::Erlang(ns, stages) => {
                let stages = stages.max(1);
                let sum: f64 = (0..stages).map(|_| random.exponential()).sum();
                ns * sum / f64::from(stages)
            }
            Distribution::Bimodal(one_ns, other_ns, share) => {
                if random.unit() < share {
                    other_ns
                } else {
                    one_ns
                }
            }
        };
        ns as u64
    }
}
