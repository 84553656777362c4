//! Fails: a reference to colored state would leave its color.

use tussah::Colored;

fn leak(value: &Colored<String>) -> Option<&str> {
    value.try_with(|text| text.as_str()).ok()
}

fn main() {}
