//! Joining the tokens of a line, and breaking the line where it becomes too wide.

use super::{Formatter, INDENT};
use crate::token::Punct;

impl Formatter<'_> {
    /// Joins tokens with spaces, and breaks the line where it becomes too wide.
    pub(super) fn join(
        &self,
        range: std::ops::Range<usize>,
        width: usize,
        indent: usize,
    ) -> String {
        let mut out = String::new();
        let mut column = indent;
        // What cannot be broken is put together first.
        let mut piece = String::new();
        let mut is_spaced = false;
        let mut before: Option<usize> = None;
        for index in range {
            let is_trailing_comma = self.is_punct(index, Punct::Comma)
                && !self.is_in_type(index)
                && [Punct::ParenClose, Punct::BraceClose]
                    .into_iter()
                    .any(|close| self.is_punct(index + 1, close));
            if is_trailing_comma {
                continue;
            }
            let has_space = before.is_some() && self.has_space(index);
            if before.is_some_and(|before| self.can_break(before, index)) {
                flush(
                    &mut out,
                    &mut column,
                    &mut piece,
                    is_spaced,
                    (width, indent),
                );
                is_spaced = has_space;
            } else if has_space {
                piece.push(' ');
            }
            piece.push_str(self.source(index));
            before = Some(index);
        }
        flush(
            &mut out,
            &mut column,
            &mut piece,
            is_spaced,
            (width, indent),
        );
        out
    }

    /// Returns whether a line can be broken between two tokens.
    fn can_break(&self, before: usize, index: usize) -> bool {
        self.is_punct(index, Punct::Arrow)
            || (self.is_punct(before, Punct::Comma) && !self.is_in_type(before))
    }
}

/// Adds a piece to a line, or to a new line if it does not fit.
fn flush(
    out: &mut String,
    column: &mut usize,
    piece: &mut String,
    is_spaced: bool,
    (width, indent): (usize, usize),
) {
    let len = piece.chars().count();
    if !out.is_empty() && *column + usize::from(is_spaced) + len > width {
        let indent = indent + 2 * INDENT;
        out.push('\n');
        out.push_str(&" ".repeat(indent));
        *column = indent;
    } else if is_spaced {
        out.push(' ');
        *column += 1;
    }
    out.push_str(piece);
    *column += len;
    piece.clear();
}
