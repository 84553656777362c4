//! SVG: the boxes and arrows with their styles.

use std::fmt::Write as _;

use super::measure::QUEUE_WIDTH;
use super::place::{MARGIN, Placed, Rect, Route};
use super::{Card, CardKind, Link, Scene, Style};
use crate::modules::Parallelism;

/// Colors come from properties, so that the drawing suits light and dark pages. Programs without
/// support for them, such as librsvg, use the value before.
const STYLE: &str = "
  svg { --paper: #ffffff; --ink: #1f2430; --soft: #5b6472; --box: #f3f6fb; --line: #3b5b92; --shed: #b3541e }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #16191f; --ink: #e8ebf0; --soft: #a3adbb; --box: #222833; --line: #8fb1ea; --shed: #eb9b66 }
  }
  text { font-family: system-ui, sans-serif; fill: #1f2430; fill: var(--ink) }
  .paper { fill: #ffffff; fill: var(--paper) }
  .box { fill: #f3f6fb; fill: var(--box); stroke: #3b5b92; stroke: var(--line); stroke-width: 1.5 }
  .name { font-size: 14px; font-weight: 600 }
  .soft { font-size: 11px; fill: #5b6472; fill: var(--soft) }
  .port { font-size: 11px }
  .bound { font-size: 10px; fill: #5b6472; fill: var(--soft) }
  .arrow { fill: none; stroke: #3b5b92; stroke: var(--line); stroke-width: 1.5; marker-end: url(#head) }
  .call { marker-end: url(#open) }
  .back { stroke-dasharray: 6 4 }
  .shed { stroke: #b3541e; stroke: var(--shed); stroke-dasharray: 2 3; marker-end: url(#shed) }
  .queue { fill: #ffffff; fill: var(--paper); stroke: #3b5b92; stroke: var(--line) }
  .halo { stroke: #ffffff; stroke: var(--paper); stroke-width: 3px; paint-order: stroke }
";

/// Writes a scene.
pub(super) fn write(scene: &Scene, placed: &Placed) -> String {
    let (width, height) = (placed.width.ceil(), placed.height.ceil());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 \
         {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n",
        escape(&scene.name)
    );
    for (id, class, shape) in [
        ("head", "fill:#3b5b92;fill:var(--line)", "M0 0L8 4L0 8Z"),
        (
            "open",
            "fill:#ffffff;fill:var(--paper);stroke:#3b5b92;stroke:var(--line)",
            "M.5 .5L7.5 4L.5 7.5Z",
        ),
        ("shed", "fill:#b3541e;fill:var(--shed)", "M0 0L8 4L0 8Z"),
    ] {
        add(
            &mut out,
            format_args!(
                "<marker id=\"{id}\" markerWidth=\"8\" markerHeight=\"8\" refX=\"8\" refY=\"4\" \
             markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"{shape}\" style=\"{class}\"/></marker>\n"
            ),
        );
    }
    add(
        &mut out,
        format_args!("<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n"),
    );
    add(
        &mut out,
        format_args!(
            "<text x=\"{MARGIN}\" y=\"{}\" style=\"font-size:18px;font-weight:600\">{}</text>\n",
            MARGIN + 16.0,
            escape(&scene.name)
        ),
    );
    add(
        &mut out,
        format_args!(
            "<text x=\"{MARGIN}\" y=\"{}\" class=\"soft\" style=\"font-size:13px\">{}</text>\n",
            MARGIN + 36.0,
            escape(&scene.doc)
        ),
    );
    for (link, route) in scene.links.iter().zip(&placed.routes) {
        arrow(&mut out, scene, link, route);
    }
    for (card, rect) in scene.cards.iter().zip(&placed.cards) {
        write_card(&mut out, card, rect);
    }
    // Labels come last, so that no arrow crosses them.
    for (link, route) in scene.links.iter().zip(&placed.routes) {
        labels(&mut out, link, route);
    }
    for (index, note) in scene.notes.iter().enumerate() {
        let y = placed.notes_y + index as f64 * 18.0;
        add(
            &mut out,
            format_args!(
                "<text x=\"{MARGIN}\" y=\"{y:.0}\" class=\"soft\" style=\"font-size:12px\">{}</text>\n",
                escape(note)
            ),
        );
    }
    out.push_str("</svg>\n");
    out
}

fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes all");
}

fn arrow(out: &mut String, scene: &Scene, link: &Link, route: &Route) {
    let class = match link.style {
        Style::Queue => "",
        Style::Call => " call",
        Style::Back => " back",
        Style::Shed => " shed",
    };
    let name = |card: usize, port: &str| match port {
        "" => scene.cards[card].name.clone(),
        port => format!("{}.{port}", scene.cards[card].name),
    };
    let from = match link.style {
        Style::Shed => name(link.from, ""),
        _ => name(link.from, &link.from_label),
    };
    let title = format!("{from} -> {}", name(link.to, &link.to_label));
    add(
        out,
        format_args!(
            "<path class=\"arrow{class}\" d=\"{}\"><title>{}</title></path>\n",
            route.path,
            escape(&title)
        ),
    );
    if link.has_queue {
        let (x, y) = (route.end.0 - QUEUE_WIDTH + 4.0, route.end.1 - 5.0);
        add(
            out,
            format_args!(
                "<path class=\"queue\" d=\"M{x:.0} {y:.0}h24v10h-24zm6 0v10m6 -10v10m6 -10v10\"/>\n"
            ),
        );
    }
}

fn labels(out: &mut String, link: &Link, route: &Route) {
    let mut label = |class: &str, anchor: &str, (x, y): (f64, f64), text: &str| {
        if !text.is_empty() {
            add(
                out,
                format_args!(
                    "<text class=\"{class} halo\" x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"{anchor}\">{}</text>\n",
                    escape(text)
                ),
            );
        }
    };
    label(
        "port",
        "start",
        (route.start.0 + 12.0, route.start.1 - 4.0),
        &link.from_label,
    );
    label(
        "port",
        "end",
        (route.end.0 - 8.0, route.end.1 - 8.0),
        &link.to_label,
    );
    label(
        "bound",
        "end",
        (route.end.0 - 8.0, route.end.1 + 14.0),
        &link.label,
    );
}

fn write_card(out: &mut String, card: &Card, rect: &Rect) {
    let Rect {
        x,
        y,
        width,
        height,
    } = *rect;
    out.push_str("<g>");
    if !card.title.is_empty() {
        add(out, format_args!("<title>{}</title>", escape(&card.title)));
    }
    let center = x + width / 2.0;
    if card.kind == CardKind::Port {
        add(
            out,
            format_args!(
                "<text class=\"name\" x=\"{center:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text></g>\n",
                y + height / 2.0 + 5.0,
                escape(&card.name)
            ),
        );
        return;
    }
    // Element-parallel: a stack of boxes. Flow-parallel: lanes at the top. Serial: one box.
    let shadows = match card.parallelism {
        Some(Parallelism::Element | Parallelism::Ordered) => 2,
        _ => 0,
    };
    for shadow in (0..=shadows).rev() {
        let offset = f64::from(shadow) * 4.0;
        add(
            out,
            format_args!(
                "<rect class=\"box\" x=\"{:.0}\" y=\"{:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"5\"/>",
                x + offset,
                y - offset
            ),
        );
    }
    if card.parallelism == Some(Parallelism::Flow) {
        for lane in 0..3 {
            add(
                out,
                format_args!(
                    "<path class=\"queue\" d=\"M{:.0} {:.0}h16v4h-16zm5 0v4m5 -4v4\"/>",
                    x + width - 22.0,
                    y + 5.0 + f64::from(lane) * 5.0
                ),
            );
        }
    }
    write_text(out, card, rect);
    out.push_str("</g>\n");
}

/// Writes the name and the lines in the middle of a box.
fn write_text(out: &mut String, card: &Card, rect: &Rect) {
    let center = rect.x + rect.width / 2.0;
    let text_height = 14.0 + card.lines.len() as f64 * 15.0;
    let mut baseline = rect.y + (rect.height - text_height) / 2.0 + 12.0;
    add(
        out,
        format_args!(
            "<text class=\"name\" x=\"{center:.0}\" y=\"{baseline:.0}\" text-anchor=\"middle\">{}</text>",
            escape(&card.name)
        ),
    );
    for line in &card.lines {
        baseline += 15.0;
        add(
            out,
            format_args!(
                "<text class=\"soft\" x=\"{center:.0}\" y=\"{baseline:.0}\" text-anchor=\"middle\">{}</text>",
                escape(line)
            ),
        );
    }
}

/// Escapes a string for XML. Control characters, which XML forbids, are left out.
///
/// `tussah_plot::Escaped` does the same, but every user of the macros compiles this crate, so it
/// depends on no crate of the workspace.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push('\n'),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => escaped.push(c),
        }
    }
    escaped
}
