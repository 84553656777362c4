//! A constant that its parameter does not accept does not compile.

use std::num::NonZeroU32;

use tussah::flow::{FieldName, Fields, Share, module, weave};
use tussah::modules::Framing;

struct Small;

#[module]
impl Small {
    fn init(_byte: u8, _short: Option<u16>, _word: Option<u32>, _most: Option<u64>) -> Self {
        Self
    }

    fn run(&self, _item: u64) {}
}

struct Strict;

#[module]
impl Strict {
    fn init(_framing: Framing, _times: Option<NonZeroU32>, _share: Option<Share>) -> Self {
        Self
    }

    fn run(&self, _item: u64) {}
}

#[derive(Fields)]
struct Line {
    host: String,
}

struct Select;

#[module]
impl Select {
    fn init(_field: FieldName<Line>) -> Self {
        Self
    }

    fn run(&self, _item: u64) {}
}

weave! {
    use Small, Strict, Select

    graph Ranges(any: count = 300) {
      fits    = Small(255, 65_535, word: 4_294_967_295, most: 18_446_744_073_709_551_615)
      later   = Small(any)
      byte    = Small(256)
      short   = Small(1, short: 10 * 10 k)
      word    = Small(byte: 1, short: 1, word: 5 G)
      right   = Strict("lengths", times: 1, share: 100 %)
      word_of = Strict("liness")
      none    = Strict("lines", times: 0)
      above   = Strict("lines", share: 1.5)
      below   = Strict("lines", share: 0 - 0.5)
      field   = Select("host")
      hots    = Select("hots")
      inner   = Inner()
      through = Through(300, 7)
      in -> fits
      in -> later
      in -> byte
      in -> short
      in -> word
      in -> right
      in -> word_of
      in -> none
      in -> above
      in -> below
      in -> field
      in -> hots
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
