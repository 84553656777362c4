//! Instances go from one worker to another.

use std::rc::Rc;

use tussah::flow::module;

#[derive(Default)]
struct Count(Rc<u64>);

#[module]
impl Count {
    fn run(&mut self, _number: u64) {
        assert!(*self.0 == 0);
    }
}

fn main() {}
