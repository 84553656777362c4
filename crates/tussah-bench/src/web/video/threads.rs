//! The peer of the paper: a video server with an OS thread for each stream.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;

use super::CHUNK_S;

/// Serve videos with an OS thread for each stream.
#[derive(Debug, Parser)]
#[command(name = "tussah-bench video-serve")]
struct Options {
    #[arg(long)]
    port: u16,
    /// Rate of each stream, in bytes per second
    #[arg(long)]
    rate: u64,
    #[arg(long)]
    ahead_s: u32,
    root: PathBuf,
}

/// The stack of an OS thread.
const STACK_BYTES: usize = 128 << 10;

/// The part of a chunk that is read at a time. It is on the stack, because thousands of OS threads
/// have little memory each.
const BUFFER_BYTES: usize = 32 << 10;

/// Runs the server until the process ends.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let options = Options::parse_from(std::iter::once("video-serve".to_owned()).chain(arguments));
    if let Err(error) = serve(options) {
        eprintln!("tussah-bench video-serve: {error}");
    }
    ExitCode::FAILURE
}

fn serve(options: Options) -> io::Result<()> {
    // The allocator asks for huge pages, which would take 2 MB for each few streams.
    rustix::thread::disable_transparent_huge_pages(true)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
    rustix::net::listen(&listener, 4096)?;
    if let Err(error) = crate::descriptors::allow(40_000) {
        eprintln!("{error}");
    }
    let options = Arc::new(options);
    loop {
        let (stream, _) = listener.accept()?;
        let options = Arc::clone(&options);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        // A client that leaves ends its stream.
        thread.spawn(move || drop(play(stream, &options)))?;
    }
}

fn play(mut stream: TcpStream, options: &Options) -> io::Result<()> {
    let (path, from) = request(&stream)?;
    let file = File::open(Path::new(&options.root).join(path.trim_start_matches('/')))?;
    let len = file.metadata()?.len();
    write!(
        stream,
        "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {from}-{}/{len}\r\n\r\n",
        len.saturating_sub(from),
        len - 1
    )?;
    let chunk = options.rate * u64::from(CHUNK_S);
    // Memory is too small for reading ahead in all streams.
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random)?;
    let mut buffer = [0; BUFFER_BYTES];
    let (begin, mut at) = (Instant::now(), from);
    while at < len {
        let plays = Duration::from_secs_f64((at - from) as f64 / options.rate as f64);
        let due = plays.saturating_sub(Duration::from_secs((options.ahead_s - CHUNK_S).into()));
        std::thread::sleep(due.saturating_sub(begin.elapsed()));
        let end = len.min(at + chunk);
        while at < end {
            let part = &mut buffer[..BUFFER_BYTES.min((end - at) as usize)];
            file.read_exact_at(part, at)?;
            stream.write_all(part)?;
            at += part.len() as u64;
        }
    }
    Ok(())
}

/// Reads a request, and returns its path and the start of its range.
fn request(stream: &TcpStream) -> io::Result<(String, u64)> {
    let (mut path, mut from) = (String::new(), 0);
    for line in BufReader::new(stream).lines() {
        let line = line?;
        if let Some(rest) = line.strip_prefix("GET ") {
            path = rest.split(' ').next().unwrap_or_default().to_owned();
        } else if let Some(range) = line.strip_prefix("Range: bytes=") {
            from = range.trim_end_matches('-').parse().unwrap_or(0);
        } else if line.is_empty() {
            return Ok((path, from));
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}
