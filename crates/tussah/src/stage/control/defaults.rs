//! The complete set of a stage's controllers: those added by the user, and defaults for the rest.

use std::time::Duration;

use super::{Controller, Owns, auto_besides};
use crate::stage::error::BuildError;

/// Returns the stage's controllers: the given ones, and the defaults for the other settings.
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
    let taken = owned(&given);
    let mut all = given;
    if !manual {
        all.extend(auto_besides(target, taken));
    }
    Ok(all)
}

/// Returns the settings that these controllers own.
pub(crate) fn owned(controllers: &[Box<dyn Controller>]) -> Owns {
    let owns = controllers.iter().map(|one| one.owns());
    owns.fold(Owns::NOTHING, |all, owns| all | owns)
}

/// Checks whether a controller may be added to the other controllers of a stage with these
/// settings.
///
/// # Errors
/// Returns an error if the controller owns a setting that the stage does not have, or that another
/// controller owns.
pub(crate) fn one_owner(
    stage: &str,
    has: Owns,
    mut others: impl Iterator<Item = (&'static str, Owns)>,
    one: &dyn Controller,
) -> Result<(), BuildError> {
    let owns = one.owns();
    if !has.has(owns) {
        return Err(BuildError::NoSuchSetting {
            stage: stage.to_owned(),
            controller: one.name(),
            settings: owns.without(has),
            has,
        });
    }
    let both = |(_, other): &(&str, Owns)| other.both(owns) != Owns::NOTHING;
    match others.find(both) {
        None => Ok(()),
        Some((other, settings)) => Err(BuildError::TwoOwners {
            stage: stage.to_owned(),
            controllers: [other, one.name()],
            settings: settings.both(owns),
        }),
    }
}
