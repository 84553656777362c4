//! An edge into a source is no cycle.

use tussah::flow::{AsyncOut, Out, module, weave, weave_file};

#[derive(Default)]
struct Numbers;

#[module]
impl Numbers {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        out.send(1).await;
    }
}

#[derive(Default)]
struct Double;

#[module]
impl Double {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(2 * number);
    }
}

weave_file!("weave_into_source.weave");

weave! {
    use Numbers, Double

    graph IntoSource() {
      numbers = Numbers()
      double  = Double()
      numbers -> double -> numbers
    }
}

weave! {
    use Double

    graph Cycle() {
      one = Double()
      two = Double()
      one -> two -> one
    }
}

fn main() {}
