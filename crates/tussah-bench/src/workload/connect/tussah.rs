//! The server of tussah that closes each connection.

use ::tussah::net::TcpListener;

use crate::cli::Options;
use crate::{runtimes, server};

pub(super) fn serve(options: &Options) {
    runtimes::tussah_of(options, options.workers_or(1), async {
        let listener = TcpListener::from_std(server::listen_once()).expect("it is a socket");
        loop {
            drop(listener.accept().await.expect("the listener is open"));
        }
    });
}
