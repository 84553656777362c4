//! Fails: the closure may run on another worker.

use std::rc::Rc;

use tussah::{Color, Colored, post_in};

async fn with(value: &Colored<u64>) {
    let local = Rc::new(1);
    value.with(move |value| *value += *local).await;
}

fn post() {
    let local = Rc::new(1);
    let _ = post_in(Color(1), move || drop(local));
}

fn main() {}
