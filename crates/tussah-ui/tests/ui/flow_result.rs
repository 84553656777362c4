//! The error of a method is an item of the port `failed`.

use std::rc::Rc;

use tussah::flow::module;

#[derive(Default)]
struct Check;

#[module]
impl Check {
    fn run(&self, number: u64) -> Result<(), Rc<u64>> {
        Err(Rc::new(number))
    }
}

#[derive(Default)]
struct Double;

#[module]
impl Double {
    fn run(&self, number: u64) -> u64 {
        2 * number
    }
}

fn main() {}
