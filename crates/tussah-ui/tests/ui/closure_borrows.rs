//! Fails: the closure may run after its caller is gone.

use tussah::Colored;

async fn with(value: &Colored<u64>) -> u64 {
    let mut here = 0;
    value.with(|value| here = *value).await;
    here
}

fn main() {}
