//! A module that handles items side by side cannot change what its calls share.

use tussah::flow::module;

#[derive(Default)]
struct Count(u64);

#[module]
impl Count {
    fn run(&self, _number: u64) {
        self.0 += 1;
    }
}

fn main() {}
