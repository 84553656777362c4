//! A load generator for web servers.
//!
//! Each client has its own thread, and one connection at a time. In a *closed loop*, the client
//! sends a request, waits for the response, pauses, and sends the next request. In an *open loop*,
//! requests are due at even intervals whatever the server does, and latency is measured from the
//! due time, which avoids coordinated omission.
//!
//! All clients connect first, and then optionally warm up the server. During the measurement, each
//! worker counts the requests that end.

pub mod cli;
mod report;
mod run;

pub use report::compare::compare;
pub use report::expect::{Expectation, Judged};
pub use report::summary::{
    Cpu, Fairness, Parameters, Requests, Second, ServerCpu, Summary, Times, VERSION, Within,
};
pub use report::table::table;
pub use run::fault::Fault;
pub use run::files;
pub use run::settings::CloseBy;
