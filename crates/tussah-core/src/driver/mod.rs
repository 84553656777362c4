//! Drivers: the interfaces that workers wait on, and how descriptors and threads come together.
//!
//! Sockets and pipes work by readiness. A thread first tries its operation. If the operation would
//! block, the thread waits in the descriptor's **slot** (`slot.rs`). It waits until the **driver**
//! of some worker (`epoll.rs`) reports that another try may succeed. A descriptor is registered
//! when a thread first waits for it: edge-triggered, for both directions, with the worker that is
//! then running the thread. It stays registered. Reports are posted to the worker of the thread's
//! color.
//!
//! # The contract of a driver
//!
//! - A worker with a driver sleeps in `wait`. `wait` returns after a report, at its time limit and
//!   after `wake`, and it may return spuriously. The caller dispatches the reports once it counts
//!   as awake again.
//! - Each caller of `wait` provides its own buffer, so no lock is needed: a peer may serve the
//!   driver of a worker that is stuck in a long event.
//! - Each edge is reported once, to one of the waiting callers.
//! - `wait` fails only temporarily (see `outage.rs`). It then reports nothing, and pending reports
//!   stay with the kernel.
//!
//! # Why no edge is lost
//!
//! All changes of a slot happen under its lock. A thread reads the slot's state word, tries its
//! operation and gets `EAGAIN`. Only then does it take the lock to wait. If the word has changed
//! since it was read, something was reported in between, and the thread tries again. Otherwise,
//! under the same hold of the lock, it marks the direction as not ready and stores its waker. A
//! later report finds the waker there.
//!
//! Registration also reports earlier changes, because it reports everything that is ready at that
//! moment (epoll_ctl(2), `EPOLL_CTL_ADD`). The same holds for a descriptor that moves to another
//! worker, since the new registration precedes the removal of the old one.
//!
//! A short read shows that no more data is available now. It marks the direction as not ready by
//! the same rule: only if the word is unchanged. It does not do so once the peer has closed,
//! because the close is reported only once.
//!
//! # How a hang-up is seen
//!
//! A read reaches the end of a stream after all bytes before it, so unread bytes hide the end. The
//! driver's flags do not: `EPOLLRDHUP` (a FIN), `EPOLLHUP` and `EPOLLERR` enter the state word and
//! stay there. A FIN or a reset is a separate edge even if the descriptor was already readable. The
//! kernel notifies waiters at every change of a socket's state, and an edge-triggered epoll then
//! reports every condition that holds at that moment. A thread that waits for a hang-up takes a
//! reader's place, by the rule above, but leaves the direction ready: the bytes have not been read
//! yet.

mod epoll;
pub mod file;
mod hangup;
pub(crate) mod outage;
mod report;
mod slot;
mod source;
mod table;
#[cfg(test)]
mod tests;
mod transfer;

pub(crate) use epoll::{Driver, Events, Report};
pub use hangup::Hangup;
pub use report::DriverReport;
pub use slot::Direction;
pub(crate) use slot::Late;
pub use source::{Io, Marker, Source};
pub(crate) use table::Sources;
pub use transfer::spend_bytes;
