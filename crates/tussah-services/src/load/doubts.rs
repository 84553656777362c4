//! What makes the results of a run doubtful.

use super::conduct::Course;
use super::summary::Summary;
use super::units::show_ns;

/// A generator whose workers are busy for a larger part of the time than this may be what limits the run.
const BUSY_SHARE_MAX: f64 = 0.9;

/// An open loop whose requests begin later than this, one in a hundred, does not keep its schedule, in nanoseconds.
const LAG_NS_MAX: u64 = 5_000_000;

/// What makes results doubtful, in sentences.
pub(super) fn doubts(summary: &Summary, course: &Course) -> Vec<String> {
    let mut doubts = Vec::new();
    let busy = summary.cpu.generator_busy;
    if busy > BUSY_SHARE_MAX {
        doubts.push(format!(
                "the generator itself was busy for {:.0} % of the time: it may be the bottleneck, and latencies include its own; give it more \
                 --workers, or other CPUs than the server",
                busy * 100.0
            ));
    }
    if summary.lag.p99 > LAG_NS_MAX {
        doubts.push(format!(
                "the generator fell behind its schedule: 1 % of requests were sent over {} late though their connection was free",
                show_ns(summary.lag.p99 as f64)
            ));
    }
    if let Some(count) = Some(summary.requests.never_sent).filter(|&count| count > 0) {
        doubts.push(format!(
                "{count} requests were due but not sent in the end, as their connections were busy: the server does not keep up with the \
                 rate, or there are too few connections for it"
            ));
    }
    if let Some(used) = course.server
        && (used.ended > 0 || used.processes == 0)
    {
        doubts.push(format!(
            "{} processes of the server ended while it was measured: their CPU time is missing",
            used.ended.max(1)
        ));
    }
    if summary.errors["no_free_port"] > 0 {
        doubts.push(
                "no port was free for some connections (EADDRNOTAVAIL): closed ones keep theirs for a minute (TIME_WAIT); add addresses \
                 with --source 127.0.0.2,127.0.0.3, use --close-by reset, or widen /proc/sys/net/ipv4/ip_local_port_range"
                    .to_owned(),
            );
    }
    if summary.errors["no_descriptor"] > 0 {
        doubts.push("there were too few descriptors: raise the hard limit (ulimit -Hn)".to_owned());
    }
    let before: u64 = summary.errors_before.values().sum();
    if before > 0 {
        doubts.push(format!(
            "{before} clients could not connect before the measurement"
        ));
    }
    doubts
}
