//! Warnings about the results of a run.

use super::summary::Summary;
use crate::load::run::phases::Course;
use crate::units::show_ns;

/// The busy share of the workers above which the generator may be what limits the run.
const BUSY_SHARE_MAX: f64 = 0.9;

/// The lateness, in nanoseconds, that one in a hundred requests of an open loop may exceed before
/// the generator counts as behind its schedule.
const LAG_NS_MAX: u64 = 5_000_000;

/// Returns the reasons to doubt the results, as sentences.
pub(in crate::load) fn warnings(summary: &Summary, course: &Course) -> Vec<String> {
    let mut warnings = Vec::new();
    let busy = summary.cpu.generator_busy;
    if busy > BUSY_SHARE_MAX {
        warnings.push(format!(
                "the generator was busy for {:.0} % of the time: it may be the bottleneck and add to the latencies; give it more \
                 --workers, or CPUs that the server does not use",
                busy * 100.0
            ));
    }
    if summary.lag.p99 > LAG_NS_MAX {
        warnings.push(format!(
                "the generator fell behind its schedule: it sent 1 % of the requests more than {} late, although their connections were free",
                show_ns(summary.lag.p99 as f64)
            ));
    }
    if let Some(count) = Some(summary.requests.never_sent).filter(|&count| count > 0) {
        warnings.push(format!(
                "{count} requests were due but never sent, since their connections were busy: the server does not keep up with the \
                 rate, or the rate needs more connections"
            ));
    }
    if let Some(used) = course.server
        && (used.ended > 0 || used.processes == 0)
    {
        warnings.push(format!(
            "{} processes of the server ended during the measurement: their CPU time is missing",
            used.ended.max(1)
        ));
    }
    if summary.errors["no_free_port"] > 0 {
        warnings.push(
                "some connections got no port (EADDRNOTAVAIL): a closed connection keeps its port for a minute (TIME_WAIT); add addresses \
                 with --source 127.0.0.2,127.0.0.3, use --close-by reset, or widen /proc/sys/net/ipv4/ip_local_port_range"
                    .to_owned(),
            );
    }
    if summary.errors["no_descriptor"] > 0 {
        warnings.push(
            "the process ran out of descriptors: raise the hard limit (ulimit -Hn)".to_owned(),
        );
    }
    let before: u64 = summary.errors_before.values().sum();
    if before > 0 {
        warnings.push(format!(
            "{before} clients could not connect before the measurement"
        ));
    }
    warnings
}
