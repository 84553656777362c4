//! Tests of whole files.

mod draw;
mod ebnf;
mod format;
mod good;
mod modules;
mod random;
mod reference;
mod wrong;
