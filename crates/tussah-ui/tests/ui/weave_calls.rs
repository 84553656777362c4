//! An edge by a call leads to a plain module.

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
struct Pass;

#[module]
impl Pass {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

#[derive(Default)]
struct Wait;

#[module]
impl Wait {
    async fn run(&self, number: u64, out: &impl AsyncOut<u64>) {
        out.send(number).await;
    }
}

#[derive(Default)]
struct Block;

#[module(blocking)]
impl Block {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

#[derive(Default)]
struct Flow;

#[module]
impl Flow {
    fn run(&self, number: u64, count: &mut u64, out: &impl Out<u64>) {
        *count += number;
        out.send(*count);
    }
}

#[derive(Default)]
struct Ordered;

#[module(ordered)]
impl Ordered {
    fn run(&self, number: u64, out: &impl Out<u64>) {
        out.send(number);
    }
}

#[derive(Default)]
struct Take;

#[module]
impl Take {
    fn run(&mut self, _number: u64) {}
}

weave_file!("weave_calls.weave");

weave! {
    use Numbers, Pass, Wait, Block, Take

    graph Called() {
      numbers = Numbers()
      pass    = Pass()
      wait    = Wait()
      block   = Block()
      take    = Take()
      numbers -> pass via call -> wait via call
      wait -> block via call -> take via call
    }
}

weave! {
    use Numbers, Pass, Wait, Block, Flow, Ordered, Take

    graph Fused() {
      numbers = Numbers()
      pass    = Pass()
      wait    = Wait()
      block   = Block()
      flow    = Flow()
      ordered = Ordered()
      take    = Take()
      fuse numbers -> pass -> wait
      fuse wait -> block -> flow
      fuse flow -> ordered -> take
    }
}

// These are right.
weave! {
    use Numbers, Flow, Ordered, Take

    graph Right() {
      numbers = Numbers()
      flow    = Flow()
      ordered = Ordered()
      take    = Take()
      numbers -> flow via call -> ordered via call
      fuse ordered -> take
    }
}

fn main() {}
