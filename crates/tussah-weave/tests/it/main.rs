//! Tests of whole files.

mod good;
mod modules;
mod random;
mod wrong;
