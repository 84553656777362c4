//! Fails: a reference to colored state would leave its color.

use tussah::{Colored, with_all};

async fn leak(a: &Colored<String>, b: &Colored<String>) -> usize {
    let texts = with_all((a, b), |a: &mut String, b: &mut String| (a, b)).await;
    texts.0.len()
}

fn main() {}
