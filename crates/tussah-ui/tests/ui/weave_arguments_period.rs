//! A constant that is not a period does not compile.

use tussah::flow::{Period, module, weave};

struct Ticks;

#[module]
impl Ticks {
    fn init(_every: Period) -> Self {
        Self
    }

    fn run(&self, _item: u64) {}
}

weave! {
    use Ticks

    graph Periods(any: duration) {
      short = Ticks(1 ns)
      later = Ticks(any)
      none  = Ticks(0 s)
      less  = Ticks(every: 1 s - 1000 ms)
      in -> short
      in -> later
      in -> none
      in -> less
    }
}

fn main() {}
