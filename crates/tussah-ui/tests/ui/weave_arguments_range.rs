//! A constant that is out of range for the type of its parameter does not compile.

use tussah::flow::{module, weave};

struct Small;

#[module]
impl Small {
    fn init(_byte: u8, _short: Option<u16>, _word: Option<u32>, _most: Option<u64>) -> Self {
        Self
    }

    fn run(&self, _item: u64) {}
}

weave! {
    use Small

    graph Ranges(any: count = 300) {
      fits    = Small(255, 65_535, word: 4_294_967_295, most: 18_446_744_073_709_551_615)
      later   = Small(any)
      byte    = Small(256)
      short   = Small(1, short: 10 * 10 k)
      word    = Small(byte: 1, short: 1, word: 5 G)
      inner   = Inner()
      through = Through(300, 7)
      in -> fits
      in -> later
      in -> byte
      in -> short
      in -> word
      in -> inner
      in -> through
    }
    graph Through(byte: count, fits: count, deep: count = 65_536) {
      small = Small(byte)
      same  = Small(fits)
      inner = Deep(deep)
      once  = Deep(70 k)
      in -> small
      in -> same
      in -> inner
      in -> once
    }
    graph Deep(short: count) {
      last = Small(1, short)
      in -> last
    }
    graph Inner() {
      byte = Small(1 k)
      in -> byte
    }
}

fn main() {}
