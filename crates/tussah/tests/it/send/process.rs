//! Processes, signals and pipes.

use tussah::pipe::{Reader, Writer};
use tussah::process::{Child, Command};
use tussah::signal::Signals;

use super::{futures, texts};

futures! {
    "process/command::spawn" (command: Command) {
        texts!(text => Command::new(text).spawn());
        texts!(text => command.arg(text).spawn());
    }
    "process/command::output" (command: Command) {
        texts!(text => Command::new(text).output());
        texts!(text => command.arg(text).output());
    }
    "process/command::status" (command: Command) {
        texts!(text => Command::new(text).status());
        texts!(text => command.arg(text).status());
    }
    "process/child::wait" (child: Child) { child.wait().await }
    "process/child::wait_with_output" (child: Child) { child.wait_with_output().await }
    "process/child::kill" (child: Child) { child.kill().await }
    "signal::ctrl_c" () { tussah::signal::ctrl_c().await }
    "signal::recv" (signals: Signals) { signals.recv().await }
    "signal::Signals" (signals: Signals) { futures_lite::StreamExt::next(&mut signals).await }
    "pipe::read" (reader: Reader, buffer: Vec<u8>) { reader.read(&mut buffer).await }
    "pipe::read_exact" (reader: Reader, buffer: Vec<u8>) { reader.read_exact(&mut buffer).await }
    "pipe::read_to_end" (reader: Reader, buffer: Vec<u8>) { reader.read_to_end(&mut buffer).await }
    "pipe/writer::write" (writer: Writer, data: Vec<u8>) {
        let _ = writer.write(&data).await;
        let _ = writer.write(b"static").await;
    }
    "pipe/writer::write_all" (writer: Writer, data: Vec<u8>) {
        let _ = writer.write_all(&data).await;
        let _ = writer.write_all(b"static").await;
    }
}
