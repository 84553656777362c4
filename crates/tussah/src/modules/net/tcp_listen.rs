//! A source of messages from TCP connections.

use std::convert::Infallible;
use std::fmt::Display;
use std::io::ErrorKind as Kind;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use super::peer::{Connection, Peer};
use super::tcp_demand::Demanders;
use crate::Scope;
use crate::flow::{AsyncOut, Period, Size, module};
use crate::modules::Message;
use crate::modules::framing::{Decoder, Framing, LONGEST};
use crate::net::TcpListener;
use crate::sync::mpsc::{Sender, channel};
use crate::time::{sleep, timeout};

/// Accepts TCP connections, and sends the messages that arrive over them to `out`. Each connection
/// is a flow.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `listen` | address | the address; port 0 selects a free port |
/// | `framing` | text, default `"lines"` | `"lines"`, or `"lengths"` for frames that start with their length |
/// | `connections` | count, at least 1, default 10,000 | the maximum number of open connections; further ones wait |
/// | `longest` | size, default 64 KiB | the maximum length of a message; a longer one closes the connection |
/// | `on_demand` | flag, default `false` | whether messages are read on demand |
/// | `idle` | duration, above 0, optional | the time without input after which a connection is closed |
///
/// A frame starts with its length in four bytes, most significant byte first. A line ends with a
/// line feed; a carriage return before the line feed is not part of the line.
///
/// | port | items | meaning |
/// |---|---|---|
/// | output `out` | [`Message`] | a received message, whose peer is the connection |
/// | output `listening`, optional | `SocketAddr` | the address of the listener, sent once |
///
/// While the graph cannot accept more messages from a connection, the source does not read from
/// that connection. The flow of a connection ends when the client has finished sending. The
/// connection stays open for replies as long as a message or a module holds the connection's
/// [`Peer`]. If a message is too long, or if a read fails other than by a reset or a timeout, the
/// source closes the connection and logs the reason.
///
/// With `on_demand`, the source reads the first message of a connection, and each further message
/// when [`TcpDemand`](super::TcpDemand) asks for it. Without a [`Peer`] of the connection, no one
/// can ask for more, so the source closes the connection when the last one is dropped. The source
/// fails if the runtime has no instance of [`TcpDemand`](super::TcpDemand).
#[module]
pub struct TcpListen {
    listener: Arc<TcpListener>,
    address: SocketAddr,
    limits: Limits,
}

/// How a connection is read.
#[derive(Clone, Copy)]
struct Limits {
    framing: Framing,
    longest: u64,
    idle: Option<Duration>,
    on_demand: bool,
}

/// An arrival on a connection, with the number of the connection.
enum Arrival {
    Message(u64, Message),
    End(u64),
}

/// Bound, in connections: the default maximum number of open connections; further ones wait.
const CONNECTIONS_MAX: usize = 10_000;
/// The maximum number of arrivals queued between the readers of connections and the output port.
/// Most messages wait in the queue of the port's receiver instead.
const ARRIVALS_MAX: usize = 16;
/// The maximum length of one read, in bytes.
const READ_MAX: usize = 16 << 10;
/// The pause after an error of accepting, so that a lasting one does not take a whole CPU.
const PAUSE: Duration = Duration::from_millis(10);

#[module]
impl TcpListen {
    fn init(
        listen: SocketAddr,
        framing: Option<Framing>,
        connections: Option<NonZeroUsize>,
        longest: Option<Size>,
        idle: Option<Period>,
        on_demand: Option<bool>,
    ) -> Result<Self, String> {
        let connections = connections.map_or(CONNECTIONS_MAX, NonZeroUsize::get);
        let options = TcpListener::builder().connections_max(connections);
        let listener = options.bind(listen).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        Ok(Self {
            listener: Arc::new(listener),
            address,
            limits: Limits {
                framing: framing.unwrap_or_default(),
                longest: longest.map_or(LONGEST, |size| size.0),
                idle: idle.map(Period::get),
                on_demand: on_demand.unwrap_or(false),
            },
        })
    }

    async fn start(
        &self,
        out: &impl AsyncOut<Message>,
        listening: Option<&impl AsyncOut<SocketAddr>>,
    ) -> Result<(), String> {
        if self.limits.on_demand && !Demanders::exist() {
            let why = "`on_demand` is true, but no `TcpDemand` asks for messages: add one, or \
                       leave `on_demand` out";
            return Err(why.to_owned());
        }
        if let Some(listening) = listening {
            listening.send(self.address).await;
        }
        let (sender, mut arrivals) = channel(ARRIVALS_MAX);
        let (listener, limits) = (Arc::clone(&self.listener), self.limits);
        // The readers end with the scope, so a graph that is stopped reads nothing more.
        let ended = crate::scope(|scope: Scope<Infallible>| async move {
            scope.spawn(accept(listener, limits, scope.clone(), sender));
            while let Ok(arrival) = arrivals.recv().await {
                match arrival {
                    Arrival::Message(number, message) => out.to(number, message).await,
                    Arrival::End(number) => out.close(number),
                }
            }
            Ok(())
        });
        let Ok(()) = ended.await;
        Ok(())
    }
}

