//! A source of the lines in a file.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use crate::flow::{AsyncOut, OpenFile, Size, module};
use crate::modules::framing::{Decoder, Framing, LONGEST};
use crate::modules::{Message, Peer};
use crate::spawn_blocking;

/// Sends the lines of a file in order, and ends at the end of the file.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `file` | path | the file, which may be a pipe or `/dev/stdin` |
/// | `longest` | size, default 64 KiB | the maximum length of a line |
///
/// | port | items | meaning |
/// |---|---|---|
/// | output `out` | [`Message`] | a line, without its line ending and without a peer |
/// | output `error`, optional | text | the reason why the file could not be read to its end: a system error, or a line that is too long |
///
/// If the file cannot be read to its end, and the output `error` is not connected, the source
/// fails. The source reads only while the graph can accept more lines.
#[module]
pub struct FileLines {
    file: Arc<OpenFile>,
    longest: u64,
}

/// The maximum length of one read, in bytes.
const READ_MAX: usize = 64 << 10;

#[module]
impl FileLines {
    fn init(file: PathBuf, longest: Option<Size>) -> Result<Self, String> {
        Ok(Self {
            file: Arc::new(OpenFile::read(file)?),
            longest: longest.map_or(LONGEST, |size| size.0),
        })
    }

    async fn start(
        &self,
        out: &impl AsyncOut<Message>,
        error: Option<&impl AsyncOut<String>>,
    ) -> Result<(), String> {
        let mut decoder = Decoder::new(Framing::Lines, self.longest);
        let failure = loop {
            let file = Arc::clone(&self.file);
            let read = spawn_blocking(move || {
                let mut buffer = vec![0; READ_MAX];
                let read = file.get().read(&mut buffer);
                read.map(|len| buffer.truncate(len)).map(|()| buffer)
            });
            match read.await {
                Ok(Ok(bytes)) if bytes.is_empty() => break None,
                Ok(Ok(bytes)) => decoder.push(&bytes),
                Ok(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => break Some(self.file.context("read", &error)),
                Err(error) => break Some(format!("the read ended: {error}")),
            }
            match send(&mut decoder, out).await {
                Ok(()) => {}
                Err(why) => break Some(format!("{}: {why}", self.file.path().display())),
            }
        };
        match (failure, error) {
            (None, _) => {
                if let Some(bytes) = decoder.rest() {
                    out.send(Message::new(Peer::nobody(), bytes)).await;
                }
            }
            (Some(why), Some(port)) => port.send(why).await,
            (Some(why), None) => return Err(why),
        }
        Ok(())
    }
}

/// Sends the complete lines.
async fn send(decoder: &mut Decoder, out: &impl AsyncOut<Message>) -> Result<(), String> {
    loop {
        let lines = decoder.messages().map_err(|error| error.to_string())?;
        if lines.is_empty() {
            return Ok(());
        }
        for bytes in lines {
            out.send(Message::new(Peer::nobody(), bytes)).await;
        }
    }
}
