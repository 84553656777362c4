//! Requirements for the results of a run.

use std::fmt;
use std::str::FromStr;

use super::summary::{Summary, Times};
use crate::units::{duration, show_bytes, show_ns, size};

/// The names in an [`Expectation`], in addition to the times.
const MEASURES: &str = "p50, p75, p90, p95, p99, p99.9, p99.99, mean, min or max (of `latency`, or as response.p99, connect.p99, 503.p99), \
                        errors, rejected, within, rate, goodput, bytes, jain, jain_worst, cpu or busy";

/// A requirement for one of the results, such as `p99<20ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    text: String,
    measure: Measure,
    order: Order,
    bound: f64,
}

/// The verdict on an expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// True if the result meets the expectation.
    pub is_met: bool,
    /// The expectation, the verdict and the result as text.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Measure {
    /// A time in nanoseconds, from a distribution.
    Time(Distribution, Point),
    /// The share of all requests.
    Errors,
    Rejected,
    Within,
    /// Requests per second.
    Rate,
    Goodput,
    /// Bytes per second.
    Bytes,
    Jain,
    JainWorst,
    /// Milliseconds of the server's CPU time per thousand answers.
    Cpu,
    /// The busy share of the time of the generator's workers.
    Busy,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Distribution {
    Latency,
    Response,
    Connect,
    Rejected,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Point {
    Mean,
    Min,
    P50,
    P75,
    P90,
    P95,
    P99,
    P99_9,
    P99_99,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected a bound such as `p99<20ms`, `errors<0.1%`, `rate>1000` or `jain>0.99`, not `{text}`"
            )
        };
        let at = text.find(['<', '>']).ok_or_else(expected)?;
        let (name, rest) = text.split_at(at);
        let (order, bound) = match rest.as_bytes() {
            [b'<', b'=', ..] => (Order::AtMost, &rest[2..]),
            [b'>', b'=', ..] => (Order::AtLeast, &rest[2..]),
            [b'<', ..] => (Order::Less, &rest[1..]),
            _ => (Order::Greater, &rest[1..]),
        };
        let name = name.trim();
        let measure = Measure::named(name);
        let measure = measure.ok_or_else(|| format!("expected {MEASURES}, not `{name}`"))?;
        Ok(Self {
            text: text.to_owned(),
            measure,
            order,
            bound: measure
                .bound(bound.trim())
                .map_err(|error| format!("{error}: `{text}`"))?,
        })
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expectation {
    /// Returns the option that this measure requires, if there is one.
    #[must_use]
    pub(in crate::load) fn option(&self) -> Option<&'static str> {
        match self.measure {
            Measure::Within | Measure::Goodput => Some("--within"),
            Measure::Cpu => Some("--pid"),
            _ => None,
        }
    }

    /// Judges a run. A result that was not measured does not meet the expectation.
    #[must_use]
    pub fn judge(&self, summary: &Summary) -> Judged {
        let value = self.measure.of(summary);
        let is_met = value.is_some_and(|value| match self.order {
            Order::Less => value < self.bound,
            Order::AtMost => value <= self.bound,
            Order::Greater => value > self.bound,
            Order::AtLeast => value >= self.bound,
        });
        let found = value.map_or("not measured".to_owned(), |value| self.measure.show(value));
        let verdict = if is_met { "met" } else { "NOT MET" };
        Judged {
            is_met,
            text: format!("{} {verdict}: {found}", self.text),
        }
    }
}

impl Measure {
    fn named(name: &str) -> Option<Self> {
        let (distribution, point) = match name.split_once('.') {
            Some(("latency", point)) => (Distribution::Latency, point),
            Some(("response", point)) => (Distribution::Response, point),
            Some(("connect", point)) => (Distribution::Connect, point),
            Some(("503" | "rejected", point)) => (Distribution::Rejected, point),
            _ => (Distribution::Latency, name),
        };
        let time = |point| Some(Self::Time(distribution, point));
        match point {
            "mean" => time(Point::Mean),
            "min" => time(Point::Min),
            "p50" => time(Point::P50),
            "p75" => time(Point::P75),
            "p90" => time(Point::P90),
            "p95" => time(Point::P95),
            "p99" => time(Point::P99),
            "p99.9" => time(Point::P99_9),
            "p99.99" => time(Point::P99_99),
            "max" => time(Point::Max),
            _ => match name {
                "errors" => Some(Self::Errors),
                "rejected" => Some(Self::Rejected),
                "within" => Some(Self::Within),
                "rate" => Some(Self::Rate),
                "goodput" => Some(Self::Goodput),
                "bytes" => Some(Self::Bytes),
                "jain" => Some(Self::Jain),
                "jain_worst" => Some(Self::JainWorst),
                "cpu" => Some(Self::Cpu),
                "busy" => Some(Self::Busy),
                _ => None,
            },
        }
    }

