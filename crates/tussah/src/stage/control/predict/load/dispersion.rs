//! The dispersion of the arrivals.

/// A new measurement of the dispersion counts as at most this multiple of the known value.
const SURPRISE: f64 = 16.0;

/// The variance of the arrivals in an interval divided by their mean; 1 for independent arrivals.
#[derive(Debug)]
pub(super) struct Dispersion {
    pub(super) value: f64,
    /// The arrivals and the time, in the current part of the measurement and in the previous one.
    part: (f64, f64),
    before: (f64, f64),
}

impl Default for Dispersion {
    fn default() -> Self {
        Self {
            value: 1.0,
            part: (0.0, 0.0),
            before: (0.0, 0.0),
        }
    }
}

impl Dispersion {
    /// Adds a measurement from the difference of two neighboring parts, in which a step of the load
    /// is hardly visible.
    pub(super) fn observe(&mut self, arrived: f64, interval_ns: f64, part_ns: f64) {
        self.part.0 += arrived;
        self.part.1 += interval_ns;
        if self.part.1 < part_ns {
            return;
        }
        let (arrived, interval_ns) = std::mem::take(&mut self.part);
        let (arrived_before, interval_ns_before) = self.before;
        let both = arrived + arrived_before;
        if interval_ns_before > 0.0 && both > 0.0 {
            let difference = arrived * interval_ns_before - arrived_before * interval_ns;
            let seen = difference * difference / (interval_ns * interval_ns_before * both);
            // One burst says little about the pattern of arrivals, but repeated clumps soon say
            // enough.
            let seen = seen.min(SURPRISE * self.value);
            self.value += (seen - self.value) / 32.0;
            self.value = self.value.max(1.0);
        }
        self.before = (arrived, interval_ns);
    }
}
