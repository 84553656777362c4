//! Fails: a child that runs in parallel cannot borrow from a parent that is awaited.

use std::convert::Infallible;

use tussah::{Scope, scope};

async fn borrow() -> Result<usize, Infallible> {
    let text = String::from("of the parent");
    scope(async |scope: Scope<Infallible>| {
        let child = scope.spawn(async { Ok(text.len()) });
        Ok(child.await)
    })
    .await
}

fn main() {}
