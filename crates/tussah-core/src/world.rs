//! What a runtime is built with to reach the world outside.

use crate::driver::file::Files;
use crate::time::Clock;

/// All that a runtime asks of the world: networks, files, time and randomness. The builder makes one. A simulator, or a TCP stack in
/// user space, is a further variant of the members. (How long turns, locks and the shutdown take is measured in real time, whatever
/// the clock is.)
///
/// - *Networks*: `net/socket.rs` of the `tussah` crate has the verbs of a socket, and makes sockets of this kind.
/// - *Files*: `driver/file/op` has the operations, each in a form for every variant.
/// - *Time*: the timers and all who ask for the time have it from the clock.
/// - *Randomness*: workers make their random numbers of the seed. (Resolvers take the numbers that an attacker must not guess
///   from the operating system.)
pub(crate) struct World {
    pub(crate) network: Network,
    #[cfg_attr(loom, allow(dead_code))]
    pub(crate) files: Files,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
}

/// What carries the bytes of a runtime's sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    /// The operating system.
    Os,
}
