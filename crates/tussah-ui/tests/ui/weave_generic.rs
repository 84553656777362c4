//! A generic module needs its types in a compiled graph.

use std::marker::PhantomData;

use tussah::flow::{AsyncOut, Out, module, weave, weave_file};

#[derive(Default)]
struct Numbers;

#[module]
impl Numbers {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        out.send(7).await;
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
    fn run(&mut self, _number: u64) {}
}

weave_file!("weave_generic.weave");

weave! {
    use Numbers, Pass, Take

    graph Inline() {
      numbers = Numbers()
      pass    = Pass()
      again   = Pass()
      take    = Take()
      fuse numbers -> pass -> again -> take
    }
}

weave! {
    use Numbers, Pass, Take, Missing

    graph Unknown() {
      numbers = Numbers()
      pass    = Pass<Nothing>()
      other   = Missing()
      numbers -> pass -> other
    }
}

fn main() {}
