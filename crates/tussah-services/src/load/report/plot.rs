//! The results of a run as a picture: latencies by percentile, and requests over time.

use std::fmt::Write;

use hdrhistogram::Histogram;

use super::summary::{Second, Summary};
use crate::html::Escaped;
use crate::units::{show_count, show_ns};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 640.0;

/// The position of the two diagrams: left, top, width, height.
const LATENCIES: Frame = Frame([80.0, 60.0, 740.0, 230.0]);
const SECONDS: Frame = Frame([80.0, 360.0, 740.0, 210.0]);

/// Bound, in points: the points of a curve. More are not visible.
const POINTS_MAX: usize = 200;

/// The last percentile on the axis is 99.999.
const NINES_MAX: f64 = 5.0;

/// A curve's name, color and points. A point is a share of requests and a time in nanoseconds.
pub(in crate::load) struct Curve {
    name: &'static str,
    color: &'static str,
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// Returns the percentiles of a histogram, evenly spaced on the axis of the picture.
    pub(in crate::load) fn of(
        name: &'static str,
        color: &'static str,
        histogram: &Histogram<u64>,
    ) -> Option<Self> {
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
        Some(Self {
            name,
            color,
            points: points.collect(),
        })
    }
}

/// Returns the picture as SVG.
pub(in crate::load) fn svg(summary: &Summary, curves: &[Curve]) -> String {
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let title = format!(
        "{}: {} connections, {:.1} requests/s",
        summary.url, summary.parameters.connections, summary.served_per_s
    );
    label(
        &mut text,
        20.0,
        28.0,
        "start",
        "#222",
        &Escaped(&title).to_string(),
    );
    latencies(&mut text, curves);
    seconds(&mut text, &summary.seconds);
    text + "</svg>\n"
}

/// Draws latencies on a logarithmic axis over percentiles, where each further nine has the same
/// width.
fn latencies(text: &mut String, curves: &[Curve]) {
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let decade = |ns: f64| ns.log10();
    let bottom = all().map(|&(_, ns)| ns).fold(f64::INFINITY, f64::min);
    let top = all().map(|&(_, ns)| ns).fold(1.0, f64::max);
    let (bottom, top) = (decade(bottom.min(top)).floor(), decade(top).ceil());
    let frame = LATENCIES.with((0.0, NINES_MAX), (bottom, top.max(bottom + 1.0)));
    frame.draw(text, "latency by percentile");
    let mut decade_ns = bottom;
    while decade_ns <= frame.y.1 {
        frame.tick_y(text, decade_ns, &show_ns(10f64.powf(decade_ns)));
        decade_ns += 1.0;
    }
    for (nines, name) in ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"]
        .iter()
        .enumerate()
    {
        frame.tick_x(text, nines as f64, name);
    }
    frame.tick_x(text, 2f64.log10(), "50 %");
    for (at, curve) in curves.iter().enumerate() {
        let points = curve.points.iter();
        frame.line(
            text,
            curve.color,
            points.map(|&(nines, ns)| (nines, decade(ns))),
        );
        frame.name(text, at, curve.color, curve.name);
    }
}

/// A name, a color, and the count of a second to show.
type Series = (&'static str, &'static str, fn(&Second) -> u64);

/// Draws the requests of each second.
fn seconds(text: &mut String, seconds: &[Second]) {
    let series: [Series; 3] = [
        ("served", "#1f77b4", |second| second.served),
        ("rejected", "#ff7f0e", |second| second.rejected),
        ("failed", "#d62728", |second| second.failed),
    ];
    let highest = |value: fn(&Second) -> u64| seconds.iter().map(value).max().unwrap_or(0);
    let top = series.iter().map(|&(.., value)| highest(value)).max();
    let step = round_step(top.unwrap_or(0).max(4) as f64 / 4.0);
    let end = seconds.len().max(1) as f64;
    let frame = SECONDS.with((0.0, end), (0.0, step * 5.0));
    frame.draw(text, "requests by second");
    for at in 0..=5 {
        let value = step * f64::from(at);
        frame.tick_y(text, value, &show_count(value as u64));
    }
    let every = round_step(end / 8.0).max(1.0);
    let mut at = 0.0;
    while at <= end {
        frame.tick_x(text, at, &format!("{at} s"));
        at += every;
    }
    let shown = series.into_iter().filter(|&(.., value)| highest(value) > 0);
    for (at, (name, color, value)) in shown.enumerate() {
        // A step for each second.
        let steps = seconds.iter().enumerate().flat_map(|(at, second)| {
            let height = value(second) as f64;
            [(at as f64, height), (at as f64 + 1.0, height)]
        });
        frame.line(text, color, steps);
        frame.name(text, at, color, name);
    }
}

