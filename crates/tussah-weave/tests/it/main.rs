//! Tests of whole files.

mod draw;
mod format;
mod good;
mod modules;
mod random;
mod reference;
mod wrong;
