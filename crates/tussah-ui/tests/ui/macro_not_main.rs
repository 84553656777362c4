//! Fails: the function is not `main`.

#[tussah::main]
async fn start() {}

fn main() {
    start();
}
