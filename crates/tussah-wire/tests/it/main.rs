//! Tests of the protocols from outside.

mod body;
mod cgi;
mod compare;
mod corpus;
mod differential;
mod fastcgi;
mod gnutella;
mod head;
mod properties;
mod response;
mod session;
