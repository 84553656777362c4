//! Tests that need a process of their own, at first with one OS thread. A program, because the test
//! harness has more.

use std::io::{ErrorKind, Read as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use tussah_core::Runtime;
use tussah_core::heap::bound_arenas;

fn main() {
    let is_bounded = bound_arenas(0);
    assert_eq!(is_bounded, cfg!(target_env = "gnu"), "one arena is left");
    let second = std::thread::spawn(|| bound_arenas(2)).join();
    assert!(!second.expect("it does not panic"), "there are two now");
    building_a_runtime_interrupts_no_system_call();
}

/// The first runtime of a process tries io_uring, and the kernel interrupts the OS threads that
/// have used a ring some time after its end.
fn building_a_runtime_interrupts_no_system_call() {
    let (mut socket, _silent) = UnixStream::pair().expect("sockets");
    let limit = Duration::from_millis(500);
    socket.set_read_timeout(Some(limit)).expect("a socket");
    let _runtime = Runtime::builder().workers(1).build().expect("a worker");
    let read = socket.read(&mut [0]);
    let error = read.expect_err("the other end is silent");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}