/// Starts a reader for each connection, forever.
async fn accept(
    listener: Arc<TcpListener>,
    limits: Limits,
    scope: Scope<Infallible>,
    arrivals: Sender<Arrival>,
) -> Result<(), Infallible> {
    for number in 0u64.. {
        let (stream, address) = loop {
            match listener.accept().await {
                Ok(accepted) => break accepted,
                Err(error) => {
                    tracing::warn!(target: "tussah::modules", "cannot accept a connection: {error}");
                    sleep(PAUSE).await;
                }
            }
        };
        let connection = Connection::new(stream, limits.framing, address, limits.on_demand);
        let reader = Reader {
            connection: Arc::new(connection),
            limits,
            number,
        };
        let arrivals = arrivals.clone();
        scope.spawn(async move {
            reader.read(&arrivals).await;
            // Fails if the graph is gone, with all of its flows.
            let _ = arrivals.send(Arrival::End(number)).await;
            Ok(())
        });
    }
    Ok(())
}

/// The reader of a connection.
struct Reader {
    connection: Arc<Connection>,
    limits: Limits,
    number: u64,
}

/// The error of a connection that is not read further: no one takes or demands its messages.
struct Unwanted;

impl Reader {
    /// Sends the messages of the connection until it ends.
    async fn read(mut self, arrivals: &Sender<Arrival>) {
        let mut decoder = Decoder::new(self.limits.framing, self.limits.longest);
        let mut buffer = vec![0; READ_MAX];
        loop {
            match self.receive(&mut buffer).await {
                Some(0) => break,
                Some(len) => decoder.push(&buffer[..len]),
                None => return self.close(),
            }
            loop {
                match decoder.messages() {
                    Ok(messages) if messages.is_empty() => break,
                    Ok(messages) => {
                        for bytes in messages {
                            self = match self.pass(bytes, arrivals).await {
                                Ok(reader) => reader,
                                Err(Unwanted) => return,
                            }
                        }
                    }
                    Err(error) => {
                        self.report(&error);
                        return self.close();
                    }
                }
            }
        }
        if let Some(bytes) = decoder.rest() {
            // Fails if the graph is gone.
            let _ = arrivals.send(self.arrival(bytes)).await;
        }
    }

    /// Receives bytes. Returns `None` if the connection is broken, so that no one can read a reply,
    /// or if it was idle for too long.
    async fn receive(&self, buffer: &mut [u8]) -> Option<usize> {
        let reading = self.connection.stream.read(buffer);
        let read = match self.limits.idle {
            None => reading.await,
            Some(idle) => timeout(idle, reading).await.ok()?,
        };
        let read = read.inspect_err(|error| {
            // If the client or the network ended it, that needs no message.
            if !matches!(error.kind(), Kind::ConnectionReset | Kind::TimedOut) {
                self.report(error);
            }
        });
        read.ok()
    }

    /// Sends a message, and waits for the demand for the next one.
    async fn pass(mut self, bytes: Vec<u8>, arrivals: &Sender<Arrival>) -> Result<Self, Unwanted> {
        let demanded = self.connection.demanded();
        let sent = arrivals.send(self.arrival(bytes)).await;
        sent.map_err(|_| Unwanted)?;
        if let Some(demanded) = demanded {
            // Fails if the last peer of the connection is dropped without a demand.
            drop(self.connection);
            self.connection = demanded.await.map_err(|_| Unwanted)?;
        }
        Ok(self)
    }

    fn arrival(&self, bytes: Vec<u8>) -> Arrival {
        Arrival::Message(
            self.number,
            Message::new(Peer::tcp(&self.connection), bytes),
        )
    }

    /// Logs the reason for which the connection is closed.
    fn report(&self, why: &dyn Display) {
        let peer = self.connection.stream.peer_addr().ok();
        tracing::warn!(target: "tussah::modules", ?peer, "closing a connection: {why}");
    }

    /// Closes the connection for all senders.
    fn close(&self) {
        // Fails if the client has gone.
        let _ = self.connection.stream.shutdown(std::net::Shutdown::Both);
    }
}
