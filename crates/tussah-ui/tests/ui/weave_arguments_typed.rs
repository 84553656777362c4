//! The compiler compares the types of arguments that Weave has no kind for.

use std::sync::Arc;

use tussah::flow::{module, weave};

struct Server;
struct Client;
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

    graph Typed(server: Arc<Server>, other: Arc<Client>) {
      one   = Serve(server)
      two   = Serve(server: other)
      three = Serve(other, 10)
      four  = Serve(servr: server)
      in -> one
      in -> two
      in -> three
      in -> four
    }
}

fn main() {}
