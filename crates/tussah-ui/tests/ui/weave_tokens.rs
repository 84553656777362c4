//! The errors of a graph in the program point at its parts.

use tussah::flow::{AsyncOut, module};

struct Numbers;

#[module]
impl Numbers {
    fn init() -> Self {
        Self
    }

    async fn start(&self, out: &impl AsyncOut<u64>) {
        out.send(1).await;
    }
}

#[derive(Default)]
struct Print;

#[module]
impl Print {
    fn run(&mut self, _text: String) {}
}

tussah::flow::weave! {
    use Numbers, Print

    graph Mismatch() {
      numbers = Numbers()
      print   = Print()
      numbers -> print
    }
}

tussah::flow::weave! {
    use Numbers, Print

    graph Unknown() {
      numbers = Numbers()
      print   = Print()
      numbers -> prnt
    }
}

fn main() {}
