//! Line plots as SVG.

use std::fmt::Write;

/// One plot, with its lines.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// The label of the horizontal axis.
    pub x: String,
    /// The label of the vertical axis.
    pub y: String,
    /// True if the horizontal axis is logarithmic.
    pub logarithmic_x: bool,
    /// True if the vertical axis is logarithmic; values below the lowest power of ten are drawn at
    /// the bottom.
    pub logarithmic: bool,
    /// The lines, each in its own color.
    pub lines: Vec<Line>,
    /// A value that a horizontal line marks.
    pub mark: Option<f64>,
}

/// A line of a plot.
#[derive(Clone, Debug)]
pub struct Line {
    /// The name in the legend.
    pub name: String,
    /// The points from left to right.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 210.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 160.0;
const TOP: f64 = 34.0;
const BETWEEN: f64 = 48.0;
/// Okabe and Ito's colors, which color-blind readers can distinguish, and a darker version of each.
const COLORS: [&str; 12] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#7a3800",
    "#003d60", "#00533c", "#6e3f59", "#785300",
];
/// The maximum number of decades of a logarithmic axis.
const DECADES_MAX: f64 = 6.0;
const TICKS: u32 = 5;

/// Draws plots one below the other.
pub fn svg(title: &str, panels: &[Panel]) -> String {
    let height = TOP + panels.len() as f64 * (HEIGHT + BETWEEN);
    let mut out = String::new();
    let mut add = |text: std::fmt::Arguments<'_>| {
        out.write_fmt(text).expect("a string takes everything");
        out.push('\n');
    };
    add(format_args!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="11">"#
    ));
    add(format_args!(
        r#"<rect width="100%" height="100%" fill="white"/>"#
    ));
    add(format_args!(
        r#"<text x="{LEFT}" y="20" font-size="14">{}</text>"#,
        escaped(title)
    ));
    for (at, panel) in panels.iter().enumerate() {
        let frame = Frame::of(panel, TOP + at as f64 * (HEIGHT + BETWEEN));
        frame.axes(panel, &mut add);
        frame.lines(panel, &mut add);
    }
    add(format_args!("</svg>"));
    out
}

/// The area of a panel in which the values are drawn.
struct Frame {
    top: f64,
    x: (f64, f64),
    y: (f64, f64),
    logarithmic_x: bool,
    logarithmic: bool,
}

impl Frame {
    fn of(panel: &Panel, top: f64) -> Self {
        let points = panel.lines.iter().flat_map(|line| &line.points);
        let finite = points.filter(|(x, y)| x.is_finite() && y.is_finite());
        let (mut x, mut y) = ((f64::INFINITY, f64::NEG_INFINITY), (0.0, f64::MIN_POSITIVE));
        for (at_x, at_y) in finite {
            x = (x.0.min(*at_x), x.1.max(*at_x));
            y.1 = f64::max(y.1, *at_y);
        }
        if x.0 >= x.1 {
            x = (0.0, 1.0);
        }
        let lowest = panel.lines.iter().flat_map(|line| &line.points);
        let lowest = lowest.map(|p| p.1).filter(|y| *y > 0.0);
        let lowest = lowest.fold(y.1, f64::min);
        if panel.logarithmic {
            let high = y.1.log10().ceil();
            y = (lowest.log10().floor().max(high - DECADES_MAX), high);
            if y.0 >= y.1 {
                y.0 = y.1 - 1.0;
            }
        } else {
            y.1 = rounded_up(y.1);
        }
        if panel.logarithmic_x {
            x = (x.0.max(f64::MIN_POSITIVE).log10(), x.1.log10());
        }
        Self {
            top,
            x,
            y,
            logarithmic_x: panel.logarithmic_x,
            logarithmic: panel.logarithmic,
        }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let y = if self.logarithmic {
            y.max(f64::MIN_POSITIVE).log10()
        } else {
            y
        };
        let x = match self.logarithmic_x {
            true => x.max(f64::MIN_POSITIVE).log10(),
            false => x,
        };
        let right = (x - self.x.0) / (self.x.1 - self.x.0);
        let up = ((y - self.y.0) / (self.y.1 - self.y.0)).clamp(0.0, 1.0);
        (
            LEFT + right * (WIDTH - LEFT - RIGHT),
            self.top + (1.0 - up) * HEIGHT,
        )
    }

