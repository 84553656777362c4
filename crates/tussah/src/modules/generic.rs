//! Modules for items of any type that can be cloned.
//!
//! `#[module]` sees only the bounds of an `impl` block. Without `Clone`, a port could have only one
//! edge, and an item would be lost if the module panics.

mod counter;
mod dead_letter;
mod delay;
mod fault_injector;
mod filter;
mod join;
mod logger;
mod retry;
mod split;
mod throttle;
mod timer;

pub use self::counter::Counter;
pub use self::dead_letter::DeadLetter;
pub use self::delay::Delay;
pub use self::fault_injector::FaultInjector;
pub use self::filter::Filter;
pub use self::join::{Join, Waiting};
pub use self::logger::Logger;
pub use self::retry::Retry;
pub use self::split::Split;
pub use self::throttle::Throttle;
pub use self::timer::Timer;
