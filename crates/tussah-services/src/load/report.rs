//! The results of a run: tallies, summary, table, picture, requirements and comparison.

pub(super) mod compare;
pub(super) mod expect;
pub(super) mod fairness;
pub(super) mod plot;
pub(super) mod summarize;
pub(super) mod summary;
pub(super) mod table;
pub(super) mod tally;
pub(super) mod warnings;
