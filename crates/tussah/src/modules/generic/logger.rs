//! A module that logs items.

use std::fmt::Debug;
use std::marker::PhantomData;

use crate::flow::{Out, module};

/// Logs each item with `tracing`, at level info and with the target `tussah::modules`.
///
/// The command `run` prints the log to standard error. A program that starts graphs itself needs a
/// subscriber, such as one from the crate `tracing-subscriber`.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `label` | text, optional | the field `label` of the log lines |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | `T` | an item to log |
/// | output `out`, optional | `T` | the same items |
///
/// The module handles any number of items at a time.
#[module]
pub struct Logger<T> {
    label: String,
    of: PhantomData<fn(T)>,
}

#[module]
impl<T: Clone + Debug + Send + 'static> Logger<T> {
    fn init(label: Option<String>) -> Self {
        let label = label.unwrap_or_default();
        let of = PhantomData;
        Self { label, of }
    }

    fn run(&self, item: T, out: Option<&impl Out<T>>) {
        tracing::info!(target: "tussah::modules", label = self.label, ?item);
        if let Some(out) = out {
            out.send(item);
        }
    }
}
