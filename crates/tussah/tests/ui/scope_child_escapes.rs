//! Fails: a child cannot be awaited behind its scope.

use std::convert::Infallible;

use tussah::{Scope, scope};

async fn escape() {
    let child = scope(async |scope: &Scope<Infallible>| Ok(scope.spawn(async { Ok(1) }))).await;
    if let Ok(child) = child {
        child.await;
    }
}

fn main() {}
