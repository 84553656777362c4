//! The arithmetic of values: which operators suit which kinds, and what they yield.

use std::time::Duration;

use super::{BinaryOp, EvalCause, UnaryOp, seconds};
use crate::unit;
use crate::value::{Kind, Value};

/// Returns the kind of `op operand`.
pub(super) fn unary_kind(op: UnaryOp, operand: &Kind) -> Option<Kind> {
    match (op, operand) {
        (UnaryOp::Not, Kind::Flag) => Some(Kind::Flag),
        (UnaryOp::Negate, Kind::Count | Kind::Number) => Some(Kind::Number),
        _ => None,
    }
}

/// Evaluates `op operand`.
pub(super) fn unary(op: UnaryOp, operand: Value) -> Result<Value, EvalCause> {
    match (op, operand) {
        (UnaryOp::Not, Value::Flag(flag)) => Ok(Value::Flag(!flag)),
        (UnaryOp::Negate, Value::Count(count)) => Ok(Value::Number(-(count as f64))),
        (UnaryOp::Negate, Value::Number(number)) => Ok(Value::Number(-number)),
        (op, operand) => Err(EvalCause::Operands(op.as_str(), vec![operand.kind()])),
    }
}

/// Returns the kind of `left op right`.
pub(super) fn binary_kind(op: BinaryOp, left: &Kind, right: &Kind) -> Option<Kind> {
    use Kind::{Address, Count, Duration, Flag, Number, Path, Rate, Size, Text};
    let is_real = |kind: &Kind| matches!(kind, Count | Number);
    let is_text = |kind: &Kind| matches!(kind, Text | Path | Address);
    let is_quantity = |kind: &Kind| matches!(kind, Count | Number | Size | Duration | Rate);
    let is_comparable = (left == right && is_quantity(left)) || (is_real(left) && is_real(right));
    match op {
        BinaryOp::Or | BinaryOp::And => (*left == Flag && *right == Flag).then_some(Flag),
        BinaryOp::Equal | BinaryOp::NotEqual => {
            let is_same = (*left == Flag && *right == Flag) || (is_text(left) && is_text(right));
            (is_comparable || is_same).then_some(Flag)
        }
        BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual => {
            is_comparable.then_some(Flag)
        }
        BinaryOp::Add | BinaryOp::Subtract if is_comparable => {
            let is_count = *left == Count && *right == Count;
            let kind = if is_real(left) && !is_count {
                &Number
            } else {
                left
            };
            Some(kind.clone())
        }
        BinaryOp::Add | BinaryOp::Subtract => None,
        BinaryOp::Multiply => match (left, right) {
            (Count, Count) | (Rate, Duration) | (Duration, Rate) => Some(Count),
            (Count | Number, Count | Number) => Some(Number),
            (Size | Duration | Rate, Count | Number) => Some(left.clone()),
            (Count | Number, Size | Duration | Rate) => Some(right.clone()),
            _ => None,
        },
        BinaryOp::Divide => match (left, right) {
            (Count, Count) => Some(Count),
            (Count | Number, Count | Number) => Some(Number),
            (Size, Size) | (Duration, Duration) | (Rate, Rate) => Some(Number),
            (Size | Duration | Rate, Count | Number) => Some(left.clone()),
            (Count | Number, Duration) => Some(Rate),
            _ => None,
        },
    }
}

/// Evaluates `left op right`.
pub(super) fn binary(op: BinaryOp, left: Value, right: Value) -> Result<Value, EvalCause> {
    let (left_kind, right_kind) = (left.kind(), right.kind());
    let kind = binary_kind(op, &left_kind, &right_kind)
        .ok_or_else(|| EvalCause::Operands(op.as_str(), vec![left_kind, right_kind]))?;
    if kind == Kind::Flag {
        return Ok(Value::Flag(compare(op, &left, &right)));
    }
    if let (Some(left), Some(right)) = (whole(&left), whole(&right)) {
        if op == BinaryOp::Divide && right == 0 {
            return Err(EvalCause::DivisionByZero);
        }
        let exact = match (op, &kind) {
            // A quotient of two sizes or durations is a number.
            (BinaryOp::Divide, Kind::Number | Kind::Rate) => None,
            (BinaryOp::Add, _) => Some(left.checked_add(right)),
            (BinaryOp::Subtract, _) if left < right => return Err(EvalCause::Negative),
            (BinaryOp::Subtract, _) => Some(left.checked_sub(right)),
            (BinaryOp::Multiply, _) => Some(left.checked_mul(right)),
            _ => Some(left.checked_div(right)),
        };
        if let Some(exact) = exact {
            return exact
                .and_then(|exact| of_whole(&kind, exact))
                .ok_or(EvalCause::TooLarge);
        }
    }
    let (left, right) = (real(&left), real(&right));
    if op == BinaryOp::Divide && right == 0.0 {
        return Err(EvalCause::DivisionByZero);
    }
    let result = match op {
        BinaryOp::Add => left + right,
        BinaryOp::Subtract => left - right,
        BinaryOp::Multiply => left * right,
        _ => left / right,
    };
    if result < 0.0 && kind != Kind::Number {
        return Err(EvalCause::Negative);
    }
    of_real(&kind, result).ok_or(EvalCause::TooLarge)
}

