//! Tests of the protocols from outside.

mod corpus;
mod differential;
mod properties;
mod session;
