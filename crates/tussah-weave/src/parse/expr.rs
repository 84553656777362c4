//! Expressions, by precedence climbing.

use super::{KEYWORDS, Parse, Parser, Reported};
use crate::diagnostic::Diagnostic;
use crate::expr::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::token::{Punct, Span, TokenKind};
use crate::unit::{self, Unit};
use crate::value::Value;

/// Bound, in operators: the maximum number in one expression; more are an error, because walks of
/// its tree recurse.
const OPERATORS_MAX: usize = 100;

/// The precedence of a sum, which excludes comparisons.
const SUM: u8 = 4;

impl Parser<'_> {
    /// Reads an expression.
    pub(super) fn expr(&mut self) -> Parse<Expr> {
        self.operators = 0;
        self.climb(1)
    }

    /// Reads an expression without a comparison at its outside.
    pub(super) fn sum(&mut self) -> Parse<Expr> {
        self.operators = 0;
        self.climb(SUM)
    }

    fn climb(&mut self, precedence_min: u8) -> Parse<Expr> {
        let mut left = self.nested(Self::unary)?;
        while let Some(op) = self
            .binary_op()
            .filter(|op| op.precedence() >= precedence_min)
        {
            self.at += 1;
            self.count_operator()?;
            let right = self.climb(op.precedence() + 1)?;
            let span = left.span.to(right.span);
            let kind = ExprKind::Binary(op, Box::new(left), Box::new(right));
            left = Expr { kind, span };
        }
        Ok(left)
    }

    fn count_operator(&mut self) -> Result<(), Reported> {
        self.operators += 1;
        if self.operators <= OPERATORS_MAX {
            return Ok(());
        }
        let message = format!("this expression has more than {OPERATORS_MAX} operators");
        Err(self.report(Diagnostic::error(self.span(), message)))
    }

    fn binary_op(&self) -> Option<BinaryOp> {
        let Some(TokenKind::Punct(punct)) = self.peek() else {
            return None;
        };
        Some(match punct {
            Punct::OrOr => BinaryOp::Or,
            Punct::AndAnd => BinaryOp::And,
            Punct::Equal => BinaryOp::Equal,
            Punct::NotEqual => BinaryOp::NotEqual,
            Punct::Less => BinaryOp::Less,
            Punct::LessEqual => BinaryOp::LessEqual,
            Punct::Greater => BinaryOp::Greater,
            Punct::GreaterEqual => BinaryOp::GreaterEqual,
            Punct::Plus => BinaryOp::Add,
            Punct::Minus => BinaryOp::Subtract,
            Punct::Star => BinaryOp::Multiply,
            Punct::Slash => BinaryOp::Divide,
            _ => return None,
        })
    }

    fn unary(&mut self) -> Parse<Expr> {
        let start = self.span();
        let op = match self.peek() {
            Some(TokenKind::Punct(Punct::Minus)) => UnaryOp::Negate,
            Some(TokenKind::Punct(Punct::Not)) => UnaryOp::Not,
            _ => return self.operand(),
        };
        self.at += 1;
        self.count_operator()?;
        let operand = self.nested(Self::unary)?;
        let span = start.to(operand.span);
        let kind = ExprKind::Unary(op, Box::new(operand));
        Ok(Expr { kind, span })
    }

    fn operand(&mut self) -> Parse<Expr> {
        let start = self.span();
        let kind = match self.peek() {
            Some(TokenKind::Number(number)) => {
                self.at += 1;
                return self.literal(number, start);
            }
            Some(TokenKind::Text(text)) => ExprKind::Value(Value::Text(text.clone())),
            Some(TokenKind::Name(name)) => match name.as_str() {
                "true" => ExprKind::Value(Value::Flag(true)),
                "false" => ExprKind::Value(Value::Flag(false)),
                name if self.refused.contains(name) => ExprKind::Param(name.to_owned()),
                name if name != "workers" && KEYWORDS.contains(&name) => {
                    return Err(self.expected("a value"));
                }
                unit if unit::find(unit).is_some() => {
                    let error = self.unexpected("a value");
                    return Err(self.report(error.help("a unit follows a number")));
                }
                name => ExprKind::Param(name.to_owned()),
            },
            Some(TokenKind::Punct(Punct::ParenOpen)) => {
                self.at += 1;
                let inner = self.climb(1)?;
                self.expect(Punct::ParenClose)?;
                let span = self.since(start);
                return Ok(Expr { span, ..inner });
            }
            _ => return Err(self.expected("a value")),
        };
        self.at += 1;
        Ok(Expr { kind, span: start })
    }

    /// Reads the unit of a number, and makes its value.
    fn literal(&mut self, number: &str, start: Span) -> Parse<Expr> {
        let mut unit = self.peek_word(0).and_then(unit::find);
        if unit.is_none() && self.is_punct(0, Punct::Percent) {
            unit = Some(Unit::Percent);
        }
        self.at += usize::from(unit.is_some());
        if unit.is_none() {
            self.refuse_address()?;
            self.refuse_unknown_unit()?;
        }
        let per = self.peek_word(1).filter(|_| self.is_punct(0, Punct::Slash));
        let value = match per.and_then(unit::find) {
            Some(per) => {
                self.at += 2;
                unit::rate(number, unit, per)
            }
            None => unit::value(number, unit),
        };
        let span = self.since(start);
        match value {
            Ok(value) => Ok(Expr::value(value, span)),
            Err(error) => {
                self.wrong_number = Some(error);
                Err(self.report(Diagnostic::error(span, error.of(number))))
            }
        }
    }

    /// Reports a name after a number, if no statement begins with it.
    fn refuse_unknown_unit(&mut self) -> Parse<()> {
        let Some(word) = self.peek_word(0) else {
            return Ok(());
        };
        let begins_statement = matches!(
            self.peek_at(1),
            Some(TokenKind::Punct(Punct::Assign | Punct::Arrow | Punct::Dot))
        );
        let is_word = KEYWORDS.contains(&word) || super::test::WORDS.contains(&word);
        if begins_statement || is_word {
            return Ok(());
        }
        let error = Diagnostic::error(self.span(), format!("unknown unit `{word}`"));
        Err(self.report(error.help(unit::help(word))))
    }
}
