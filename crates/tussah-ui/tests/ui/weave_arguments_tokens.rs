//! The errors of arguments in the program point at the arguments.

use std::sync::Arc;

use tussah::flow::{module, weave};

struct Server;
struct Serve;

#[module]
impl Serve {
    fn init(_server: Arc<Server>, _at_once: Option<usize>) -> Self {
        Self
    }

    fn run(&self, _item: u64) {}
}

weave! {
    use Serve

    graph Tokens(server: Arc<Server>, count: usize) {
      one   = Serve(at_once: 3)
      two   = Serve("text")
      three = Serve(server, at_once: 5 ms)
      four  = Serve(server, count)
      in -> one
      in -> two
      in -> three
      in -> four
    }
}

fn main() {}
