//! Fails: a reference to colored state would be kept outside of its color.

use tussah::Colored;

fn keep(value: &Colored<String>) {
    let mut kept: Option<&mut String> = None;
    let _ = value.try_with(|text| kept = Some(text));
    drop(kept);
}

fn main() {}
