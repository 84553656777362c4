//! A colored structure inside a tokio program.
//!
//! This is a score board behind a TCP server. tokio handles the network. The board is colored
//! state, so its handlers need no lock, never block an OS thread of tokio, and run in order. The
//! futures of tussah run on any executor.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tussah::{Colored, Runtime};

type Board = Colored<BTreeMap<String, u64>>;

const CLIENTS: u64 = 50;

fn main() -> io::Result<()> {
    let colors = Runtime::builder().workers(1).name("board").build()?;
    let board = Board::new_in(&colors, BTreeMap::new());
    let tokio = tokio::runtime::Runtime::new()?;
    tokio.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(serve(listener, board.clone()));

        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| tokio::spawn(client(address, n)))
            .collect();
        for client in clients {
            client.await??;
        }
        board
            .read(|board| {
                board
                    .iter()
                    .for_each(|(player, points)| println!("{player:>6} {points}"))
            })
            .await;
        Ok(())
    })
}

async fn serve(listener: TcpListener, board: Board) {
    while let Ok((stream, _)) = listener.accept().await {
        let board = board.clone();
        tokio::spawn(async move {
            if let Err(error) = connection(stream, &board).await {
                eprintln!("inside_tokio: a connection failed: {error}");
            }
        });
    }
}

/// Handles lines of the form `player points`. Replies to each line with the player's new total.
async fn connection(stream: TcpStream, board: &Board) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    while let Some(line) = lines.next_line().await? {
        let reply = match parse(&line) {
            Some((player, points)) => {
                let total = board.with(move |board| {
                    let total = board.entry(player).or_default();
                    *total += points;
                    *total
                });
                format!("{}\n", total.await)
            }
            None => format!("expected `player points`, got {line:?}\n"),
        };
        write.write_all(reply.as_bytes()).await?;
    }
    Ok(())
}

fn parse(line: &str) -> Option<(String, u64)> {
    let (player, points) = line.split_once(' ')?;
    Some((player.to_owned(), points.parse().ok()?))
}

async fn client(address: SocketAddr, n: u64) -> io::Result<()> {
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    let player = ["ada", "grace", "barbara"][n as usize % 3];
    for points in 1..=10 {
        stream
            .write_all(format!("{player} {points}\n").as_bytes())
            .await?;
        let mut total = String::new();
        stream.read_line(&mut total).await?;
        total
            .trim()
            .parse::<u64>()
            .map_err(|_| io::Error::other(total))?;
    }
    Ok(())
}