fn compare(op: BinaryOp, left: &Value, right: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::Text(text) | Value::Path(text) | Value::Address(text) => Some(text.clone()),
        _ => None,
    };
    let order = match (left, right) {
        (Value::Flag(left), Value::Flag(right)) => match op {
            BinaryOp::And => return *left && *right,
            BinaryOp::Or => return *left || *right,
            _ => Some(left.cmp(right)),
        },
        _ => match (whole(left), whole(right)) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ if text(left).is_some() => Some(text(left).cmp(&text(right))),
            _ => real(left).partial_cmp(&real(right)),
        },
    };
    order.is_some_and(|order| match op {
        BinaryOp::Equal => order.is_eq(),
        BinaryOp::NotEqual => order.is_ne(),
        BinaryOp::Less => order.is_lt(),
        BinaryOp::LessEqual => order.is_le(),
        BinaryOp::Greater => order.is_gt(),
        _ => order.is_ge(),
    })
}

/// Returns a count, a number of bytes or of nanoseconds.
fn whole(value: &Value) -> Option<u128> {
    match value {
        Value::Count(whole) | Value::Size(whole) => Some(u128::from(*whole)),
        Value::Duration(time) => Some(time.as_nanos()),
        _ => None,
    }
}

fn of_whole(kind: &Kind, whole: u128) -> Option<Value> {
    let whole = u64::try_from(whole).ok()?;
    match kind {
        Kind::Count => Some(Value::Count(whole)),
        Kind::Size => Some(Value::Size(whole)),
        Kind::Duration => duration(Duration::from_nanos(whole)),
        _ => None,
    }
}

fn duration(time: Duration) -> Option<Value> {
    (time <= unit::DURATION_MAX).then_some(Value::Duration(time))
}

/// Returns the value as a number; a duration in seconds.
fn real(value: &Value) -> f64 {
    match value {
        Value::Count(whole) | Value::Size(whole) => *whole as f64,
        Value::Number(real) | Value::Rate(real) => *real,
        Value::Duration(time) => time.as_secs_f64(),
        _ => f64::NAN,
    }
}

fn of_real(kind: &Kind, real: f64) -> Option<Value> {
    if !real.is_finite() {
        return None;
    }
    let floor = || (real < u64::MAX as f64).then_some(real as u64);
    match kind {
        Kind::Number => Some(Value::Number(real)),
        Kind::Rate => Some(Value::Rate(real)),
        Kind::Count => floor().map(Value::Count),
        Kind::Size => floor().map(Value::Size),
        Kind::Duration => seconds(real).and_then(duration),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn arithmetic_keeps_units() {
        let check = |text: &str, expected: &str| {
            let expr = parse::expression(text).expect(text);
            let workers = |name: &str| (name == "workers").then_some(Value::Count(4));
            let shown = match expr.eval(&workers) {
                Ok(value) => value.to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(shown, expected, "{text}");
            let kinds = |name: &str| (name == "workers").then_some(Kind::Count);
            match (expr.kind(&kinds), expr.eval(&workers)) {
                (Ok(kind), Ok(value)) => assert_eq!(kind, value.kind(), "{text}"),
                (Err(_), Ok(value)) => panic!("{text} is {value}, but has no kind"),
                _ => {}
            }
        };
        check("1 + 2 * 3", "7");
        check("(1 + 2) * 3", "9");
        check("7 / 2", "3");
        check("7 / 2.0", "3.5");
        check("2 - 3", "the result is negative");
        check("1 B * (0 - 0.5)", "the result is negative");
        check("1 B * -0.5", "the result is negative");
        check("-3", "-3");
        check("200 MiB / workers", "50 MiB");
        check("200 MiB * 50 %", "100 MiB");
        check("1 s + 500 ms", "1500 ms");
        check("1 s / 250 ms", "4");
        check("100 / 2 s", "50/s");
        check("10 k/s * 1 s", "10000");
        check(
            "1 s + 1 B",
            "`+` has no meaning between a duration and a size",
        );
        check("-1 s", "`-` has no meaning before a duration");
        check("1 / 0", "division by zero");
        check("1.0 / 0", "division by zero");
        check("1 s * 99999999999", "the result is too large");
        check("1 h * 5 M", "5000000 h");
        check("5000000 h + 1 ns", "the result is too large");
        check("5000000 h * 1.0", "5000000 h");
        check("5000000 h * 1.001", "the result is too large");
        check("1 < 2 && !(3 s > 2 s)", "false");
        check("\"a\" == \"a\"", "true");
        check("true == false || 1 == 1.0", "true");
        check("false && 1 / 0 == 0", "false");
        check("other", "unknown parameter `other`");
        check("1 < 2 < 3", "`<` has no meaning between a flag and a count");
    }
}
