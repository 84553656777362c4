//! The number in service while a resource is scarce.

use super::{Knee, RATE, SERVLETS_MIN, pace};
use crate::stage::control::Why;

impl Knee {
    /// Follows the rate of the scarce resource.
    pub(super) fn follow(&mut self, max: f64) {
        let (pace, servlets) = (self.pace, self.servlets);
        if pace.batches < RATE.max(servlets) {
            return;
        }
        self.rate = pace.per_ns();
        let is_known = pace.lacks_permits();
        let (service_ns, why) = if is_known {
            (pace.mean_ns(), Why::PermitsInUse)
        } else {
            (servlets / self.rate, Why::MoreDoNoMore)
        };
        self.unloaded.lower(service_ns);
        let wanted = if is_known {
            self.wanted_beyond(service_ns)
        } else {
            self.wanted()
        };
        let doubt = 2.0 / pace.batches.sqrt();
        self.rest -= 1.0;
        if wanted > servlets * 1.05 {
            let servlets = wanted.min(1.5 * servlets).ceil().min(max);
            self.hold(servlets, why);
        } else if self.why == Why::PermitsInUse && self.limited == 0 && servlets < max {
            // Nobody waits for a permit any more, so services may have become longer.
            self.turn(2.0 * servlets, Some(pace), max);
        } else if wanted < servlets * (1.0 - doubt).min(0.8) && servlets > 1.0 {
            let fewer = wanted.max(0.5 * servlets).round().min(servlets - 1.0);
            if is_known {
                self.hold(fewer, why);
            } else {
                self.turn(fewer, Some(pace), max);
            }
        } else if !is_known && self.rest <= 0.0 && pace.batches >= 2.0 * RATE {
            self.tried_more = !self.tried_more;
            let short = service_ns < self.unloaded.own_target_ns() / 4.0;
            if self.tried_more || short || servlets < SERVLETS_MIN {
                self.turn(2.0 * servlets, Some(pace), max);
            } else {
                self.turn(0.5 * servlets, Some(pace), max);
            }
        } else if pace.batches > pace::ENOUGH {
            self.hold(servlets, self.why);
        }
    }
}
