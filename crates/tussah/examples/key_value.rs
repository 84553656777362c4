//! A server that keeps values under keys. Clients send lines, such as `set color blue` and
//! `get color`.

use std::collections::BTreeMap;
use std::io;

use futures_lite::future::or;
use futures_lite::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tussah::net::{TcpListener, TcpStream};
use tussah::signal::{Signal, signal};
use tussah::sync::watch;
use tussah::time::{Duration, timeout};
use tussah::{Colored, scope, spawn};

/// The maximum length of a line, in bytes.
const LINE_MAX: u64 = 1024;
/// The maximum time between two answers.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The values by key: shared state, which needs no lock.
type Store = Colored<BTreeMap<String, String>>;

/// Reads the next line. Returns `None` if the client has ended the connection.
async fn next_line(reader: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut limited = reader.take(LINE_MAX);
    limited.read_until(b'\n', &mut line).await?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => {
            let line = String::from_utf8_lossy(&line);
            Ok(Some(line.trim_end_matches('\r').to_owned()))
        }
        Some(_) => Err(io::Error::other("a line is too long, or has no end")),
    }
}

async fn answer(store: &Store, line: &str) -> String {
    match line.splitn(3, ' ').collect::<Vec<_>>()[..] {
        ["set", key, value] => {
            let (key, value) = (key.to_owned(), value.to_owned());
            store.with(move |store| store.insert(key, value)).await;
            "ok".to_owned()
        }
        ["get", key] => {
            let key = key.to_owned();
            let value = store.with(move |store| store.get(&key).cloned()).await;
            value.unwrap_or_else(|| "no such key".to_owned())
        }
        _ => "expected `set KEY VALUE` or `get KEY`".to_owned(),
    }
}

/// Answers the lines of a client, until the client or the server ends the connection.
async fn serve(stream: TcpStream, store: Store, stop: watch::Receiver<bool>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut stop = stop.clone();
        let stopped = async {
            let _ = stop.wait_for(|stop| *stop).await;
            Ok(None)
        };
        let turn = async {
            let Some(line) = or(stopped, next_line(&mut reader)).await? else {
                return Ok(false);
            };
            let answer = answer(&store, &line).await + "\n";
            reader.get_ref().write_all(answer.as_bytes()).await?;
            io::Result::Ok(true)
        };
        if !timeout(SILENCE_MAX, turn).await?? {
            return Ok(());
        }
    }
}

#[tussah::main]
async fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:7014".to_owned());
    let listener = TcpListener::builder().connections_max(1000).bind(address)?;
    println!("listening on {}", listener.local_addr()?);

    let store = Colored::new(BTreeMap::new());
    let (interrupt, terminate) = (signal(Signal::INT)?, signal(Signal::TERM)?);
    let (stop, stopping) = watch::channel(false);
    scope(async move |connections| {
        let accept = async {
            loop {
                let (stream, peer) = listener.accept().await?;
                let (store, stopping) = (store.clone(), stopping.clone());
                connections.spawn(async move {
                    if let Err(error) = serve(stream, store, stopping).await {
                        eprintln!("{peer}: {error}");
                    }
                    io::Result::Ok(()) // an error would end the other connections, too
                });
            }
        };
        or(or(interrupt.recv(), terminate.recv()), accept).await?;
        stop.send_replace(true);
        println!("stopping (signal again to quit now)");
        spawn(async move {
            let _ = or(interrupt.recv(), terminate.recv()).await;
            std::process::exit(1)
        });
        Ok(()) // the scope waits for the connections
    })
    .await?;
    println!("stopped");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tussah::test]
    async fn a_value_is_kept() {
        let store = Colored::new(BTreeMap::new());
        assert_eq!(answer(&store, "set color light blue").await, "ok");
        assert_eq!(answer(&store, "get color").await, "light blue");
        assert_eq!(answer(&store, "get size").await, "no such key");
    }
}
