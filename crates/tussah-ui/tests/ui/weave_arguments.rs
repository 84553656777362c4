//! The compiler checks the arguments of a graph, and names their places in the file.

use std::net::SocketAddr;

use tussah::flow::{Out, Size, module, weave_file};

struct Cache;

#[module]
impl Cache {
    fn init(_limit: Size, _names: String, _part: Option<f64>, _listen: Option<SocketAddr>) -> Self {
        Self
    }

    fn run(&self, _item: u64) {}

    fn tick(&self, out: Option<&impl Out<u64>>) {
        let _unused = out;
    }
}

#[derive(Default)]
struct Sink;

#[module]
impl Sink {
    fn run(&self, _item: u64) {}
}

weave_file!("weave_arguments.weave");

fn main() {}
