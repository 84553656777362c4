//! Fails: the values are of the wrong kind; both are reported.

#[tussah::main(workers = "4", name = 4)]
async fn main() {}
