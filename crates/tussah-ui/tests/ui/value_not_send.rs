//! Fails: the value goes where its color goes.

use std::rc::Rc;

fn main() {
    let _ = tussah::Colored::new(Rc::new(1));
}
