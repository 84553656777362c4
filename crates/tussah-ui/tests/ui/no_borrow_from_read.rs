//! Fails: a reference to colored state would leave its color.

use tussah::Colored;

async fn leak(value: &Colored<String>) -> usize {
    let text = value.read(|text| text.as_str()).await;
    text.len()
}

fn main() {}
