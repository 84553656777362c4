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
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | [`Dropped<T>`] | a dropped item; the line contains the reason and the item |
/// | input `lost` | `T` | a lost item; the line contains the item |
/// | output `failed` | text | the reason why a line could not be written |
///
/// The module formats items with `Debug`, and writes one line at a time, on an OS thread of the
/// blocking pool.
#[module]
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
