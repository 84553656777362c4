//! Diagnostics: an error or a warning with its positions.

use crate::token::Span;

/// An error or a warning about a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The error in one line, without a position.
    pub message: String,
    /// The faulty part of the text.
    pub span: Span,
    /// A short label for this part; empty if the message is sufficient.
    pub label: String,
    /// Other places in the text that help to explain the fault.
    pub others: Vec<Label>,
    /// The advice to the user.
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
            message: message.into(),
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

    /// Returns whether this is an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Sets the label of the faulty part.
    #[must_use]
    pub(crate) fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// Adds a place that helps to explain the diagnostic.
    #[must_use]
    pub(crate) fn other(mut self, span: Span, text: impl Into<String>) -> Self {
        let text = text.into();
        self.others.push(Label { span, text });
        self
    }

    /// Sets the help.
    #[must_use]
    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}
