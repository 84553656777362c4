//! The command `tap`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use futures_util::future::{Either, select};
use serde_json::Value;

use super::control::is_socket;
use super::source::{fail, print_error, printable};
use crate::net::UnixStream;
use crate::signal::{Signal, signal};

/// Show the items that a running graph sends along an edge.
///
/// The graph must run with `--control SOCKET`. A tap never makes the graph wait: it skips items
/// that arrive too fast, and counts the skipped items.
///
/// Exits with 0 on success, with 1 if the graph has no such edge or already serves 16 clients, and
/// with 2 if the connection fails or the output cannot be written.
#[derive(Args)]
pub struct TapArguments {
    /// Socket that `run --control` has created
    socket: PathBuf,
    /// Edge, such as 'a -> b.port', or an output port with one edge [default: list the edges]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    edge: Option<String>,
    /// Exit after this number of items
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print each item as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Bound, in bytes: the maximum length of a line of the answer; the command `tap` rejects a longer
/// one. An item and its flow are shown with up to 4096 bytes each, and JSON needs up to six bytes
/// for each of them.
pub(super) const LINE_MAX: usize = 64 << 10;

/// The reason why the command ends early.
enum End {
    /// The graph has no such edge, or takes no more clients.
    Refused(String),
    /// The socket is not that of a graph.
    Strange,
    /// There is no connection, for this reason.
    Unconnected(String),
    /// The connection is broken.
    Broken(io::Error),
    /// The standard output takes no more, although it has a reader.
    Unprinted(io::Error),
    /// All items that were asked for are there, or nobody reads them any more.
    Enough,
}

impl TapArguments {
    pub(super) fn run(&self) -> ExitCode {
        let runtime = crate::Runtime::builder().workers(1).build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return fail(&format!("cannot start a runtime: {error}")),
        };
        runtime.block_on(async {
            let signals = match signal(Signal::INT) {
                Ok(signals) => signals,
                Err(error) => return fail(&error.to_string()),
            };
            let mut skipped = 0;
            let shown = {
                let show = std::pin::pin!(self.show(&mut skipped));
                match select(show, std::pin::pin!(signals.recv())).await {
                    Either::Left((shown, _)) => shown,
                    Either::Right(_) => Err(End::Enough),
                }
            };
            if skipped > 0 {
                print_error(&format!("{skipped} items were skipped\n"));
            }
            let socket = self.socket.display();
            match shown {
                Ok(()) if self.edge.is_some() => {
                    print_error("the graph has ended\n");
                    ExitCode::SUCCESS
                }
                Ok(()) | Err(End::Enough) => ExitCode::SUCCESS,
                Err(End::Refused(why)) => {
                    print_error(&format!("error: {why}\n"));
                    ExitCode::FAILURE
                }
                Err(End::Strange) => {
                    fail(&format!("{socket} is not the control socket of a graph"))
                }
                Err(End::Unconnected(why)) => fail(&format!("cannot connect to {socket}: {why}")),
                Err(End::Broken(error)) => fail(&format!("cannot read from {socket}: {error}")),
                Err(End::Unprinted(error)) => {
                    fail(&format!("cannot write to the standard output: {error}"))
                }
            }
        })
    }

    /// Connects, and prints items until there are no more.
    async fn show(&self, skipped: &mut u64) -> Result<(), End> {
        let stream = UnixStream::connect(&self.socket).await;
        let stream = stream.map_err(|error| self.not_connected(&error))?;
        self.follow(&stream, skipped).await
    }

    /// Prints items until there are no more.
    async fn follow(&self, stream: &UnixStream, skipped: &mut u64) -> Result<(), End> {
        let request = match &self.edge {
            Some(edge) => format!("tap {}\n", edge.replace('\n', " ")),
            None => "edges\n".to_owned(),
        };
        // A graph that serves no further client may answer and disconnect before the request.
        let requested = stream.write_all(request.as_bytes()).await;
        let (mut bytes, mut buffer) = (Vec::new(), vec![0; 65536]);
        let mut items = 0;
        loop {
            let len = stream.read(&mut buffer).await.map_err(End::Broken)?;
            if len == 0 {
                return requested.map_err(End::Broken);
            }
            bytes.extend(&buffer[..len]);
            while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = bytes.drain(..=end).collect();
                let object: Value = serde_json::from_slice(&line).map_err(|_| End::Strange)?;
                self.line(&object, skipped)?;
                items += u64::from(object.get("item").is_some());
                if self.count == Some(items) {
                    return Err(End::Enough);
                }
            }
            if bytes.len() > LINE_MAX {
                return Err(End::Strange);
            }
        }
    }

    /// Prints a line of the answer.
    fn line(&self, object: &Value, skipped: &mut u64) -> Result<(), End> {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let printed = if let Some(error) = text("error") {
            return Err(End::Refused(error.to_owned()));
        } else if let Some(edge) = text("edge") {
            edge.to_owned()
        } else if let Some(more) = object.get("skipped").and_then(Value::as_u64) {
            *skipped += more;
            if !self.json {
                return Ok(());
            }
            object.to_string()
        } else if let Some(item) = text("item") {
            let item = printable(item);
            match object.get("flow") {
                _ if self.json => object.to_string(),
                None => item,
                Some(Value::String(flow)) => {
                    format!("[{}] {item}", printable(flow))
                }
                Some(flow) => format!("[{flow}] {item}"),
            }
        } else {
            return Err(End::Strange);
        };
        let mut stdout = io::stdout().lock();
        let printed = writeln!(stdout, "{printed}").and_then(|()| stdout.flush());
        printed.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => End::Enough,
            _ => End::Unprinted(error),
        })
    }

    fn not_connected(&self, error: &io::Error) -> End {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "there is no such socket; start the graph with --control",
            // The system also refuses a connection to a file of another type.
            io::ErrorKind::ConnectionRefused if !is_socket(&self.socket) => {
                "it is not a socket; expected the socket of `run --control`"
            }
            io::ErrorKind::ConnectionRefused => "its process has ended",
            io::ErrorKind::PermissionDenied => {
                "permission denied (only the user that runs the graph may connect)"
            }
            _ => return End::Unconnected(error.to_string()),
        };
        End::Unconnected(why.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net;

    use super::*;

    #[test]
    fn an_answer_that_comes_before_the_request_is_read() {
        let tap = TapArguments {
            socket: PathBuf::new(),
            edge: Some("a -> b".to_owned()),
            count: None,
            json: false,
        };
        let runtime = crate::Runtime::builder().workers(1).build();
        let follow = |answer: &[u8]| {
            let (ours, mut graph) = net::UnixStream::pair().expect("two sockets");
            graph.write_all(answer).expect("there is room");
            drop(graph);
            runtime.as_ref().expect("a runtime").block_on(async {
                let stream = UnixStream::from_std(ours).expect("a stream");
                tap.follow(&stream, &mut 0).await
            })
        };
        let refused = follow(b"{\"error\": \"16 clients are connected already\"}\n");
        assert!(matches!(refused, Err(End::Refused(why)) if why.starts_with("16 clients")));
        assert!(matches!(follow(b""), Err(End::Broken(_))));
    }
}
