//! Expressions: constants, parameters and arithmetic with units.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::token::Span;
use crate::value::{Kind, Value};

mod arithmetic;

/// An expression with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The kind.
    pub kind: ExprKind,
    /// The position.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A literal.
    Value(Value),
    /// The name of a parameter, or `workers` for the runtime's number of workers.
    Param(String),
    /// A prefix operator and its operand.
    Unary(UnaryOp, Box<Expr>),
    /// A binary operator and its two operands.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Negate,
    /// `!`
    Not,
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`; the quotient of two counts is rounded down.
    Divide,
}

impl BinaryOp {
    /// Returns the spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Or => "||",
            Self::And => "&&",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
        }
    }

    /// Returns how strongly the operator binds.
    pub(crate) fn precedence(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide => 5,
            _ => 3,
        }
    }
}

/// The error for an expression that cannot be evaluated, or whose kind cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalError {
    /// The part of the expression that causes the error.
    pub span: Span,
    /// The cause.
    pub cause: EvalCause,
}

/// The causes of an [`EvalError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalCause {
    /// No parameter has this name.
    Unknown(String),
    /// The operator does not apply to operands of these kinds.
    Operands(&'static str, Vec<Kind>),
    /// The divisor is zero.
    DivisionByZero,
    /// The result is negative, but its kind has no negative values.
    Negative,
    /// The result is too large.
    TooLarge,
}

impl fmt::Display for EvalError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            EvalCause::Unknown(name) => write!(out, "unknown parameter `{name}`"),
            EvalCause::Operands(op, kinds) => match kinds.as_slice() {
                [left, right] => {
                    write!(out, "`{op}` has no meaning between a {left} and a {right}")
                }
                kinds => {
                    let kind = kinds.first().map(ToString::to_string).unwrap_or_default();
                    write!(out, "`{op}` has no meaning before a {kind}")
                }
            },
            EvalCause::DivisionByZero => out.write_str("division by zero"),
            EvalCause::Negative => out.write_str("the result is negative"),
            EvalCause::TooLarge => out.write_str("the result is too large"),
        }
    }
}

impl Error for EvalError {}

/// The length of a text, in bytes, that counts as one more operand.
pub(crate) const LONG: usize = 64;

impl Expr {
    /// Creates a literal.
    #[must_use]
    pub fn value(value: Value, span: Span) -> Self {
        let kind = ExprKind::Value(value);
        Self { kind, span }
    }

    pub(crate) fn not(self) -> Self {
        let span = self.span;
        let kind = ExprKind::Unary(UnaryOp::Not, Box::new(self));
        Self { kind, span }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        let span = self.span;
        let kind = ExprKind::Binary(BinaryOp::And, Box::new(self), Box::new(other));
        Self { kind, span }
    }

    /// Returns the parts of a condition that all have to hold.
    pub(crate) fn conjuncts(&self) -> Vec<&Self> {
        let (mut open, mut parts) = (vec![self], Vec::new());
        while let Some(next) = open.pop() {
            match &next.kind {
                ExprKind::Binary(BinaryOp::And, left, right) => open.extend([&**left, &**right]),
                _ => parts.push(next),
            }
        }
        parts
    }

