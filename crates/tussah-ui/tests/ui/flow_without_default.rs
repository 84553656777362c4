//! A module without `init` and the state of a flow begin with their defaults.

use tussah::flow::module;

struct Count(u64);

#[module]
impl Count {
    fn run(&mut self, number: u64) {
        self.0 += number;
    }
}

struct Sum(u64);

#[derive(Default)]
struct Add;

#[module]
impl Add {
    fn run(&self, number: u64, sum: &mut Sum) {
        sum.0 += number;
    }
}

fn main() {}
