//! Measures of strings and boxes, and the path of an arrow around them.

use super::{Card, CardKind, Link};

/// The width of a queue and its arrowhead.
pub(super) const QUEUE_WIDTH: f64 = 40.0;

/// Returns the width of a string, on average over the letters of the fonts of browsers.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.6
}

/// Returns the width of the labels and the queue at the end of a link.
pub(super) fn end_width(link: &Link) -> f64 {
    text_width(&link.to_label, 11.0)
        .max(text_width(&link.label, 10.0))
        .max(QUEUE_WIDTH)
        + 12.0
}

/// Returns the path of an arrow that goes around below all boxes, with rounded corners.
pub(super) fn around(
    start: (f64, f64),
    end: (f64, f64),
    (down, lane, up): (f64, f64, f64),
) -> String {
    const R: f64 = 6.0;
    format!(
        "M{:.0} {:.0} H{:.0} Q{down:.0} {:.0} {down:.0} {:.0} V{:.0} Q{down:.0} {lane:.0} {:.0} {lane:.0} \
         H{:.0} Q{up:.0} {lane:.0} {up:.0} {:.0} V{:.0} Q{up:.0} {:.0} {:.0} {:.0} H{:.0}",
        start.0,
        start.1,
        down - R,
        start.1,
        start.1 + R,
        lane - R,
        down - R,
        up + R,
        lane - R,
        end.1 + R,
        end.1,
        up + R,
        end.1,
        end.0,
    )
}

/// Returns the size that the text of a box needs.
pub(super) fn size(card: &Card) -> (f64, f64) {
    let lines = card.lines.iter().map(|line| text_width(line, 11.0));
    let width = lines.fold(text_width(&card.name, 14.0), f64::max);
    match card.kind {
        CardKind::Module => (
            width.max(70.0) + 24.0,
            34.0 + card.lines.len() as f64 * 15.0,
        ),
        CardKind::Port => (width + 12.0, 24.0),
    }
}
