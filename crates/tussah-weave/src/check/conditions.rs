//! The cases of a graph whose limits have conditions.

use std::collections::{BTreeMap, BTreeSet};

use crate::expr::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::graph::Limit;
use crate::value::Value;

/// The maximum number of parts of conditions whose values are tried in all combinations. With more
/// parts, the checker assumes that all limits apply; the start of the graph still finds the cycles.
const PARTS_MAX: usize = 8;

/// A case: the values of the parts of conditions. A part is a parameter or a comparison.
pub(super) struct Case {
    parts: BTreeMap<String, bool>,
    /// True if there are too many parts to try all values, so the case leaves them open.
    is_open: bool,
}

impl Case {
    /// Returns whether the condition of a limit holds.
    pub(super) fn holds(&self, condition: &Expr) -> bool {
        self.value(condition).unwrap_or(self.is_open)
    }

    /// Returns whether a condition holds for some values of the parts that the case leaves open.
    pub(super) fn may_hold(&self, condition: &Expr) -> bool {
        self.value(condition) != Some(false)
    }

    fn value(&self, condition: &Expr) -> Option<bool> {
        match &condition.kind {
            ExprKind::Value(Value::Flag(flag)) => Some(*flag),
            ExprKind::Unary(UnaryOp::Not, operand) => self.value(operand).map(|it| !it),
            ExprKind::Binary(BinaryOp::And, left, right) => {
                match (self.value(left), self.value(right)) {
                    (Some(true), Some(true)) => Some(true),
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    _ => None,
                }
            }
            ExprKind::Binary(BinaryOp::Or, left, right) => {
                match (self.value(left), self.value(right)) {
                    (Some(false), Some(false)) => Some(false),
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    _ => None,
                }
            }
            _ => self.parts.get(&condition.to_string()).copied(),
        }
    }
}

/// Returns all cases of the conditions of these limits.
pub(super) fn cases(limits: &[Limit]) -> Vec<Case> {
    let mut parts = BTreeSet::new();
    for condition in limits.iter().filter_map(|limit| limit.condition.as_ref()) {
        add_parts(condition, &mut parts);
    }
    let is_open = parts.len() > PARTS_MAX;
    if is_open {
        parts.clear();
    }
    let case = |number: usize| Case {
        parts: (parts.iter().enumerate())
            .map(|(at, part)| (part.clone(), number >> at & 1 == 1))
            .collect(),
        is_open,
    };
    (0..1 << parts.len()).map(case).collect()
}

/// Adds the parts of a condition.
fn add_parts(condition: &Expr, parts: &mut BTreeSet<String>) {
    match &condition.kind {
        ExprKind::Value(Value::Flag(_)) => {}
        ExprKind::Unary(UnaryOp::Not, operand) => add_parts(operand, parts),
        ExprKind::Binary(BinaryOp::And | BinaryOp::Or, left, right) => {
            add_parts(left, parts);
            add_parts(right, parts);
        }
        _ => drop(parts.insert(condition.to_string())),
    }
}
