//! A module that counts items.

use std::marker::PhantomData;

use crate::flow::{Out, module};

/// Counts items, and sends the count at regular intervals.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `every` | duration, above 0 | the time between two reports |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | `T` | an item to count |
/// | output `out`, optional | `T` | the same items, in order |
/// | output `total` | `u64` | the number of items so far |
///
/// The module counts one item at a time.
#[module]
pub struct Counter<T> {
    total: u64,
    of: PhantomData<fn(T)>,
}

#[module]
impl<T: Clone + Send + 'static> Counter<T> {
    fn init() -> Self {
        let of = PhantomData;
        Self { total: 0, of }
    }

    fn run(&mut self, item: T, out: Option<&impl Out<T>>) {
        self.total += 1;
        if let Some(out) = out {
            out.send(item);
        }
    }

    fn tick(&mut self, total: &impl Out<u64>) {
        total.send(self.total);
    }
}
