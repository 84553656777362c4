//! Items go from one worker to another.

use std::rc::Rc;

use tussah::flow::{AsyncOut, Out, module};

#[derive(Default)]
struct Unwrap;

#[module]
impl Unwrap {
    fn run(&self, number: Rc<u64>, out: &impl Out<u64>) {
        out.send(*number);
    }
}

#[derive(Default)]
struct Wrap;

#[module]
impl Wrap {
    async fn run(&self, number: u64, out: &impl AsyncOut<Rc<u64>>) {
        out.send(Rc::new(number)).await;
    }
}

fn main() {}
