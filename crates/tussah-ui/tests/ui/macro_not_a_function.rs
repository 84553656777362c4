//! Fails: the attribute is on a type.

#[tussah::main]
struct Main;

fn main() {}
