//! Diagnostics: an error or a warning with its positions.

use crate::token::Span;

/// Bound, in characters: a longer name is cut in messages.
const NAME_MAX: usize = 60;

/// Bound, in bytes: a longer message is cut.
const MESSAGE_MAX: usize = 1000;

/// An error or a warning about source text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The message, as one line without a position.
    pub message: String,
    /// The part of the text to which the message refers.
    pub span: Span,
    /// A short label for the text at `span`; empty if the message is sufficient.
    pub label: String,
    /// Other places in the text that help to explain the diagnostic.
    pub others: Vec<Label>,
    /// Advice to the user, if there is any.
    pub help: Option<String>,
}

/// A place in the text that helps to explain a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Label {
    /// The place.
    pub span: Span,
    /// A short label for the place.
    pub text: String,
}

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "lowercase")
)]
pub enum Severity {
    /// The graph works, but part of it has no effect.
    Warning,
    /// The graph cannot be built.
    Error,
}

impl Diagnostic {
    /// Creates an error.
    #[must_use]
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: cut(message.into()),
            span,
            label: String::new(),
            others: Vec::new(),
            help: None,
        }
    }

    /// Creates a warning.
    #[must_use]
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(span, message)
        }
    }

    /// Returns whether the diagnostic is an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Sets the label of the faulty part.
    #[must_use]
    pub(crate) fn label(mut self, text: impl Into<String>) -> Self {
        self.label = cut(text.into());
        self
    }

    /// Adds a place that helps to explain the diagnostic.
    #[must_use]
    pub(crate) fn other(mut self, span: Span, text: impl Into<String>) -> Self {
        let text = cut(text.into());
        self.others.push(Label { span, text });
        self
    }

    /// Sets the help.
    #[must_use]
    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(cut(text.into()));
        self
    }
}

/// Cuts a long message, and the long names in it.
fn cut(text: String) -> String {
    if text.len() <= NAME_MAX {
        return text;
    }
    let (mut cut, mut len) = (String::new(), 0_usize);
    for character in text.chars() {
        if cut.len() >= MESSAGE_MAX {
            cut.push('…');
            break;
        }
        let is_in_name = character.is_alphanumeric() || character == '_';
        len = if is_in_name { len + 1 } else { 0 };
        match len.saturating_sub(NAME_MAX) {
            0 => cut.push(character),
            1 => cut.push('…'),
            _ => {}
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut() {
        let check = |len, expected: &str| {
            let text = format!("no `{}` in `a.b`", "n".repeat(len));
            assert_eq!(cut(text), expected);
        };
        let shown = "n".repeat(NAME_MAX);
        check(NAME_MAX, &format!("no `{shown}` in `a.b`"));
        check(NAME_MAX + 1, &format!("no `{shown}…` in `a.b`"));
        check(900_000, &format!("no `{shown}…` in `a.b`"));
        let long = cut("a ".repeat(MESSAGE_MAX));
        assert_eq!(long, "a ".repeat(MESSAGE_MAX / 2) + "…");
    }
}
