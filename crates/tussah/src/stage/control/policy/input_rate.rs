//! A limit on the rate at which sockets are read.
//!
//! SEDA (Welsh, Culler and Brewer, SOSP 2001), §4.1: "a rate controller that can throttle the rate
//! at which packets are read from the network … by calculating a moving average of the incoming
//! packet rate and introducing artificial delays into the event-processing loop to achieve a
//! certain rate target".
//!
//! The paper specifies neither the average nor the delay. Here the average decays at the rate of
//! the limit, and reaches 1 when one second's worth of input is read at once. Once the average has
//! reached 1, and until it falls below a half, the time between two reads is the time that the
//! limit prescribes, multiplied by the average. The average therefore settles at 1, where the input
//! meets the limit exactly. After a pause, half a second's worth of input passes without delay.

use crate::stage::control::{Cadence, Controller, Owns, Sample, Settings};

/// The average below which nothing is delayed.
const CALM: f64 = 0.5;

/// The maximum value of the average. Without it, one large read would delay all others for a long
/// time.
const AVERAGE_MAX: f64 = 2.0;

/// The relative change of the time between two reads that justifies a new setting.
const CHANGE: f64 = 0.1;

/// The weight of the newest sample in the mean length of a read.
const PART: f64 = 0.125;

/// A controller that limits the combined read rate of all sockets in a set. The limit applies to
/// packets per second, to bytes per second, or to both.
///
/// Pass it to [`Sockets::control_reads`](crate::stage::net::Sockets::control_reads). Unread bytes
/// stay in the system's buffers; when the buffers are full, the peers stop sending. Connections
/// with unread data take turns.
///
/// # Examples
/// ```
/// use tussah::stage::Network;
/// use tussah::stage::control::policy::InputRate;
/// use tussah::stage::net::Sockets;
///
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// let network = Network::on(runtime.handle(), "router");
/// let sockets = Sockets::new(&network, "sockets")?;
/// // Per second, for all sockets together.
/// sockets.control_reads(InputRate::packets(1000).and_bytes(1_000_000))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct InputRate {
    packets: Option<Average>,
    bytes: Option<Average>,
    /// The mean length of a read, in bytes.
    len_mean: f64,
    delaying: bool,
}

/// The average of a limit, in seconds of its rate.
#[derive(Clone, Copy, Debug)]
struct Average {
    /// The limit per second.
    rate: f64,
    seconds: f64,
}

impl Average {
    fn new(rate: u64) -> Option<Self> {
        assert!(rate > 0, "a rate limit is above zero");
        Some(Self {
            rate: rate as f64,
            seconds: 0.0,
        })
    }

    fn count(&mut self, amount: f64, interval_s: f64) {
        self.seconds = (self.seconds - interval_s).max(0.0) + amount / self.rate;
    }
}

impl InputRate {
    /// Creates a limit in packets per second.
    ///
    /// # Panics
    /// Panics if the limit is 0.
    #[must_use]
    pub fn packets(per_second: u64) -> Self {
        Self::default().and_packets(per_second)
    }

    /// Creates a limit in bytes per second.
    ///
    /// # Panics
    /// Panics if the limit is 0.
    #[must_use]
    pub fn bytes(per_second: u64) -> Self {
        Self::default().and_bytes(per_second)
    }

    /// Adds a limit in packets per second.
    ///
    /// # Panics
    /// Panics if the limit is 0.
    #[must_use]
    pub fn and_packets(self, per_second: u64) -> Self {
        let packets = Average::new(per_second);
        Self { packets, ..self }
    }

    /// Adds a limit in bytes per second.
    ///
    /// # Panics
    /// Panics if the limit is 0.
    #[must_use]
    pub fn and_bytes(self, per_second: u64) -> Self {
        let bytes = Average::new(per_second);
        Self { bytes, ..self }
    }
}

