//! The clients of a run: connections, requests, responses, and the state that all clients share.

pub(super) mod answer;
pub(super) mod client;
pub(super) mod client_tally;
pub(super) mod connect;
pub(super) mod cpu;
pub(super) mod descriptors;
pub(super) mod exchange;
pub(super) mod fault;
pub mod files;
pub(super) mod pace;
pub(super) mod paths;
pub(super) mod phases;
pub(super) mod requests;
pub(super) mod settings;
pub(super) mod shared;
pub(super) mod tls;
pub(super) mod url;
