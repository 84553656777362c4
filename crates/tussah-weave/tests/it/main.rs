//! Tests of whole files.

mod good;
mod modules;
