//! Tests of the protocols from outside.

mod body;
mod corpus;
mod differential;
mod head;
mod properties;
mod response;
mod session;
