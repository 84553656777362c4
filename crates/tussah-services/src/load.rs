//! A load generator for web servers.
//!
//! Each client is a thread with one connection at a time. In a *closed loop* the client sends a
//! request, waits for the answer, pauses, and sends the next. In an *open loop* requests are due at
//! even intervals whatever the server does, and latency counts from the due time, which avoids
//! coordinated omission.
//!
//! All clients connect first, and a warm-up may follow. In the measurement, each worker counts the
//! requests that end.

mod answer;
pub mod cli;
mod client;
mod compare;
mod conduct;
mod cpu;
mod descriptors;
mod dial;
mod doubts;
mod exchange;
mod expect;
mod fairness;
mod fault;
pub mod files;
mod gather;
mod ledger;
mod pace;
mod plot;
mod random;
mod requests;
mod run;
mod settings;
mod summary;
mod table;
mod tally;
mod tls;
mod units;
mod url;

pub use compare::compare;
pub use expect::{Expectation, Judged};
pub use fault::Fault;
pub use settings::CloseBy;
pub use summary::{
    Cpu, Fairness, Parameters, Requests, Second, ServerCpu, Summary, Times, VERSION, Within,
};
pub use table::table;