/// Returns the smallest of the numbers 1, 2, 5, 10, 20, .. that is not below a number.
fn round_step(number: f64) -> f64 {
    let decade = 10f64.powf(number.max(f64::MIN_POSITIVE).log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|step| step * decade);
    let found = steps.into_iter().find(|&step| step >= number);
    found.unwrap_or(decade * 10.0)
}

/// A rectangle of the picture: left, top, width, height.
#[derive(Clone, Copy)]
struct Frame([f64; 4]);

/// A frame with the numbers at its edges.
struct Axes {
    frame: Frame,
    x: (f64, f64),
    y: (f64, f64),
}

impl Frame {
    fn with(self, x: (f64, f64), y: (f64, f64)) -> Axes {
        Axes { frame: self, x, y }
    }
}

impl Axes {
    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let Frame([left, top, width, height]) = self.frame;
        let part = |value: f64, (from, to): (f64, f64)| (value - from) / (to - from);
        (
            left + width * part(x, self.x),
            top + height * (1.0 - part(y, self.y)),
        )
    }

    fn draw(&self, text: &mut String, title: &str) {
        let Frame([left, top, width, height]) = self.frame;
        push(
            text,
            format_args!(
                "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#888\"/>"
            ),
        );
        label(text, left, top - 10.0, "start", "#222", title);
    }

    fn tick_x(&self, text: &mut String, x: f64, name: &str) {
        let Frame([_, top, _, height]) = self.frame;
        let (x, _) = self.place(x, self.y.0);
        let bottom = top + height;
        push(
            text,
            format_args!("<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"#ddd\"/>"),
        );
        label(text, x, bottom + 16.0, "middle", "#444", name);
    }

    fn tick_y(&self, text: &mut String, y: f64, name: &str) {
        let Frame([left, _, width, _]) = self.frame;
        let (_, y) = self.place(self.x.0, y);
        push(
            text,
            format_args!("<path d=\"M{left} {y:.1}h{width}\" stroke=\"#ddd\"/>"),
        );
        label(text, left - 6.0, y + 4.0, "end", "#444", name);
    }

    fn line(&self, text: &mut String, color: &str, points: impl Iterator<Item = (f64, f64)>) {
        let mut path = String::new();
        for (x, y) in points {
            let (x, y) = self.place(x, y);
            // A write to a string cannot fail.
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        push(
            text,
            format_args!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>",
                path.trim_end()
            ),
        );
    }

    /// Writes the name of a line; `at` counts from the top.
    fn name(&self, text: &mut String, at: usize, color: &str, name: &str) {
        let Frame([left, top, _, _]) = self.frame;
        label(
            text,
            left + 10.0,
            top + 18.0 + 16.0 * at as f64,
            "start",
            color,
            name,
        );
    }
}

fn label(text: &mut String, x: f64, y: f64, anchor: &str, color: &str, words: &str) {
    push(
        text,
        format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{color}\">{words}</text>"
        ),
    );
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // A write to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::report::summary::tests::summary;

    #[test]
    fn steps() {
        let check = |number: f64, expected: f64| assert_eq!(round_step(number), expected);
        check(1.0, 1.0);
        check(1.1, 2.0);
        check(3.0, 5.0);
        check(700.0, 1000.0);
    }

    #[test]
    fn a_picture() {
        let mut histogram = crate::load::report::tally::histogram();
        (1..=1000).for_each(|ms| histogram.saturating_record(ms * 1_000_000));
        let curve = Curve::of("latency", "#1f77b4", &histogram).expect("it is not empty");
        // 1,000 requests determine percentiles up to three nines.
        assert_eq!(curve.points.len(), POINTS_MAX + 1);
        let (nines, ns) = curve.points[POINTS_MAX];
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
        let text = svg(&summary, &[curve]);
        assert!(text.contains("http://a/?b&amp;c"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert_eq!(text.matches("<polyline").count(), 2, "{text}");
        assert!(Curve::of("", "", &crate::load::report::tally::histogram()).is_none());
        let nothing = svg(&summary, &[]);
        assert!(
            !nothing.contains("NaN") && !nothing.contains("inf"),
            "{nothing}"
        );
    }
}
