//! The items of a generic module leave along one edge only, unless its type parameter is `Clone`.

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

weave! {
    use Numbers, Pass, Take

    graph Both() {
      numbers = Numbers()
      pass    = Pass<u64>()
      one     = Take()
      other   = Take()
      numbers -> pass -> one
      pass -> other
    }
}

weave_file!("weave_module_not_clone.weave");

weave! {
    use Numbers, Pass, Take

    graph Either(more: flag) {
      numbers = Numbers()
      pass    = Pass<u64>()
      if more { take = Take() } else { take = Take() }
      numbers -> pass -> take
    }
}

fn main() {}
