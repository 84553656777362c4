//! Tests that need a process with one OS thread. A program, because the test harness has more.

use tussah_core::heap::bound_arenas;

fn main() {
    let is_bounded = bound_arenas(0);
    assert_eq!(is_bounded, cfg!(target_env = "gnu"), "one arena is left");
    let second = std::thread::spawn(|| bound_arenas(2)).join();
    assert!(!second.expect("it does not panic"), "there are two now");
}
