//! A module that sends messages over a TCP connection to a server.

use std::net::SocketAddr;
use std::time::Duration;

use super::peer::Connection;
use super::reply::{PATIENCE, report};
use crate::flow::{AsyncOut, Size, module};
use crate::modules::framing::{Decoder, Framing, LONGEST};
use crate::modules::{Attempt, Message};
use crate::net::TcpStream;
use crate::time::timeout;

/// Sends messages over TCP to a server, in order. The module connects when the first message
/// arrives, and reconnects after an error.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `to` | address | the server |
/// | `framing` | text, default `"lines"` | as for [`TcpListen`](super::TcpListen) |
/// | `patience` | duration, default 10 s | the maximum time for each step: connect, send, answer |
/// | `longest` | size, default 64 KiB | the maximum length of an answer |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | [`Message`] | a message to send |
/// | input `again` | [`Attempt<Message>`] | a message to retry |
/// | output `out`, optional | [`Message`] | the answer to a message, with the peer of that message |
/// | output `sent`, optional | [`Message`] | a message that counts as sent |
/// | outputs `failed` and `again_failed` | [`Attempt<Message>`] | a message that could not be sent, for [`Retry`](crate::modules::Retry) |
///
/// If the output `out` is connected, the module waits for one answer to each message before it
/// sends the next.
///
/// If the module waits for answers, a message counts as sent once its answer has arrived.
/// Otherwise, a message counts as sent once the system has accepted it. A message that the system
/// has accepted is nevertheless lost if the server exits before reading it.
#[module]
pub struct TcpSend {
    to: SocketAddr,
    framing: Framing,
    patience: Duration,
    longest: u64,
    connection: Option<(Connection, Decoder)>,
}

#[module]
impl TcpSend {
    fn init(
        to: SocketAddr,
        framing: Option<Framing>,
        patience: Option<Duration>,
        longest: Option<Size>,
    ) -> Result<Self, String> {
        Ok(Self {
            to,
            framing: framing.unwrap_or_default(),
            patience: patience.unwrap_or(PATIENCE),
            longest: longest.map_or(LONGEST, |size| size.0),
            connection: None,
        })
    }

    async fn run(
        &mut self,
        message: Message,
        out: Option<&impl AsyncOut<Message>>,
        sent: Option<&impl AsyncOut<Message>>,
    ) -> Result<(), Attempt<Message>> {
        match self.deliver(&message, out).await {
            Ok(()) => report(message, sent).await,
            Err(why) => return Err(Attempt::first(message, why)),
        }
        Ok(())
    }

    #[port]
    async fn again(
        &mut self,
        attempt: Attempt<Message>,
        out: Option<&impl AsyncOut<Message>>,
        sent: Option<&impl AsyncOut<Message>>,
    ) -> Result<(), Attempt<Message>> {
        match self.deliver(&attempt.item, out).await {
            Ok(()) => report(attempt.item, sent).await,
            Err(why) => return Err(attempt.failed(why)),
        }
        Ok(())
    }
}

impl TcpSend {
    async fn deliver(
        &mut self,
        message: &Message,
        out: Option<&impl AsyncOut<Message>>,
    ) -> Result<(), String> {
        // A connection is kept only after a complete exchange; otherwise its state is unknown.
        let (connection, mut decoder) = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.write(&message.bytes, self.patience).await?;
        if let Some(out) = out {
            let answer = timeout(self.patience, answer(&connection, &mut decoder));
            let answer = answer
                .await
                .map_err(|_| format!("{} did not answer within {:?}", self.to, self.patience))??;
            out.send(Message::new(message.peer.clone(), answer)).await;
        }
        self.connection = Some((connection, decoder));
        Ok(())
    }

    async fn connect(&self) -> Result<(Connection, Decoder), String> {
        let options = TcpStream::builder().timeout(self.patience).nodelay(true);
        let stream = options.connect(self.to).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let connection = Connection::new(stream, self.framing, self.to, false);
        Ok((connection, Decoder::new(self.framing, self.longest)))
    }
}

/// Reads one message.
async fn answer(connection: &Connection, decoder: &mut Decoder) -> Result<Vec<u8>, String> {
    let mut buffer = [0; 1024];
    loop {
        let mut messages = decoder.messages().map_err(|error| error.to_string())?;
        match (messages.pop(), messages.is_empty()) {
            (Some(message), true) => return Ok(message),
            (Some(_), false) => return Err("the server sent more than one answer".to_owned()),
            (None, _) => {}
        }
        match connection.stream.read(&mut buffer).await {
            Ok(0) => return Err("the server closed the connection".to_owned()),
            Ok(len) => decoder.push(&buffer[..len]),
            Err(error) => return Err(error.to_string()),
        }
    }
}