    /// Parses a bound in the unit of this measure.
    fn bound(self, text: &str) -> Result<f64, String> {
        let number = |text: &str| {
            let number: Option<f64> = text.parse().ok().filter(|number: &f64| number.is_finite());
            number.ok_or_else(|| "expected a number after the sign".to_owned())
        };
        match self {
            Self::Time(..) => Ok(duration(text)?.as_nanos() as f64),
            Self::Bytes => Ok(size(text.trim_end_matches("/s"))? as f64),
            Self::Cpu => Ok(duration(text).map(|time| time.as_secs_f64() * 1e3)?),
            _ => match text.strip_suffix('%') {
                Some(percent) => Ok(number(percent.trim_end())? / 100.0),
                None => number(text),
            },
        }
    }

    fn of(self, summary: &Summary) -> Option<f64> {
        let share = |count: u64| {
            let all = summary.attempted();
            (all > 0).then(|| count as f64 / all as f64)
        };
        match self {
            Self::Time(distribution, point) => {
                let times = match distribution {
                    Distribution::Latency => &summary.latency,
                    Distribution::Response => &summary.response,
                    Distribution::Connect => &summary.connect,
                    Distribution::Rejected => &summary.rejected_latency,
                };
                (times.count > 0).then(|| point.of(times))
            }
            Self::Errors => share(summary.errors()),
            Self::Rejected => share(summary.requests.rejected),
            Self::Within => summary.within.as_ref().map(|within| within.share),
            Self::Rate => Some(summary.served_per_s),
            Self::Goodput => summary.within.as_ref().map(|within| within.per_s),
            Self::Bytes => Some(summary.bytes_per_s),
            Self::Jain => Some(summary.fairness.jain),
            Self::JainWorst => Some(summary.fairness.jain_worst),
            Self::Cpu => summary
                .cpu
                .server
                .as_ref()
                .map(|server| server.ms_per_1000_requests),
            Self::Busy => Some(summary.cpu.generator_busy),
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::Time(..) => show_ns(value),
            Self::Bytes => format!("{}/s", show_bytes(value)),
            Self::Errors | Self::Rejected | Self::Within | Self::Busy => {
                format!("{:.3} %", value * 100.0)
            }
            Self::Rate | Self::Goodput => format!("{value:.1}"),
            Self::Jain | Self::JainWorst => format!("{value:.4}"),
            Self::Cpu => format!("{value:.3} ms"),
        }
    }
}

impl Point {
    fn of(self, times: &Times) -> f64 {
        let ns = match self {
            Self::Mean => return times.mean,
            Self::Min => times.min,
            Self::P50 => times.p50,
            Self::P75 => times.p75,
            Self::P90 => times.p90,
            Self::P95 => times.p95,
            Self::P99 => times.p99,
            Self::P99_9 => times.p99_9,
            Self::P99_99 => times.p99_99,
            Self::Max => times.max,
        };
        ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::summary::tests::summary;

    #[test]
    fn bounds() {
        let mut summary = summary();
        summary.latency = Times {
            count: 100,
            mean: 2e6,
            p99: 20_000_000,
            ..Times::default()
        };
        summary.requests.served = 998;
        summary.requests.failed = 2;
        summary.served_per_s = 1000.0;
        summary.fairness.jain = 0.99;
        let check = |text: &str, expected: bool| {
            let expectation: Expectation = text.parse().expect(text);
            let judged = expectation.judge(&summary);
            assert_eq!(judged.is_met, expected, "{judged:?}");
        };
        check("p99<20ms", false);
        check("p99<=20ms", true);
        check("p99 < 0.021s", true);
        check("latency.mean>1ms", true);
        check("errors<0.2%", false);
        check("errors<0.3%", true);
        check("errors<=0.002", true);
        check("rejected<1%", true);
        check("rate>1000", false);
        check("rate>=1000", true);
        check("jain>0.98", true);
        check("jain>=99%", true);
        // No connection was measured.
        check("connect.p99<1h", false);
        check("503.max<1h", false);
        check("cpu<1h", false);
        check("within>=0%", false);
        check("goodput>=0", false);
        // In an open loop, unanswered requests count and unsent ones are errors.
        summary.requests.rejected = 1000;
        summary.requests.unfinished = 1000;
        summary.requests.never_sent = 997;
        summary.requests.overdue = 1;
        let judge = |text: &str, summary: &Summary| {
            let expectation: Expectation = text.parse().expect(text);
            expectation.judge(summary).text
        };
        assert_eq!(judge("errors<1", &summary), "errors<1 met: 0.100 %");
        assert_eq!(judge("rejected<1", &summary), "rejected<1 met: 50.000 %");
        summary.parameters.rate_per_s = Some(1000.0);
        assert_eq!(judge("errors<1", &summary), "errors<1 met: 25.019 %");
        assert_eq!(judge("rejected<1", &summary), "rejected<1 met: 25.019 %");
    }

    #[test]
    fn not_bounds() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<Expectation>().expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("p99", "expected a bound such as");
        check("p98<1ms", "p99.9");
        check("p99<fast", "expected a duration");
        check("rate>many", "expected a number");
        check("rate>NaN", "expected a number");
        check("errors<", "expected a number");
        check("bytes>1x", "expected a size");
    }
}
