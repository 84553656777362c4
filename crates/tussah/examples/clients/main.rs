//! Sums up an access log by clients: a flow graph with a flow for each client.
//!
//! ```text
//! cargo run --example clients -- access.log lost.txt
//! ```
//!
//! The graph is in `clients.weave`; `tussah draw crates/tussah/examples/clients/clients.weave`
//! draws it. Lines in another format go to the second file.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use tussah::flow::{AsyncOut, Flow, Out, Params, Value, module, weave_file};

weave_file!("clients.weave");

/// A line of the log, with its number.
struct Line(u64, String);

/// A request: the number of bytes of its response.
struct Request(u64);

/// The sums of a client.
struct Summary {
    client: String,
    requests: u64,
    bytes: u64,
}

/// Reads the lines of a file, each in the flow of its first word.
struct Lines(String);

#[module]
impl Lines {
    fn init(file: PathBuf) -> Result<Self, String> {
        let text = std::fs::read_to_string(&file);
        let text = text.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        Ok(Self(text))
    }

    async fn start(&self, out: &impl AsyncOut<Line>) {
        let client = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
        for (number, line) in (1..).zip(self.0.lines()) {
            out.to(client(line), Line(number, line.to_owned())).await;
        }
        // A flow ends when its last line has been handled.
        for line in self.0.lines() {
            out.close(client(line));
        }
    }
}

/// Parses lines; any number of them at a time.
#[derive(Default)]
struct Parse;

#[module]
impl Parse {
    fn run(&self, line: Line, out: &impl Out<Request>, bad: &impl Out<Line>) {
        // `host ident user [time] "request" status bytes`
        let rest = line.1.rsplit('"').next().unwrap_or_default();
        let mut words = rest.split_whitespace();
        let status = words.next().and_then(|status| status.parse::<u16>().ok());
        let bytes = words.next().map(|bytes| bytes.parse().unwrap_or(0));
        match (status, bytes) {
            (Some(_), Some(bytes)) => out.send(Request(bytes)),
            _ => bad.send(line),
        }
    }
}

/// Adds the requests of each client; one request of a client at a time.
#[derive(Default)]
struct Client;

#[module]
impl Client {
    fn run(&self, request: Request, (requests, bytes): &mut (u64, u64)) {
        *requests += 1;
        *bytes += request.0;
    }

    fn end(&self, (requests, bytes): (u64, u64), flow: &Flow, out: &impl Out<Summary>) {
        let client = flow.key().map(ToString::to_string).unwrap_or_default();
        out.send(Summary {
            client,
            requests,
            bytes,
        });
    }
}

/// Prints the sums; one at a time.
#[derive(Default)]
struct Report;

#[module]
impl Report {
    fn run(&mut self, summary: Summary) {
        let Summary {
            client,
            requests,
            bytes,
        } = summary;
        println!("{client}: {requests} requests, {bytes} bytes");
    }
}

/// Writes the lines that could not be parsed to a file.
struct Lost(std::fs::File);

#[module]
impl Lost {
    fn init(file: PathBuf) -> Result<Self, String> {
        let created = std::fs::File::create(&file);
        let created = created.map_err(|error| format!("cannot create {}: {error}", file.display()));
        Ok(Self(created?))
    }

    fn run(&mut self, Line(number, text): Line) {
        if let Err(error) = writeln!(self.0, "{number}: {text}") {
            eprintln!("line {number} is lost: {error}");
        }
    }
}

/// Returns the values of the graph's parameters from the command line.
fn params() -> Option<Params> {
    let mut arguments = std::env::args().skip(1);
    let log = Value::Text(arguments.next()?);
    let params = Params::new().with("log", log);
    Some(match arguments.next() {
        None => params,
        Some(lost) => params.with("lost", Value::Text(lost)),
    })
}

async fn run(params: &Params) -> Result<(), Box<dyn std::error::Error>> {
    Clients::graph(params)?.start()?.drain().await;
    Ok(())
}

fn main() -> ExitCode {
    let Some(params) = params() else {
        eprintln!("usage: clients LOG [LOST]");
        return ExitCode::from(2);
    };
    let runtime = tussah::Runtime::builder().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(run(&params)),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("clients: {error}");
            ExitCode::FAILURE
        }
    }
}
