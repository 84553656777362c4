//! Fails: the function has arguments.

#[tussah::main]
async fn main(arguments: Vec<String>) {
    drop(arguments);
}
