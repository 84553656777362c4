//! The spaces between tokens.

use super::Formatter;
use crate::parse::KEYWORDS;
use crate::token::{Punct, TokenKind};
use crate::unit::{self, Unit};

impl Formatter<'_> {
    /// Returns whether a space stands before a token that is not the first of its line.
    pub(super) fn has_space(&self, index: usize) -> bool {
        let before = index - 1;
        if self.is_in_type(index) && self.is_in_type(before) {
            return self.has_space_in_type(index);
        }
        let (Some(left), Some(right)) = (self.kind(before), self.kind(index)) else {
            return false;
        };
        match (left, right) {
            (_, TokenKind::Punct(right)) if self.is_tight(index, *right) => false,
            (TokenKind::Punct(left), _) => match left {
                Punct::ParenOpen | Punct::Dot | Punct::PathSep | Punct::Not => false,
                Punct::BraceOpen => !self.is_import_list(before),
                Punct::Minus => !self.is_unary(before),
                Punct::Slash => !self.is_rate(before),
                _ => true,
            },
            _ => true,
        }
    }

    /// Returns whether no space stands before a punctuation.
    fn is_tight(&self, index: usize, punct: Punct) -> bool {
        match punct {
            Punct::Comma | Punct::ParenClose | Punct::Dot | Punct::Colon => true,
            // A type can begin with `::`.
            Punct::PathSep => !self.is_punct(index - 1, Punct::Colon),
            Punct::Semicolon | Punct::BracketClose => true,
            Punct::ParenOpen => self.is_call(index),
            Punct::BraceOpen => self.is_punct(index - 1, Punct::PathSep),
            Punct::BraceClose => self.is_import_list_end(index),
            Punct::Slash => self.is_rate(index),
            // The `<` and `>` of types.
            Punct::Less => self.is_in_type(index),
            Punct::Greater => self.is_in_type(index),
            _ => false,
        }
    }

    fn has_space_in_type(&self, index: usize) -> bool {
        let is_word = |index: usize| {
            matches!(
                self.kind(index),
                Some(TokenKind::Name(_) | TokenKind::Lifetime(_) | TokenKind::Number(_))
            )
        };
        let is_after_separator =
            self.is_punct(index - 1, Punct::Comma) || self.is_punct(index - 1, Punct::Semicolon);
        let begins = [Punct::And, Punct::ParenOpen, Punct::BracketOpen];
        let is_type_after_word =
            is_word(index - 1) && begins.into_iter().any(|punct| self.is_punct(index, punct));
        let is_end = [Punct::Greater, Punct::ParenClose]
            .into_iter()
            .any(|punct| self.is_punct(index, punct));
        (is_after_separator && !is_end)
            || (is_word(index - 1) && is_word(index))
            || is_type_after_word
    }

    /// Returns whether a parenthesis begins arguments or parameters.
    fn is_call(&self, index: usize) -> bool {
        match self.kind(index - 1) {
            Some(TokenKind::Name(name)) => {
                let is_keyword = KEYWORDS.contains(&name.as_str())
                    || matches!(name.as_str(), "within" | "advance");
                !is_keyword
                    && !matches!(self.kind(index.wrapping_sub(2)), Some(TokenKind::Number(_)))
            }
            Some(TokenKind::Punct(Punct::Greater)) => self.is_in_type(index - 1),
            Some(TokenKind::Punct(Punct::ParenOpen | Punct::Not)) => true,
            Some(TokenKind::Punct(Punct::Minus)) => self.is_unary(index - 1),
            _ => false,
        }
    }

    /// Returns whether a minus is a sign: no operand stands before it.
    fn is_unary(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(1) else {
            return true;
        };
        match self.kind(before) {
            Some(TokenKind::Name(name)) => {
                let is_value = matches!(name.as_str(), "workers" | "true" | "false");
                KEYWORDS.contains(&name.as_str()) && !is_value
            }
            Some(TokenKind::Number(_) | TokenKind::Text(_)) => false,
            Some(TokenKind::Punct(punct)) => !matches!(punct, Punct::ParenClose | Punct::Percent),
            _ => true,
        }
    }

    /// Returns whether a slash belongs to a rate, such as `10 k/s`.
    fn is_rate(&self, index: usize) -> bool {
        let unit = |index: usize| match self.kind(index) {
            Some(TokenKind::Name(name)) => unit::find(name),
            _ => None,
        };
        let is_time = matches!(unit(index + 1), Some(Unit::Nanoseconds(_)));
        is_time && self.is_punct(index, Punct::Slash)
    }

    /// Returns whether a brace opens a list of imports.
    fn is_import_list(&self, index: usize) -> bool {
        index > 0 && self.is_punct(index - 1, Punct::PathSep)
    }

    /// Returns whether a brace closes a list of imports.
    fn is_import_list_end(&self, index: usize) -> bool {
        let mut depth = 0_usize;
        for at in (0..index).rev() {
            if self.is_punct(at, Punct::BraceClose) {
                depth += 1;
            } else if self.is_punct(at, Punct::BraceOpen) {
                if depth == 0 {
                    return self.is_import_list(at);
                }
                depth -= 1;
            }
        }
        false
    }
}
