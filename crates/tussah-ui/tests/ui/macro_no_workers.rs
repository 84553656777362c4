//! Fails: a runtime has a worker.

#[tussah::main(workers = 0)]
async fn main() {}
