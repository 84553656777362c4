//! Fails: the argument is given twice.

#[tussah::main(workers = 1, workers = 2)]
async fn main() {}
