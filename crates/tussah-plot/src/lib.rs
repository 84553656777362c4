//! Line plots as SVG, and the escapes of text in SVG and HTML.
//!
//! A picture consists of panels, one below the other. Each panel has two axes, a set of lines, and
//! a legend to the right of the lines.

#![forbid(unsafe_code)]

mod axis;
mod escaped;

use std::fmt::{Arguments, Write as _};

pub use axis::Axis;
use axis::Scale;
pub use escaped::Escaped;

/// One plot, with its lines.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines, each in its own color.
    pub lines: Vec<Line>,
    /// The value at which the panel has a dashed horizontal line, if any.
    pub mark: Option<f64>,
}

impl Panel {
    /// Creates a panel without a marked value.
    #[must_use]
    pub fn new(x: Axis, y: Axis, lines: Vec<Line>) -> Self {
        Self {
            x,
            y,
            lines,
            mark: None,
        }
    }
}

/// A line of a plot.
#[derive(Clone, Debug)]
pub struct Line {
    /// The name in the legend.
    pub name: String,
    /// The points from left to right. Points with an infinite or NaN coordinate are left out.
    pub points: Vec<(f64, f64)>,
}

/// The width of a picture.
const WIDTH: f64 = 860.0;
/// The height of a panel.
const HEIGHT: f64 = 210.0;
/// The room to the left of the panels, for numbers.
const LEFT: f64 = 80.0;
/// The room to the right of the panels, for the legend.
const RIGHT: f64 = 160.0;
/// The room above the panels, for the title.
const TOP: f64 = 34.0;
/// The room below a panel, for the numbers and the name of its horizontal axis.
const BETWEEN: f64 = 48.0;
/// Okabe and Ito's colors, which color-blind readers can distinguish, and a darker version of each.
const COLORS: [&str; 12] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#7a3800",
    "#003d60", "#00533c", "#6e3f59", "#785300",
];

/// Draws panels one below the other.
#[must_use]
pub fn svg(title: &str, panels: &[Panel]) -> String {
    let height = TOP + panels.len() as f64 * (HEIGHT + BETWEEN);
    let mut picture = Picture(String::new());
    picture.add(format_args!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="11">"#
    ));
    picture.add(format_args!(
        r#"<rect width="100%" height="100%" fill="white"/>"#
    ));
    picture.add(format_args!(
        r#"<text x="{LEFT}" y="20" font-size="14">{}</text>"#,
        Escaped(title)
    ));
    for (at, panel) in panels.iter().enumerate() {
        let frame = Frame::of(panel, TOP + at as f64 * (HEIGHT + BETWEEN));
        frame.draw_axes(panel, &mut picture);
        frame.draw_lines(panel, &mut picture);
    }
    picture.add(format_args!("</svg>"));
    picture.0
}

/// The text of a picture.
struct Picture(String);

impl Picture {
    fn add(&mut self, line: Arguments<'_>) {
        writeln!(self.0, "{line}").expect("a string takes everything");
    }
}

/// The area of a panel in which the values are drawn.
struct Frame {
    top: f64,
    x: Scale,
    y: Scale,
}

impl Frame {
    fn of(panel: &Panel, top: f64) -> Self {
        let points = panel.lines.iter().flat_map(|line| &line.points);
        let finite = points.filter(|(x, y)| x.is_finite() && y.is_finite());
        let (x, y): (Vec<f64>, Vec<f64>) = finite.copied().unzip();
        Self {
            top,
            x: panel.x.scale(&x),
            y: panel.y.scale_from_zero(&y),
        }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (
            LEFT + self.x.part(x) * (WIDTH - LEFT - RIGHT),
            self.top + (1.0 - self.y.part(y)) * HEIGHT,
        )
    }

