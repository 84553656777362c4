//! Fails: `main` cannot return a number.

#[tussah::main]
async fn main() -> u8 {
    7
}
