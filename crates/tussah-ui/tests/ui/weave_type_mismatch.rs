//! The compiler checks every edge of a graph, and names its place in the file.

use tussah::flow::{AsyncOut, module, weave_file};

#[derive(Default)]
struct Numbers;

#[module]
impl Numbers {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        out.send(1).await;
    }
}

#[derive(Default)]
struct Print;

#[module]
impl Print {
    fn run(&mut self, text: String) {
        println!("{text}");
    }
}

weave_file!("weave_type_mismatch.weave");

fn main() {}