    fn draw_axes(&self, panel: &Panel, picture: &mut Picture) {
        let (right, bottom) = (WIDTH - RIGHT, self.top + HEIGHT);
        for (x, text) in &self.x.ticks {
            let (at, _) = self.place((*x, 0.0));
            picture.add(format_args!(
                r##"<path d="M{at:.1} {:.1}V{bottom:.1}" stroke="#eee"/><text x="{at:.1}" y="{:.1}" text-anchor="middle">{}</text>"##,
                self.top,
                bottom + 14.0,
                Escaped(text)
            ));
        }
        for (y, text) in &self.y.ticks {
            let (_, at) = self.place((0.0, *y));
            picture.add(format_args!(
                r##"<path d="M{LEFT} {at:.1}H{right}" stroke="#ddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"##,
                LEFT - 6.0,
                at + 4.0,
                Escaped(text)
            ));
        }
        picture.add(format_args!(
            r##"<path d="M{LEFT} {:.1}V{bottom:.1}H{right}" fill="none" stroke="#333"/>"##,
            self.top
        ));
        picture.add(format_args!(
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            (LEFT + right) / 2.0,
            bottom + 28.0,
            Escaped(&panel.x.name)
        ));
        picture.add(format_args!(
            r#"<text transform="translate(14 {:.1}) rotate(-90)" text-anchor="middle">{}</text>"#,
            self.top + HEIGHT / 2.0,
            Escaped(&panel.y.name)
        ));
    }

    fn draw_lines(&self, panel: &Panel, picture: &mut Picture) {
        if let Some(mark) = panel.mark {
            let (_, y) = self.place((0.0, mark));
            picture.add(format_args!(
                r##"<path d="M{LEFT} {y:.1}H{}" stroke="#333" stroke-dasharray="4 3"/>"##,
                WIDTH - RIGHT
            ));
        }
        for (at, line) in panel.lines.iter().enumerate() {
            let color = COLORS[at % COLORS.len()];
            let finite = line.points.iter();
            let finite = finite.filter(|(x, y)| x.is_finite() && y.is_finite());
            let points = finite.map(|&point| {
                let (x, y) = self.place(point);
                format!("{x:.1},{y:.1}")
            });
            let points: Vec<_> = points.collect();
            picture.add(format_args!(
                r#"<polyline points="{}" fill="none" stroke="{color}" stroke-width="1.3"/>"#,
                points.join(" ")
            ));
            let (x, y) = (WIDTH - RIGHT + 12.0, self.top + 10.0 + at as f64 * 15.0);
            picture.add(format_args!(
                r#"<path d="M{x} {y:.1}h16" stroke="{color}" stroke-width="3"/><text x="{}" y="{:.1}">{}</text>"#,
                x + 22.0,
                y + 4.0,
                Escaped(&line.name)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(y: Axis, points: &[(f64, f64)]) -> Panel {
        let line = Line {
            name: "a<b".to_owned(),
            points: points.to_vec(),
        };
        Panel::new(Axis::new("s"), y, vec![line])
    }

    #[test]
    fn lines_stay_in_their_frame_and_names_are_escaped() {
        let points = [(0.0, 0.0), (1.0, f64::INFINITY), (2.0, 3.0)];
        for y in [Axis::new("y"), Axis::new("y").logarithmic()] {
            let panel = panel(y, &points);
            let drawn = svg("t&u", std::slice::from_ref(&panel));
            assert!(drawn.contains("a&lt;b") && drawn.contains("t&amp;u"));
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
            let frame = Frame::of(&panel, TOP);
            assert_eq!(frame.place((2.0, 1e9)).1, TOP);
            assert_eq!(frame.place((0.0, 0.0)), (LEFT, TOP + HEIGHT));
        }
    }

    #[test]
    fn nothing_is_drawn_without_points() {
        for y in [Axis::new("y"), Axis::new("y").logarithmic()] {
            let drawn = svg("t", &[panel(y, &[])]);
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
            assert!(drawn.contains(r#"<polyline points="""#), "{drawn}");
        }
    }
}
