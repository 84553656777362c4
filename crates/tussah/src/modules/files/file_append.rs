//! A module that appends messages to a file.

use std::io::Write as _;
use std::path::PathBuf;

use crate::flow::{OpenFile, module};
use crate::modules::{Attempt, Message};

/// Appends each message to a file as a line.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `file` | path | the file, which is created if it does not exist |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | [`Message`] | a message to append |
/// | input `again` | [`Attempt<Message>`] | a message to retry |
/// | outputs `failed` and `again_failed` | [`Attempt<Message>`] | a message that could not be appended, for [`Retry`](crate::modules::Retry) |
///
/// The module writes one line at a time, in order, on an OS thread of the blocking pool. The module
/// does not wait for the line to reach the disk. After a failure, the file may contain part of the
/// line.
#[module]
pub struct FileAppend {
    file: OpenFile,
}

#[module(blocking, serial)]
impl FileAppend {
    fn init(file: PathBuf) -> Result<Self, String> {
        let file = OpenFile::append(file)?;
        Ok(Self { file })
    }

    fn run(&self, message: Message) -> Result<(), Attempt<Message>> {
        let written = self.write(&message);
        written.map_err(|why| Attempt::first(message, why))
    }

    #[port]
    fn again(&self, attempt: Attempt<Message>) -> Result<(), Attempt<Message>> {
        let written = self.write(&attempt.item);
        written.map_err(|why| attempt.failed(why))
    }
}

impl FileAppend {
    fn write(&self, message: &Message) -> Result<(), String> {
        let line = [&*message.bytes, b"\n"].concat();
        let written = self.file.get().write_all(&line);
        written.map_err(|error| self.file.context("write", &error))
    }
}
