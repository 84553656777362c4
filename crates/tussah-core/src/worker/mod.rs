//! A worker: an OS thread that takes runnable colors from its queue and runs their events.

mod context;
mod idle;
#[cfg(all(test, loom))]
mod idle_loom_tests;
mod interval;
mod median;
#[cfg(all(test, loom))]
pub(crate) mod model;
mod pin;
mod remote;
mod run;
mod steal;
#[cfg(all(test, not(loom)))]
mod tests;
mod window;

pub(crate) use context::{Budget, InColor, Worker};
pub(crate) use idle::Idle;
pub(crate) use remote::Remote;
pub(crate) use run::main;
pub(crate) use steal::worth_a_call;
