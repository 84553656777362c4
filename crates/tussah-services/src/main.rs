//! The command `tussah`.

#![forbid(unsafe_code)]

fn main() {}
