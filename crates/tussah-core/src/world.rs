//! The interfaces through which a runtime reaches the outside.

use crate::driver::file::Files;
use crate::time::Clock;

/// The interfaces to everything outside of a runtime: networks, files, time and randomness. The
/// builder creates one. A simulator, or a TCP stack in user space, is another variant of the
/// members. (The lengths of turns, locks and the shutdown are measured in real time, whatever the
/// clock is.)
///
/// - *Networks*: `net/socket.rs` of the `tussah` crate has the operations of a socket, and creates
///   sockets of this kind.
/// - *Files*: `driver/file/op` has the operations, each in a form for every variant.
/// - *Time*: timers and all readers of the time use the clock.
/// - *Randomness*: workers derive their random numbers from the seed. (Resolvers take the numbers
///   that an attacker must not guess from the operating system.)
pub(crate) struct World {
    pub(crate) network: Network,
    #[cfg_attr(loom, allow(dead_code))]
    pub(crate) files: Files,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
}

/// The transport of a runtime's sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    /// The operating system.
    Os,
}
