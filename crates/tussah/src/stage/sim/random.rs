//! Random times.

pub use crate::stage::random::Random;

/// How long something takes, by chance. Times are in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Time {
    /// Always so long.
    Constant(f64),
    /// Exponential, with this mean.
    Exponential(f64),
    /// The sum of so many exponential times of the same mean: the first is the mean of the sum.
    Erlang(f64, u32),
    /// The first time, or with the probability given last, the second.
    Bimodal(f64, f64, f64),
}

impl Time {
    /// The mean, in nanoseconds.
    #[must_use]
    pub fn mean_ns(self) -> f64 {
        match self {
            Time::Constant(ns) | Time::Exponential(ns) | Time::Erlang(ns, _) => ns,
            Time::Bimodal(one_ns, other_ns, share) => one_ns * (1.0 - share) + other_ns * share,
        }
    }

    /// Draws a time, in nanoseconds.
    pub fn draw(self, random: &mut Random) -> u64 {
        let ns = match self {
            Time::Constant(ns) => ns,
            Time::Exponential(ns) => ns * random.exponential(),
            Time::Erlang(ns, stages) => {
                let stages = stages.max(1);
                let sum: f64 = (0..stages).map(|_| random.exponential()).sum();
                ns * sum / f64::from(stages)
            }
            Time::Bimodal(one_ns, other_ns, share) => {
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
