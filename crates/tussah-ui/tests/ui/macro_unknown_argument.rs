//! Fails: there is no such argument.

#[tussah::main(threads = 4)]
async fn main() {}
