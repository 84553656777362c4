//! Fails: readers may run at the same time.

use std::cell::Cell;

async fn read(value: &tussah::Colored<Cell<u64>>) -> u64 {
    value.read(|value| value.get()).await
}

fn main() {}
