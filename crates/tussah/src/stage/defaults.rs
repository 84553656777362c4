//! The controllers of a stage: those that it is given, and the default's for what these leave.

use std::time::Duration;

use super::account::one_owner;
use super::control::{self, Controller, Owns};
use super::error::BuildError;

/// The stage's controllers: those that were given, and for the rest the default's.
pub(crate) fn controllers(
    stage: &str,
    given: Vec<Box<dyn Controller>>,
    target: Option<Duration>,
    manual: bool,
) -> Result<Vec<Box<dyn Controller>>, BuildError> {
    for (at, one) in given.iter().enumerate() {
        let others = given[..at].iter().map(|other| (other.name(), other.owns()));
        one_owner(stage, Owns::STAGE, others, &**one)?;
    }
    let taken = given.iter().map(|one| one.owns());
    let taken = taken.fold(Owns::NOTHING, |all, owns| all | owns);
    let mut all = given;
    if !manual {
        let defaults = control::auto(target).into_iter();
        all.extend(defaults.filter(|one| one.owns().without(taken) != Owns::NOTHING));
    }
    Ok(all)
}
