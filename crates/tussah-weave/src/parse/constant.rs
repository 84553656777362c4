//! Expressions outside of a file, such as values on a command line.

use super::Parser;
use crate::expr::EvalCause;
use crate::lex::{Lexed, lex};
use crate::token::Span;
use crate::unit::NumberError;
use crate::value::Value;

/// The reason why a text has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConstantError {
    /// The text is not an expression without parameters.
    NotConstant,
    /// A number in the text has no value.
    Number(NumberError),
    /// The value of the expression is too large.
    TooLarge,
}

/// Parses an expression without parameters, and evaluates it.
///
/// # Errors
/// Returns the reason why the text has no value.
pub(crate) fn constant(text: &str) -> Result<Value, ConstantError> {
    let lexed = lex(text);
    let mut parser = Parser::new(&lexed.tokens, Span::default());
    let expr = whole_expression(&mut parser, &lexed);
    let expr = expr.ok_or(match parser.wrong_number {
        // An error about the unit does not follow the text of the value.
        Some(NumberError::RateOfQuantity | NumberError::RateForQuantity) | None => {
            ConstantError::NotConstant
        }
        Some(error) => ConstantError::Number(error),
    })?;
    expr.eval(&|_| None).map_err(|error| match error.cause {
        EvalCause::TooLarge => ConstantError::TooLarge,
        _ => ConstantError::NotConstant,
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
