//! Random numbers and times.

/// Random numbers from a seed: SplitMix64, from Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers that belong to a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number of 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between 0 and 1, neither of them.
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Exponential, with a mean of 1.
    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }
}

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