    fn axes(&self, panel: &Panel, add: &mut impl FnMut(std::fmt::Arguments<'_>)) {
        let (right, bottom) = (WIDTH - RIGHT, self.top + HEIGHT);
        for tick in 0..=TICKS {
            let part = f64::from(tick) / f64::from(TICKS);
            let x = self.x.0 + part * (self.x.1 - self.x.0);
            let x = if self.logarithmic_x { 10f64.powf(x) } else { x };
            let (at_x, _) = self.place((x, 0.0));
            add(format_args!(
                r##"<text x="{at_x:.1}" y="{:.1}" text-anchor="middle">{}</text>"##,
                bottom + 14.0,
                short(x)
            ));
        }
        let steps = if self.logarithmic {
            (self.y.1 - self.y.0) as u32
        } else {
            TICKS
        };
        for tick in 0..=steps {
            let y = self.y.0 + f64::from(tick) / f64::from(steps) * (self.y.1 - self.y.0);
            let y = if self.logarithmic { 10f64.powf(y) } else { y };
            let (_, at_y) = self.place((0.0, y));
            add(format_args!(
                r##"<line x1="{LEFT}" x2="{right}" y1="{at_y:.1}" y2="{at_y:.1}" stroke="#ddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"##,
                LEFT - 6.0,
                at_y + 4.0,
                short(y)
            ));
        }
        add(format_args!(
            r##"<path d="M{LEFT} {:.1}V{bottom:.1}H{right}" fill="none" stroke="#333"/>"##,
            self.top
        ));
        add(format_args!(
            r##"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"##,
            (LEFT + right) / 2.0,
            bottom + 28.0,
            escaped(&panel.x)
        ));
        add(format_args!(
            r##"<text transform="translate(14 {:.1}) rotate(-90)" text-anchor="middle">{}</text>"##,
            self.top + HEIGHT / 2.0,
            escaped(&panel.y)
        ));
    }

    fn lines(&self, panel: &Panel, add: &mut impl FnMut(std::fmt::Arguments<'_>)) {
        if let Some(mark) = panel.mark {
            let (_, y) = self.place((0.0, mark));
            add(format_args!(
                r##"<line x1="{LEFT}" x2="{}" y1="{y:.1}" y2="{y:.1}" stroke="#333" stroke-dasharray="4 3"/>"##,
                WIDTH - RIGHT
            ));
        }
        for (at, line) in panel.lines.iter().enumerate() {
            let color = COLORS[at % COLORS.len()];
            let mut points = String::new();
            for point in line.points.iter().filter(|p| p.1.is_finite()) {
                let (x, y) = self.place(*point);
                write!(points, "{x:.1},{y:.1} ").expect("a string takes everything");
            }
            add(format_args!(
                r#"<polyline points="{}" fill="none" stroke="{color}" stroke-width="1.3"/>"#,
                points.trim_end()
            ));
            let (x, y) = (WIDTH - RIGHT + 12.0, self.top + 10.0 + at as f64 * 15.0);
            add(format_args!(
                r#"<line x1="{x}" x2="{}" y1="{y:.1}" y2="{y:.1}" stroke="{color}" stroke-width="3"/><text x="{}" y="{:.1}">{}</text>"#,
                x + 16.0,
                x + 22.0,
                y + 4.0,
                escaped(&line.name)
            ));
        }
    }
}

/// Returns the next number of the form 1, 2 or 5 times a power of ten.
fn rounded_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

fn short(value: f64) -> String {
    let text = match value.abs() {
        1e6.. => format!("{}M", value / 1e6),
        1e4.. => format!("{}k", value / 1e3),
        100.0.. => format!("{value:.0}"),
        1.0.. => format!("{value:.1}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.4}"),
    };
    match text.contains('.') && !text.ends_with(['M', 'k']) {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        let check = |value, expected| assert_eq!(rounded_up(value), expected);
        check(0.7, 1.0);
        check(1.0, 1.0);
        check(120.0, 200.0);
        check(5001.0, 10_000.0);
    }

    #[test]
    fn lines_stay_in_their_frame_and_names_are_escaped() {
        let line = Line {
            name: "a<b".to_owned(),
            points: vec![(0.0, 0.0), (1.0, f64::INFINITY), (2.0, 3.0)],
        };
        for logarithmic in [false, true] {
            let panel = Panel {
                logarithmic,
                lines: vec![line.clone()],
                ..Panel::default()
            };
            let drawn = svg("t", std::slice::from_ref(&panel));
            assert!(drawn.contains("a&lt;b") && !drawn.contains("NaN") && !drawn.contains("inf"));
            let frame = Frame::of(&panel, TOP);
            assert_eq!(frame.place((2.0, 1e9)).1, TOP);
            assert_eq!(frame.place((0.0, 0.0)), (LEFT, TOP + HEIGHT));
        }
        assert!(svg("t", &[Panel::default()]).contains("</svg>"));
    }
}
