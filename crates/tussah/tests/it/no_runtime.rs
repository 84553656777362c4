//! Functions that need a runtime name their caller when there is none.

use std::cell::Cell;
use std::panic::{catch_unwind, set_hook, take_hook};

use tussah::net::{ListenOptions, TcpListener, UdpSocket, UnixListener};
use tussah::signal::{Signal, signal};
use tussah::{Colored, driver, spawn, spawn_blocking};

use crate::alone::alone;

thread_local! {
    /// The file in which the last panic of this OS thread happened.
    static PANICKED_IN: Cell<Option<String>> = const { Cell::new(None) };
}

#[test]
fn a_panic_names_the_callers_file() {
    alone("no_runtime::a_panic_names_the_callers_file", || {
        set_hook(Box::new(|info| {
            let file = info.location().map(|location| location.file().to_owned());
            PANICKED_IN.set(file);
        }));
        let calls: [(&str, fn()); 9] = [
            ("spawn", || drop(spawn(async {}))),
            ("spawn_blocking", || drop(spawn_blocking(|| ()))),
            ("Colored::new", || drop(Colored::new(1))),
            ("TCP", || drop(TcpListener::bind("127.0.0.1:0"))),
            ("TCP per worker", || {
                drop(ListenOptions::default().bind_per_worker("127.0.0.1:0"));
            }),
            ("UDP", || drop(UdpSocket::bind("127.0.0.1:0"))),
            ("Unix", || drop(UnixListener::bind("/no/such/folder"))),
            ("signal", || drop(signal(Signal::USR1))),
            ("driver", || drop(driver())),
        ];
        let mut elsewhere = Vec::new();
        for (name, call) in calls {
            let panicked = catch_unwind(call).is_err();
            let file = PANICKED_IN.take();
            if !panicked || file.as_deref() != Some(file!()) {
                elsewhere.push((name, file));
            }
        }
        let _ = take_hook();
        assert_eq!(elsewhere, []);
    });
}
