//! The server of tussah: a thread for each connection.

use std::io;
use std::pin::Pin;

use ::tussah::net::{TcpListener, TcpStream};
use futures_lite::AsyncRead;

use super::{Receiver, receive_shared};
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
    let mut receiver = Receiver::default();
    loop {
        let ack = receive_shared(&mut receiver, |context, buffer| {
            Pin::new(&mut &stream).poll_read(context, buffer)
        });
        if let Some(ack) = ack.await? {
            stream.write_all(&ack).await?;
        }
    }
}
