//! A test names a port that an instance does not have.

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

#[derive(Default)]
struct Print;

#[module]
impl Print {
    fn run(&mut self, _number: u64) {}
}

weave_file!("weave_test_ports.weave");

weave! {
    use Numbers, Print

    graph Inline() {
      numbers = Numbers()
      print   = Print()
      numbers -> print
    }

    test "a wrong port" of Inline {
      send numbers.out 1
      expect print.in 1
    }
}

fn main() {}
