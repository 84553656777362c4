//! Fails: the function is not async.

#[tussah::main]
fn main() {}
