//! The server of tussah: a thread for each connection.

use std::io;

use ::tussah::net::{TcpListener, TcpStream};

use super::{PACKET, Receiver};
use crate::cli::Options;
use crate::{runtimes, server};

pub(super) fn serve(options: &Options) {
    runtimes::tussah_of(options, options.workers_or(1), async {
        let listener = TcpListener::from_std(server::listen_once()).expect("it is a socket");
        loop {
            let (stream, _) = listener.accept().await.expect("the listener is open");
            let receiving = async move {
                receive(stream)
                    .await
                    .unwrap_or_else(|error| server::ended(&error))
            };
            drop(::tussah::spawn(receiving));
        }
    });
}

async fn receive(stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut buffer, mut receiver) = (vec![0; PACKET], Receiver::default());
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        if let Some(ack) = receiver.take(&buffer[..read]) {
            stream.write_all(&ack).await?;
        }
    }
}
