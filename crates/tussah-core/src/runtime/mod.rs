//! The runtime: its workers as a whole, from the builder to the shutdown.

mod block_on;
mod builder;
mod current;
mod drivers;
mod extensions;
mod handle;
mod idlers;
mod memory;
mod post;
mod schedule;
mod shared;
mod shutdown;
#[cfg(all(test, loom))]
mod shutdown_loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
mod timers;
mod try_spawn;

pub use builder::Builder;
pub use current::{post, post_in, spawn, spawn_in};
pub use handle::{Handle, NoRuntime, Runtime};
pub use post::{AsColor, PostError};
pub use shutdown::ShutdownReport;

#[cfg(all(test, loom))]
pub(crate) use shared::Config;
pub(crate) use shared::Shared;
