//! A server with two stages: one splits the input into lines, and the other replies to each line
//! with its number.
//!
//! Run `cargo run --release --example echo_stages -- 127.0.0.1:7007`, and then `nc 127.0.0.1 7007`.
//! Ctrl-C ends it and prints the network in Graphviz format.

use std::error::Error;
use std::sync::Mutex;

use tussah::net::TcpListener;
use tussah::signal::{Signal, signal};
use tussah::stage::net::{CloseReason, Connection, SocketEvent, Sockets};
use tussah::stage::{Batch, Handler, Network, Sender};

/// Bound, in bytes: the longest line. A client that sends a longer one is disconnected.
const LINE_MAX: usize = 4096;

/// A line and the connection for the reply.
struct Line {
    connection: Connection,
    number: u64,
    text: Vec<u8>,
}

/// The state of a connection.
#[derive(Default)]
struct Progress {
    lines: u64,
    /// The start of an incomplete line.
    rest: Vec<u8>,
}

/// Splits the input into lines.
struct Cut(Sender<Line>);

impl Handler for Cut {
    type Event = SocketEvent;

    async fn handle(&self, batch: &mut Batch<SocketEvent>) {
        while let Some(event) = batch.next() {
            match event {
                SocketEvent::Packet(connection, bytes) => {
                    for line in lines(&connection, &bytes) {
                        if self.0.send(line).await.is_err() {
                            break; // the server ends
                        }
                    }
                }
                SocketEvent::Closed(connection, CloseReason::Failed(error)) => {
                    eprintln!("connection {} failed: {error}", connection.id());
                }
                SocketEvent::AcceptFailed(_, error) | SocketEvent::Stopped(_, Some(error)) => {
                    eprintln!("the listener failed: {error}");
                }
                // Other events require no action. A connection is closed when the peer has closed
                // it and nothing here holds it any more.
                _ => {}
            }
        }
    }
}

fn lines(connection: &Connection, bytes: &[u8]) -> Vec<Line> {
    let progress: &Mutex<Progress> = connection.data();
    let mut progress = progress.lock().expect("no holder panics");
    progress.rest.extend(bytes);
    let end = progress.rest.iter().rposition(|&byte| byte == b'\n');
    let rest = progress.rest.split_off(end.map_or(0, |end| end + 1));
    let whole = std::mem::replace(&mut progress.rest, rest);
    if progress.rest.len() > LINE_MAX {
        connection.break_off();
    }
    let texts = whole.split_inclusive(|&byte| byte == b'\n');
    let mut line = |text: &[u8]| {
        progress.lines += 1;
        Line {
            connection: connection.clone(),
            number: progress.lines,
            text: text.to_vec(),
        }
    };
    texts.map(&mut line).collect()
}

/// Replies to each line with its number.
struct Answer;

impl Handler for Answer {
    type Event = Line;

    async fn handle(&self, batch: &mut Batch<Line>) {
        while let Some(line) = batch.next() {
            let answer = [format!("{}: ", line.number).as_bytes(), &line.text].concat();
            // A client that does not read the replies is disconnected; there is nothing else to do.
            let _ = line.connection.try_send(answer);
        }
    }
}

#[tussah::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:7007"))?;
    let interrupted = signal(Signal::INT)?;

    let network = Network::new("echo");
    let answer = network
        .stage("answer")
        .keyed_by(|line: &Line| line.connection.id())
        .handler(|_| Ok(Answer))?;
    let cut = network
        .stage("cut")
        .keyed_by(SocketEvent::id) // the packets of a connection stay in order
        .handler(|edges| Ok(Cut(edges.to(&answer).queue(1000)?)))?;
    let sockets = Sockets::new(&network, "sockets")?;
    let server = sockets.listen(listener, &cut.sender())?;
    println!("listening at {}", server.local());

    interrupted.recv().await?;
    sockets.close();
    sockets.settled().await;
    cut.drain().await;
    answer.drain().await;
    print!("{}", network.graph().to_dot());
    Ok(())
}
