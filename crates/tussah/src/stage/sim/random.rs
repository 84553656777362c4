//! Random times.

pub use crate::stage::state::Random;

/// A distribution of times, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distribution {
    /// Always this time.
    Constant(f64),
    /// Exponential, with this mean.
    Exponential(f64),
    /// The sum of exponential times with the same mean. The first field is the mean of the sum, and
    /// the second field is the number of times.
    Erlang(f64, u32),
    /// The first time, or, with the probability in the last field, the second time.
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

    /// Draws a time, in nanoseconds.
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
