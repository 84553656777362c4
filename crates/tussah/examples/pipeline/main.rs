//! A pipeline for access logs: parses each line, adds the sums of its client, and sends it to a
//! server. Lines that cannot be sent are tried again, and then written to a file.
//!
//! ```text
//! cargo run -p tussah --features cli --example pipeline -- \
//!     run crates/tussah/examples/pipeline/pipeline.weave --log access.log --to 127.0.0.1:9000
//! ```

use std::net::SocketAddr;
use std::process::ExitCode;

use tussah::flow::{Fields, Out, cli, module};
use tussah::modules::{self, Message};

/// A line of the log, with the parts that the pipeline needs.
#[derive(Clone, Debug, Fields)]
struct Request {
    client: String,
    bytes: u64,
    #[fields(skip)]
    line: Message,
}

/// Parses lines; any number of them at a time.
#[derive(Default)]
struct Parse;

#[module]
impl Parse {
    fn run(&self, line: Message, out: &impl Out<Request>, bad: &impl Out<Message>) {
        // `host ident user [time] "request" status bytes`
        let text = line.text();
        let client = text.split_whitespace().next().map(str::to_owned);
        let mut words = text
            .rsplit('"')
            .next()
            .unwrap_or_default()
            .split_whitespace();
        let status = words.next().and_then(|status| status.parse::<u16>().ok());
        let bytes = words.next().map(|bytes| bytes.parse().unwrap_or(0));
        match (client, status, bytes) {
            (Some(client), Some(_), Some(bytes)) => out.send(Request {
                client,
                bytes,
                line,
            }),
            _ => bad.send(line),
        }
    }
}

/// The sums of a client.
#[derive(Default)]
struct Sums {
    requests: u64,
    bytes: u64,
}

/// Puts the sums of its client in front of each line; one line of each client at a time, in order.
#[derive(Default)]
struct Enrich;

#[module]
impl Enrich {
    fn run(&self, request: Request, sums: &mut Sums, out: &impl Out<Message>) {
        sums.requests += 1;
        sums.bytes += request.bytes;
        let Sums { requests, bytes } = sums;
        let text = format!("{requests} {bytes} {}", request.line.text());
        out.send(Message::new(request.line.peer, text));
    }
}

/// Prints the address at which the pipeline listens.
#[derive(Default)]
struct Ready;

#[module]
impl Ready {
    fn run(&self, address: SocketAddr) {
        println!("listening at {address}");
    }
}

fn main() -> ExitCode {
    let modules = modules::standard()
        .and(modules::by_field::<Request>())
        .with::<Parse>("Parse")
        .with::<Enrich>("Enrich")
        .with::<Ready>("Ready");
    cli::main("pipeline", modules)
}