impl Controller for InputRate {
    fn name(&self) -> &'static str {
        "input-rate"
    }

    fn owns(&self) -> Owns {
        Owns::PACE
    }

    fn cadence(&self) -> Cadence {
        // With a longer interval, a limit of a few packets would be exceeded between two samples.
        Cadence {
            finished: 1,
            ..Cadence::default()
        }
    }

    fn sample(&mut self, sample: &Sample<'_>, _now_ns: u64) -> Settings {
        let interval_s = sample.interval_ns as f64 / 1e9;
        let (packets, bytes) = (sample.finished as f64, sample.bytes as f64);
        if sample.finished > 0 {
            let part = if self.len_mean == 0.0 { 1.0 } else { PART };
            self.len_mean += part * (bytes / packets - self.len_mean);
        }
        let (mut most, mut pace_s) = (0.0_f64, 0.0_f64);
        let limits = [
            (&mut self.packets, packets, 1.0),
            (&mut self.bytes, bytes, self.len_mean),
        ];
        for (average, amount, each) in limits {
            if let Some(average) = average {
                average.count(amount, interval_s);
                most = most.max(average.seconds);
                let seconds = average.seconds.min(AVERAGE_MAX);
                pace_s = pace_s.max(each / average.rate * seconds);
            }
        }
        self.delaying = most >= if self.delaying { CALM } else { 1.0 };
        let wanted = if self.delaying { pace_s * 1e9 } else { 0.0 };
        let now = sample.pace_ns as f64;
        // A change between delaying and not delaying always counts.
        let differs = (wanted - now).abs() > CHANGE * now.max(1.0);
        Settings {
            pace_ns: differs.then_some(wanted as u64),
            ..Settings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::control::testing::{SECOND, quiet};

    /// Reads packets as often as allowed, or at fixed intervals. Returns the packets per second.
    fn read(rate: &mut InputRate, len: u64, every_ns: u64, seconds: u64) -> Vec<u64> {
        let (mut now_ns, mut pace_ns) = (0, 0);
        let mut packets = vec![0; seconds as usize];
        loop {
            let interval_ns = every_ns.max(pace_ns);
            now_ns += interval_ns;
            let second = (now_ns / SECOND) as usize;
            let Some(count) = packets.get_mut(second) else {
                return packets;
            };
            *count += 1;
            let sample = Sample {
                interval_ns,
                finished: 1,
                bytes: len,
                pace_ns,
                ..quiet()
            };
            let settings = rate.sample(&sample, now_ns);
            pace_ns = settings.pace_ns.unwrap_or(pace_ns);
        }
    }

    #[test]
    fn the_limit_is_met_after_a_second() {
        let check = |mut rate: InputRate, len, limit: u64| {
            let packets = read(&mut rate, len, 10_000, 20);
            let so_far: u64 = packets.iter().sum();
            // The first second's worth passes immediately.
            assert!(
                (limit * 20..=limit * 21 + 2).contains(&so_far),
                "{packets:?}"
            );
            let last = packets[19];
            assert!(last.abs_diff(limit) <= 1 + limit / 10, "{packets:?}");
        };
        check(InputRate::packets(100), 1000, 100);
        check(InputRate::packets(1), 1000, 1);
        check(InputRate::bytes(50_000), 1000, 50);
        check(InputRate::bytes(1_000_000), 100, 10_000);
        check(InputRate::packets(100).and_bytes(10_000), 1000, 10);
        check(InputRate::bytes(1_000_000).and_packets(10), 1000, 10);
    }

    #[test]
    fn below_the_limit_nothing_is_delayed() {
        let mut rate = InputRate::packets(100);
        assert_eq!(read(&mut rate, 1000, SECOND / 50, 3), [49, 50, 50]);
        assert!(!rate.delaying);
    }

    #[test]
    fn a_pause_ends_the_delay() {
        let mut rate = InputRate::packets(10);
        read(&mut rate, 1, 1000, 3);
        assert!(rate.delaying);
        let sample = Sample {
            interval_ns: SECOND,
            finished: 1,
            pace_ns: SECOND / 10,
            ..quiet()
        };
        assert_eq!(rate.sample(&sample, 4 * SECOND).pace_ns, Some(0));
        let settled = Sample {
            pace_ns: 0,
            ..sample
        };
        assert_eq!(rate.sample(&settled, 5 * SECOND).pace_ns, None);
    }

    #[test]
    fn a_large_read_stops_the_others_no_longer_than_it_would_take_twice() {
        let mut rate = InputRate::bytes(1000);
        let sample = Sample {
            finished: 1,
            bytes: 16_384,
            ..quiet()
        };
        let pace_ns = rate.sample(&sample, 0).pace_ns.expect("it is delayed");
        assert!(pace_ns <= 33 * SECOND, "{pace_ns}");
    }

    #[test]
    #[should_panic = "a rate limit is above zero"]
    fn no_rate() {
        let _ = InputRate::bytes(0);
    }
}
