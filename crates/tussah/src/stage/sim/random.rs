//! Random times.

pub use crate::stage::state::Random;

/// A distribution of times, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distribution {
    /// A constant time.
    Constant(f64),
    /// An exponential distribution; the field is the mean.
    Exponential(f64),
    /// A sum of exponentially distributed times with equal means; the fields are the mean of the
    /// sum and the number of terms.
    Erlang(f64, u32),
    /// A lognormal distribution, which has a heavy tail; the fields are the mean and the standard
    /// deviation of the time itself, not of its logarithm.
    Lognormal(f64, f64),
    /// One of two times: the first two fields are the times, and the third field is the probability
    /// of the second time.
    Bimodal(f64, f64, f64),
}

impl Distribution {
    /// Returns the mean, in nanoseconds.
    #[must_use]
    pub fn mean_ns(self) -> f64 {
        match self {
            Distribution::Constant(ns)
            | Distribution::Exponential(ns)
            | Distribution::Erlang(ns, _)
            | Distribution::Lognormal(ns, _) => ns,
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
            Distribution::Lognormal(ns, deviation_ns) => {
                let variance = (deviation_ns / ns).powi(2).ln_1p();
                let radius = (-2.0 * random.unit().ln()).sqrt();
                let normal = radius * (std::f64::consts::TAU * random.unit()).cos();
                ns * (variance.sqrt() * normal - variance / 2.0).exp()
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
