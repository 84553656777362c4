//! A server of two stages: one cuts what comes into lines, the other answers each line with its number.
//!
//! `cargo run --release --example echo_stages -- 127.0.0.1:7007`, and then `nc 127.0.0.1 7007`. Ctrl-C ends it, and prints the network in the
//! language of Graphviz.

use std::error::Error;
use std::sync::Mutex;

use tussah::net::TcpListener;
use tussah::signal::{Signal, signal};
use tussah::stage::net::{Closed, Connection, SocketEvent, Sockets};
use tussah::stage::{Batch, Handler, Network, Sender};

/// Bound, in bytes: how long a line may be; who sends a longer one is cut off.
const LINE_MAX: usize = 4096;

/// A line, and whom to answer.
struct Line {
    connection: Connection,
    number: u64,
    text: Vec<u8>,
}

/// What is kept with a connection.
#[derive(Default)]
struct Progress {
    lines: u64,
    /// The beginning of a line whose end has not come.
    rest: Vec<u8>,
}

/// Cuts what comes into lines.
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
                SocketEvent::Closed(connection, Closed::Failed(error)) => {
                    eprintln!("connection {} has failed: {error}", connection.id());
                }
                SocketEvent::AcceptFailed(_, error) | SocketEvent::Stopped(_, Some(error)) => {
                    eprintln!("the listener has failed: {error}");
                }
                // Nothing else needs an answer. A connection closes when the peer has ended, and nobody has it any more.
                _ => {}
            }
        }
    }
}

fn lines(connection: &Connection, bytes: &[u8]) -> Vec<Line> {
    let progress: &Mutex<Progress> = connection.data();
    let mut progress = progress.lock().expect("nobody panics with it");
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

/// Answers each line with its number.
struct Answer;

impl Handler for Answer {
    type Event = Line;

    async fn handle(&self, batch: &mut Batch<Line>) {
        while let Some(line) = batch.next() {
            let answer = [format!("{}: ", line.number).as_bytes(), &line.text].concat();
            // Who does not read the answers is cut off by that; there is nothing else to be done.
            let _ = line.connection.try_send(answer);
        }
    }
}

#[tussah::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
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
