//! A module that writes messages to standard output.

use std::io::Write as _;

use crate::flow::module;
use crate::modules::{Attempt, Message};

/// Writes each message to standard output as a line.
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | [`Message`] | a message to write |
/// | output `failed` | [`Attempt<Message>`] | a message that could not be written |
///
/// The module writes one line at a time, in order, on an OS thread of the blocking pool.
#[module]
#[derive(Default)]
pub struct LinesOut;

#[module(blocking, serial)]
impl LinesOut {
    fn run(&self, message: Message) -> Result<(), Attempt<Message>> {
        let line = [&*message.bytes, b"\n"].concat();
        let mut output = std::io::stdout().lock();
        let written = output.write_all(&line).and_then(|()| output.flush());
        written.map_err(|error| Attempt::first(message, format!("cannot write: {error}")))
    }
}
