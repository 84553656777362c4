//! The messages about modules in a file have its lines, and its warnings are shown.

use std::marker::PhantomData;

use tussah::flow::{AsyncOut, module, weave_file};

#[derive(Default)]
struct Numbers;

#[module]
impl Numbers {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        out.send(1).await;
    }
}

struct Take<T>(PhantomData<fn(T)>);

#[module]
impl<T: Send + 'static> Take<T> {
    fn init() -> Self {
        Self(PhantomData)
    }

    fn run(&self, _item: T) {}
}

weave_file!("weave_wrong_places.weave");

fn main() {}
