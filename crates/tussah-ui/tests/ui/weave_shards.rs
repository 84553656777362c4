//! The items of an instance with shards have the field that chooses the shard.

use std::marker::PhantomData;

use tussah::flow::{AsyncOut, Fields, Out, module, weave, weave_file};

#[derive(Clone, Fields)]
struct Line {
    host: String,
    bytes: u64,
}

#[derive(Default)]
struct Lines;

#[module]
impl Lines {
    async fn start(&self, out: &impl AsyncOut<Line>) {
        out.send(Line { host: String::new(), bytes: 0 }).await;
    }
}

#[derive(Default)]
struct Length;

#[module]
impl Length {
    fn run(&self, line: Line, out: &impl Out<u64>) {
        out.send(line.bytes);
    }
}

struct Pass<T>(PhantomData<fn(T)>);

#[module]
impl<T: Send + 'static> Pass<T> {
    fn init() -> Self {
        Self(PhantomData)
    }

    fn run(&self, item: T, out: &impl Out<T>) {
        out.send(item);
    }
}

#[derive(Default)]
struct Take;

#[module]
impl Take {
    fn run(&self, _number: u64) {}
}

weave_file!("weave_shards.weave");

weave! {
    use Lines, Length, Pass, Take

    graph Inline() {
      lines  = Lines()
      length = Length() * 4 by hots
      pass   = Pass<u64>() * 2 by bytes
      take   = Take() * 2 by number
      lines -> length -> pass -> take
    }
}

// These are right.
weave! {
    use Lines, Length, Take

    graph Right() {
      lines  = Lines()
      length = Length() * 4 by host
      take   = Take() * 4
      lines -> length -> take
    }
}

fn main() {}
