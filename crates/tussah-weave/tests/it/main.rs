//! Tests of whole files.

mod format;
mod good;
mod modules;
mod random;
mod wrong;
