//! A module that writes lost items to a file.

use std::fmt::Debug;
use std::io::Write as _;
use std::marker::PhantomData;
use std::path::PathBuf;

use crate::flow::{Dropped, OpenFile, module};

/// Appends a line to a file for each lost item.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `file` | path | the file, which is created if it does not exist |
///
/// Inputs: `run` takes [`Dropped<T>`], and writes the reason and the item; `lost` takes `T`. The
/// module writes items with `Debug`, one at a time, on an OS thread. Output: `failed`, the reason
/// why a line could not be written, as text.
pub struct DeadLetter<T> {
    file: OpenFile,
    of: PhantomData<fn(T)>,
}

#[module(blocking, serial)]
impl<T: Clone + Debug + Send + 'static> DeadLetter<T> {
    fn init(file: PathBuf) -> Result<Self, String> {
        let file = OpenFile::append(&file)?;
        let of = PhantomData;
        Ok(Self { file, of })
    }

    fn run(&self, dropped: Dropped<T>) -> Result<(), String> {
        let reason = dropped.reason;
        match dropped.item {
            Some(item) => self.write(&format!("{reason}: {item:?}\n")),
            None => self.write(&format!("{reason}\n")),
        }
    }

    #[port]
    fn lost(&self, item: T) -> Result<(), String> {
        self.write(&format!("{item:?}\n"))
    }
}

impl<T> DeadLetter<T> {
    fn write(&self, line: &str) -> Result<(), String> {
        // One call, so that the lines of several programs do not mix.
        let written = self.file.get().write_all(line.as_bytes());
        written.map_err(|error| self.file.context("write", &error))
    }
}