    /// Evaluates the expression. `lookup` returns the value of a parameter or of `workers`.
    ///
    /// # Errors
    ///
    /// Returns an error if a parameter is unknown, an operator does not apply to its operands, or
    /// the result is out of range.
    pub fn eval(&self, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<Value, EvalError> {
        let error = |cause| EvalError {
            span: self.span,
            cause,
        };
        match &self.kind {
            ExprKind::Value(value) => Ok(value.clone()),
            ExprKind::Param(name) => {
                lookup(name).ok_or_else(|| error(EvalCause::Unknown(name.clone())))
            }
            ExprKind::Unary(op, operand) => {
                arithmetic::unary(*op, operand.eval(lookup)?).map_err(error)
            }
            ExprKind::Binary(op, left, right) => {
                let left = left.eval(lookup)?;
                // A condition can guard what follows it.
                match (op, &left) {
                    (BinaryOp::And, Value::Flag(false)) | (BinaryOp::Or, Value::Flag(true)) => {
                        return Ok(left);
                    }
                    _ => {}
                }
                arithmetic::binary(*op, left, right.eval(lookup)?).map_err(error)
            }
        }
    }

    /// Returns the kind of the expression's value. `lookup` returns the kind of a parameter or of
    /// `workers`.
    ///
    /// # Errors
    ///
    /// Returns an error if a parameter is unknown, or an operator does not apply to its operands.
    pub fn kind(&self, lookup: &dyn Fn(&str) -> Option<Kind>) -> Result<Kind, EvalError> {
        let error = |cause| EvalError {
            span: self.span,
            cause,
        };
        match &self.kind {
            ExprKind::Value(value) => Ok(value.kind()),
            ExprKind::Param(name) => {
                lookup(name).ok_or_else(|| error(EvalCause::Unknown(name.clone())))
            }
            ExprKind::Unary(op, operand) => {
                let operand = operand.kind(lookup)?;
                arithmetic::unary_kind(*op, &operand)
                    .ok_or_else(|| error(EvalCause::Operands(op.as_str(), vec![operand])))
            }
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (left.kind(lookup)?, right.kind(lookup)?);
                arithmetic::binary_kind(*op, &left, &right)
                    .ok_or_else(|| error(EvalCause::Operands(op.as_str(), vec![left, right])))
            }
        }
    }

    /// Calls a function for each parameter that the expression names.
    pub(crate) fn each_param(&self, f: &mut dyn FnMut(&str)) {
        match &self.kind {
            ExprKind::Value(_) => {}
            ExprKind::Param(name) => f(name),
            ExprKind::Unary(_, operand) => operand.each_param(f),
            ExprKind::Binary(_, left, right) => {
                left.each_param(f);
                right.each_param(f);
            }
        }
    }

    /// Replaces parameters by expressions.
    pub(crate) fn substitute(&self, find: &dyn Fn(&str) -> Option<Expr>) -> Expr {
        let kind = match &self.kind {
            ExprKind::Value(_) => return self.clone(),
            ExprKind::Param(name) => return find(name).unwrap_or_else(|| self.clone()),
            ExprKind::Unary(op, operand) => {
                ExprKind::Unary(*op, Box::new(operand.substitute(find)))
            }
            ExprKind::Binary(op, left, right) => ExprKind::Binary(
                *op,
                Box::new(left.substitute(find)),
                Box::new(right.substitute(find)),
            ),
        };
        let span = self.span;
        Expr { kind, span }
    }

    /// Returns the number of operators and operands. A long text counts as several.
    pub(crate) fn size(&self) -> usize {
        match &self.kind {
            ExprKind::Value(value) => 1 + value.text().len() / LONG,
            ExprKind::Param(name) => 1 + name.len() / LONG,
            ExprKind::Unary(_, operand) => 1 + operand.size(),
            ExprKind::Binary(_, left, right) => 1 + left.size() + right.size(),
        }
    }

    fn precedence(&self) -> u8 {
        match &self.kind {
            ExprKind::Binary(op, ..) => op.precedence(),
            ExprKind::Unary(..) => 6,
            _ => 7,
        }
    }
}

impl UnaryOp {
    /// Returns the spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Negate => "-",
            Self::Not => "!",
        }
    }
}

/// Writes the expression as Weave spells it.
impl fmt::Display for Expr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operand = |out: &mut fmt::Formatter<'_>, expr: &Expr, precedence_min: u8| match expr
            .precedence()
            < precedence_min
        {
            true => write!(out, "({expr})"),
            false => write!(out, "{expr}"),
        };
        match &self.kind {
            ExprKind::Value(value) => write!(out, "{value}"),
            ExprKind::Param(name) => out.write_str(name),
            ExprKind::Unary(op, to) => {
                out.write_str(op.as_str())?;
                operand(out, to, 6)
            }
            ExprKind::Binary(op, left, right) => {
                // Comparisons do not chain.
                let is_comparison = op.precedence() == BinaryOp::Equal.precedence();
                operand(out, left, op.precedence() + u8::from(is_comparison))?;
                write!(out, " {} ", op.as_str())?;
                operand(out, right, op.precedence() + 1)
            }
        }
    }
}

/// Returns a duration of seconds, if it is in range.
fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}
