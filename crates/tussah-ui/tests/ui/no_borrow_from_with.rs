//! Fails: a reference to colored state would leave its color.

use tussah::Colored;

async fn leak(value: &Colored<String>) -> &mut String {
    value.with(|text| text).await
}

fn main() {}
