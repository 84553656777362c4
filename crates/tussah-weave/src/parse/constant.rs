//! Expressions outside of a file, such as values on a command line.

use super::Parser;
use crate::lex::{Lexed, lex};
use crate::token::Span;
use crate::value::Value;

/// Parses an expression without parameters, and evaluates it.
///
/// # Errors
/// Returns what is wrong with the value, such as `is too large`. The error is empty if the text is
/// not an expression.
pub(crate) fn constant(text: &str) -> Result<Value, String> {
    let lexed = lex(text);
    let mut parser = Parser::new(&lexed.tokens, Span::default());
    let expr = whole_expression(&mut parser, &lexed);
    let expr = expr.ok_or_else(|| parser.wrong_value.take().unwrap_or_default())?;
    expr.eval(&|_| None)
        .map_err(|error| match error.to_string() {
            error if error.ends_with("is too large") => "is too large".to_owned(),
            _ => String::new(),
        })
}

/// Parses an expression.
#[cfg(test)]
pub(crate) fn expression(text: &str) -> Option<crate::Expr> {
    let lexed = lex(text);
    whole_expression(&mut Parser::new(&lexed.tokens, Span::default()), &lexed)
}

fn whole_expression(parser: &mut Parser<'_>, lexed: &Lexed) -> Option<crate::Expr> {
    let expr = parser.expr().ok()?;
    let is_whole = parser.peek().is_none();
    let is_valid = lexed.diagnostics.is_empty() && parser.diagnostics.is_empty();
    (is_whole && is_valid).then_some(expr)
}
