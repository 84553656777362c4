//! The results of a run as a picture: latencies by percentile, and requests over time.

use hdrhistogram::Histogram;
use tussah_plot::{Axis, Line, Panel};

use super::summary::{Second, Summary};
use crate::units::{show_count, show_ns};

/// The maximum number of points of a curve. More are not visible.
const POINTS_MAX: usize = 200;

/// The last percentile on the axis is 99.999.
const NINES_MAX: f64 = 5.0;

/// Returns the percentiles of a histogram as a line, evenly spaced on the axis of the picture. A
/// point is the number of nines of a percentile, and a time in nanoseconds.
pub(in crate::load) fn curve(name: &str, histogram: &Histogram<u64>) -> Option<Line> {
    if histogram.is_empty() {
        return None;
    }
    // The last percentile leaves out a single request, the longest.
    let nines_max = (histogram.len() as f64).log10().clamp(0.3, NINES_MAX);
    let points = (0..=POINTS_MAX).map(|at| {
        let nines = nines_max * at as f64 / POINTS_MAX as f64;
        let ns = histogram.value_at_quantile(1.0 - 10f64.powf(-nines));
        (nines, ns.max(1) as f64)
    });
    Some(Line {
        name: name.to_owned(),
        points: points.collect(),
    })
}

/// Returns the picture as SVG.
pub(in crate::load) fn svg(summary: &Summary, curves: Vec<Line>) -> String {
    let title = format!(
        "{}: {} connections, {:.1} requests/s",
        summary.url, summary.parameters.connections, summary.served_per_s
    );
    tussah_plot::svg(&title, &[latencies(curves), seconds(&summary.seconds)])
}

/// Returns the plot of latencies over percentiles, where each further nine has the same width.
fn latencies(curves: Vec<Line>) -> Panel {
    let nines = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"];
    let nines = nines.iter().enumerate();
    let nines = nines.map(|(nines, text)| (nines as f64, (*text).to_owned()));
    let mut percentiles = Axis::new("percentile");
    percentiles.range = Some((0.0, NINES_MAX));
    percentiles.ticks = nines.collect();
    percentiles.ticks.push((2f64.log10(), "50 %".to_owned()));
    Panel::new(
        percentiles,
        Axis::new("latency").logarithmic().showing(show_ns),
        curves,
    )
}

/// A name and the count of a second to show.
type Series = (&'static str, fn(&Second) -> u64);

/// Returns the plot of the requests of each second.
fn seconds(seconds: &[Second]) -> Panel {
    let series: [Series; 3] = [
        ("served", |second| second.served),
        ("rejected", |second| second.rejected),
        ("failed", |second| second.failed),
    ];
    let any = |value: fn(&Second) -> u64| seconds.iter().any(|second| value(second) > 0);
    let lines = series.into_iter().filter(|&(_, value)| any(value));
    let lines = lines.map(|(name, value)| {
        // A step for each second.
        let steps = seconds.iter().enumerate().flat_map(|(at, second)| {
            let height = value(second) as f64;
            [(at as f64, height), (at as f64 + 1.0, height)]
        });
        Line {
            name: name.to_owned(),
            points: steps.collect(),
        }
    });
    Panel::new(
        Axis::new("time").showing(|seconds| format!("{seconds} s")),
        Axis::new("requests in a second").showing(|count| show_count(count as u64)),
        lines.collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::summary::tests::summary;

    #[test]
    fn a_picture() {
        let mut histogram = crate::load::report::tally::histogram();
        (1..=1000).for_each(|ms| histogram.saturating_record(ms * 1_000_000));
        let line = curve("latency", &histogram).expect("it is not empty");
        // 1,000 requests determine percentiles up to three nines.
        assert_eq!(line.points.len(), POINTS_MAX + 1);
        let (nines, ns) = line.points[POINTS_MAX];
        assert_eq!(nines, 3.0);
        assert!((0.99e9..1.01e9).contains(&ns), "{ns}");
        let mut summary = summary();
        summary.url = "http://a/?b&c".to_owned();
        summary.seconds = vec![
            Second {
                served: 10,
                ..Second::default()
            };
            3
        ];
        let text = svg(&summary, vec![line]);
        assert!(text.contains("http://a/?b&amp;c"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert_eq!(text.matches("<polyline").count(), 2, "{text}");
        assert!(curve("", &crate::load::report::tally::histogram()).is_none());
        let nothing = svg(&summary, Vec::new());
        assert!(
            !nothing.contains("NaN") && !nothing.contains("inf"),
            "{nothing}"
        );
    }
}
