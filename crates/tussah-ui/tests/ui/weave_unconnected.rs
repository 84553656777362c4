//! Each instance needs an edge to it, and one from each of its required outputs.

use tussah::flow::{AsyncOut, Dropped, Out, module, weave, weave_file};

#[derive(Default)]
struct Numbers;

#[module]
impl Numbers {
    async fn start(&self, out: &impl AsyncOut<u64>) {
        out.send(1).await;
    }
}

#[derive(Default)]
struct Parse;

#[module]
impl Parse {
    fn run(
        &self,
        number: u64,
        small: &impl Out<u64>,
        large: &impl Out<u64>,
        odd: Option<&impl Out<u64>>,
    ) {
        small.send(number);
        large.send(number);
        let _unused = odd;
    }
}

#[derive(Default)]
struct Print;

#[module]
impl Print {
    fn run(&mut self, _number: u64) {}
}

#[derive(Default)]
struct Late;

#[module]
impl Late {
    fn run(&self, late: Dropped<u64>, out: &impl Out<u64>, rest: Option<&impl Out<u64>>) {
        late.item.into_iter().for_each(|item| out.send(item));
        let _unused = rest;
    }
}

weave_file!("weave_unconnected.weave");

weave! {
    use Numbers, Parse, Print, Late

    graph Inline(more: flag) {
      numbers = Numbers()
      parse   = Parse()
      slow    = Late()
      lost    = Print()
      if more { fast = Parse() } else { fast = Print() }
      numbers -> parse
      numbers -> fast
      parse.small -> lost
      shed parse when p90 > 50 ms -> slow
    }
}

// These are connected, some under a condition, and some by a rule.
weave! {
    use Numbers, Parse, Print, Late

    graph Whole(more: flag) {
      numbers = Numbers()
      parse   = Inner()
      print   = Print()
      late    = Late()
      last    = Print()
      numbers -> parse -> print
      parse.large -> print
      shed print when p90 > 50 ms -> late
      late -> last
    }

    graph Inner(more: flag = true) {
      parse = Parse()
      in -> parse
      if more { parse.small -> out } else { parse.small -> out.large }
      parse.large -> out.large
    }
}

fn main() {}
