//! A module that handles items side by side is shared between workers.

use std::cell::Cell;

use tussah::flow::module;

#[derive(Default)]
struct Count(Cell<u64>);

#[module]
impl Count {
    fn run(&self, number: u64) {
        self.0.set(number);
    }
}

fn main() {}
