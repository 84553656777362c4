//! Diagnostics as text: the message with excerpts of the file, as rustc prints it.

use std::fmt::Write as _;

use crate::diagnostic::{Diagnostic, Severity};
use crate::token::Span;

/// Bound, in characters: the maximum length of a line that is shown with an error. A longer line is
/// cut around the place of the error.
const LINE_LEN_MAX: usize = 160;
/// The characters that a cut line shows before the place.
const BEFORE_PLACE: usize = 60;
/// The width of a tab.
const TAB: &str = "    ";

impl Span {
    /// Returns the line and the column at which the span begins, both counted from 1. Each
    /// character counts as one column.
    ///
    /// ```
    /// use tussah_weave::Span;
    ///
    /// assert_eq!(Span::new(4, 5).position("ab\ncd"), (2, 2));
    /// ```
    #[must_use]
    pub fn position(self, text: &str) -> (usize, usize) {
        let place = Place::new(self, text);
        (place.line, place.column)
    }

    /// Returns the position at which the span begins, with the name of the file, such as
    /// `web.weave:7:3`.
    #[must_use]
    pub fn place(self, file: &str, text: &str) -> String {
        let (line, column) = self.position(text);
        format!("{file}:{line}:{column}")
    }
}

impl Diagnostic {
    /// Returns the diagnostic as text, with excerpts from its file.
    ///
    /// ```
    /// let text = "graph A { a -> }";
    /// let error = &tussah_weave::parse(text).diagnostics[0];
    /// assert_eq!(error.render("a.weave", text), "\
    /// error: expected an instance, `in` or `out`, found `}`
    ///  --> a.weave:1:16
    ///   |
    /// 1 | graph A { a -> }
    ///   |                ^
    /// ");
    /// ```
    #[must_use]
    pub fn render(&self, file: &str, text: &str) -> String {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut marks = vec![Mark {
            place: Place::new(self.span, text),
            label: &self.label,
            sign: "^",
        }];
        marks.extend(self.others.iter().map(|other| Mark {
            place: Place::new(other.span, text),
            label: &other.text,
            sign: "-",
        }));
        let (line, column) = (marks[0].place.line, marks[0].place.column);
        // A sort by line alone keeps the first place before the others of its line.
        marks.sort_by_key(|mark| mark.place.line);
        let last = marks.last().map_or(line, |mark| mark.place.line);
        let margin = " ".repeat(last.to_string().len());
        let mut out = format!(
            "{severity}: {}\n{margin}--> {file}:{line}:{column}\n",
            self.message
        );
        writeln!(out, "{margin} |").expect("a string takes all");
        let mut before: Option<usize> = None;
        for mark in &marks {
            let place = &mark.place;
            if before != Some(place.line) {
                if before.is_some_and(|before| before + 1 < place.line) {
                    writeln!(out, "...").expect("a string takes all");
                }
                let number = format!("{:1$}", place.line, margin.len());
                writeln!(out, "{number} | {}", place.excerpt).expect("a string takes all");
                before = Some(place.line);
            }
            let underline = format!(
                "{}{}",
                " ".repeat(place.indent),
                mark.sign.repeat(place.width)
            );
            let line = format!("{margin} | {underline} {}", mark.label);
            writeln!(out, "{}", line.trim_end()).expect("a string takes all");
        }
        if let Some(help) = &self.help {
            writeln!(out, "{margin} |\n{margin} = help: {help}").expect("a string takes all");
        }
        out
    }
}

struct Mark<'d> {
    place: Place,
    label: &'d str,
    sign: &'static str,
}

/// A place in source text, with its line as it is shown.
struct Place {
    line: usize,
    column: usize,
    excerpt: String,
    /// The columns of the excerpt before the place.
    indent: usize,
    width: usize,
}

impl Place {
    fn new(span: Span, text: &str) -> Self {
        let start = boundary(text, span.start as usize);
        let end = boundary(text, span.end as usize).max(start);
        let first = crate::lex::start(text).min(start);
        let line_start = text[..start]
            .rfind('\n')
            .map_or(first, |newline| newline + 1);
        let line_end = text[start..]
            .find('\n')
            .map_or(text.len(), |newline| start + newline);
        let line = text[line_start..line_end].trim_end();
        let before = &text[line_start..start];
        let column = before.chars().count();
        // A place of several lines is underlined to the end of its first.
        let width = text[start..end.min(line_end)].trim_end().chars().count();
        let skipped = match line.chars().count() > LINE_LEN_MAX {
            true => column.saturating_sub(BEFORE_PLACE),
            false => 0,
        };
        let ellipsis = if skipped > 0 { "... " } else { "" };
        let shown: Vec<char> = line.chars().skip(skipped).take(LINE_LEN_MAX).collect();
        let columns = |chars: &[char]| show(chars).chars().count();
        let from = (column - skipped).min(shown.len());
        let to = (from + width).min(shown.len());
        Self {
            line: text[..line_start].matches('\n').count() + 1,
            column: column + 1,
            excerpt: format!("{ellipsis}{}", show(&shown)),
            indent: ellipsis.len() + columns(&shown[..from]),
            width: columns(&shown[from..to]).max(1),
        }
    }
}

/// Replaces tabs by spaces, and characters that would control a terminal.
fn show(chars: &[char]) -> String {
    let mut shown = String::new();
    for &c in chars {
        match c {
            '\t' => shown.push_str(TAB),
            c if c.is_control() => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    shown
}

/// Returns the nearest position at or before an index that is between two characters.
fn boundary(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_several_lines_are_in_their_order() {
        let text = "first\n\tsecond\u{1b}\nthird\n\n\n\n\n\n\nlast";
        let error = Diagnostic::error(Span::new(7, 13), "wrong")
            .label("here")
            .other(Span::new(0, 2), "and here")
            .other(Span::new(10, 99), "")
            .other(Span::new(27, 31), "far away")
            .help("write it\nright");
        let expected = "\
error: wrong
  --> a.weave:2:2
   |
 1 | first
   | -- and here
 2 |     second\u{fffd}
   |     ^^^^^^ here
   |        ----
...
10 | last
   | ---- far away
   |
   = help: write it
right
";
        assert_eq!(error.render("a.weave", text), expected);
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("{}here{}", "a".repeat(500), "b".repeat(500));
        let shown = Diagnostic::error(Span::new(500, 504), "wrong").render("a", &text);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], " --> a:1:501");
        assert_eq!(lines[3].find("here"), lines[4].find("^^^^"));
        assert!(lines[3].len() < 200);
    }

    #[test]
    fn a_place_outside_of_the_text_is_its_end() {
        for text in ["", "\n", "ä", "a\r\n"] {
            for start in 0..5 {
                for end in 0..5 {
                    let _ = Diagnostic::error(Span::new(start, end), "").render("a", text);
                }
            }
        }
    }
}
