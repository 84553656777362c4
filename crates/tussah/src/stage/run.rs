//! Running a stage: its handler, its servlets, and the state that they share with senders.

pub(crate) mod blocking;
mod each;
mod expiry;
mod handler;
mod host;
mod lifecycle;
mod recall;
mod release;
mod restarts;
mod servlet;
mod shared;
mod threads;
mod turn;

pub use self::each::{Each, each, each_mut};
pub use self::handler::{Handler, SerialHandler};
pub use self::host::{ConcurrentHost, Host, SerialHost};
pub use self::restarts::Restarts;
pub use self::threads::{Applicant, Permits, ThreadManager};

pub(crate) use self::blocking::Pool;
pub(crate) use self::host::{Gone, Guard, Present, Using};
pub(crate) use self::servlet::{collected, serve};
pub(crate) use self::shared::{Built, Degrade, Inner, OnClose, OnDrop, Shared};
pub(crate) use self::threads::Threads;
