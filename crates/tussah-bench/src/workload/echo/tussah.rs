//! The echo server of tussah: a thread for each connection.

use std::io;

use ::tussah::net::{TcpListener, TcpStream};

use super::BUFFER;
use crate::cli::Options;
use crate::{runtimes, server};

pub(super) fn serve(options: &Options) {
    runtimes::tussah_of(options, options.workers_or(1), async {
        let listener = TcpListener::from_std(server::listen_once()).expect("it is a socket");
        loop {
            let (stream, _) = listener.accept().await.expect("the listener is open");
            drop(::tussah::spawn(async move {
                echo(&stream)
                    .await
                    .unwrap_or_else(|error| server::ended(&error));
            }));
        }
    });
}

async fn echo(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; BUFFER];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..read]).await?;
    }
}
