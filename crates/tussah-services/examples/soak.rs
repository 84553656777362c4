//! Loads the web server for a long time with all kinds of client behavior. Every minute, it prints
//! the server's memory, descriptors and connections, each as the median over the seconds of that
//! minute.
//!
//! ```sh
//! cargo build --release -p tussah-services --bin tussah
//! cargo run --release -p tussah-services --example soak -- target/release/tussah 10
//! ```
//! The soak test fails if a value grows by more than 2 % between the second minute and the last.

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Bound, in clients: the number that send requests at the same time.
const CLIENTS: u64 = 48;

/// Bound, in files: small files, only some of which fit into the cache.
const FILES: u64 = 2000;

/// The time for which a client waits for the server.
const PATIENCE: Duration = Duration::from_secs(30);

/// The server's resources: its memory in KB, its descriptors, and its connections.
type Held = [u64; 3];

/// A server, which ends when this value is dropped.
struct Server {
    child: Child,
    address: SocketAddr,
    site: std::path::PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.site));
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().ok_or("expected the path of `tussah`")?;
    let minutes: u64 = arguments.next().map_or(Ok(10), |minutes| minutes.parse())?;
    let server = start(&command)?;
    let (over, done) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    for number in 0..CLIENTS {
        let (address, over, done) = (server.address, Arc::clone(&over), Arc::clone(&done));
        thread::spawn(move || client(address, number, &over, &done));
    }
    let begun = Instant::now();
    let mut second = None;
    let mut last = None;
    println!("minute  requests  memory in KB  descriptors  connections");
    for minute in 1..=minutes {
        let mut seconds = Vec::new();
        for second in 60 * (minute - 1)..60 * minute {
            let until = begun + Duration::from_secs(second + 1);
            thread::sleep(until.saturating_duration_since(Instant::now()));
            seconds.push(held(&server)?);
        }
        let requests = done.swap(0, Ordering::Relaxed);
        let [memory_kb, descriptors, connections] = medians(&seconds);
        println!("{minute:6}  {requests:8}  {memory_kb:12}  {descriptors:11}  {connections:11}");
        if minute == 2 {
            second = Some(memory_kb);
        }
        last = Some(memory_kb);
    }
    over.store(true, Ordering::Relaxed);
    let (Some(second), Some(last)) = (second, last) else {
        return Ok(ExitCode::SUCCESS);
    };
    let growth = last as f64 / second as f64 - 1.0;
    println!(
        "from minute 2 to minute {minutes}: {:+.1} %",
        100.0 * growth
    );
    Ok(if growth > 0.02 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Returns the median of each resource.
fn medians(seconds: &[Held]) -> Held {
    std::array::from_fn(|what| {
        let mut all: Vec<_> = seconds.iter().map(|held| held[what]).collect();
        all.sort_unstable();
        all[all.len() / 2]
    })
}

/// Starts a server that serves files of various lengths, with a cache that is too small for all of
/// them.
fn start(command: &str) -> Result<Server, Box<dyn Error>> {
    let site = std::env::temp_dir().join(format!("tussah-soak-{}", std::process::id()));
    fs::create_dir_all(&site)?;
    for n in 0..FILES {
        fs::write(
            site.join(format!("{n}.txt")),
            vec![b'x'; 100 + (n * 37 % 40_000) as usize],
        )?;
    }
    fs::write(site.join("large.bin"), vec![b'y'; 8_000_000])?;
    let options = "--listen 127.0.0.1:0 --work --target 200ms --cache-size 20MB --timeout-head 500ms --timeout-idle 5s --timeout-linger 500ms";
    let mut child = Command::new(command)
        .arg("web")
        .arg(&site)
        .args(options.split(' '))
        .stdout(Stdio::piped())
        .spawn()?;
    let out = child.stdout.take().ok_or("it is piped")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    let address = line
        .split_once("http://")
        .and_then(|(_, rest)| rest.split('/').next());
    let address = address
        .ok_or_else(|| format!("cannot find the address in the server's output {line:?}"))?
        .parse()?;
    Ok(Server {
        child,
        address,
        site,
    })
}

/// Sends valid and invalid requests until the soak test is over.
fn client(address: SocketAddr, number: u64, over: &AtomicBool, done: &AtomicU64) {
    let mut random = fastrand::Rng::with_seed(number);
    while !over.load(Ordering::Relaxed) {
        // An error is also a valid reaction to an invalid request.
        let _ = connection(address, &mut random, done);
    }
}

fn connection(
    address: SocketAddr,
    random: &mut fastrand::Rng,
    done: &AtomicU64,
) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    for _ in 0..random.u64(..20) {
        let (n, at_once) = (random.u64(..FILES), 1 + random.u64(..4));
        let (path, lines) = match random.u64(..20) {
            0 => ("/large.bin".to_owned(), ""),
            1 => (
                "/large.bin".to_owned(),
                "Range: bytes=5-900000,1000000-1000010\r\n",
            ),
            2 => ("/work?compute=1ms&wait=5ms".to_owned(), ""),
            3 => ("/work?wait=20ms".to_owned(), "Content-Length: 5\r\n"),
            4 => (format!("/none/{n}"), ""),
            5 => ("/status?json".to_owned(), ""),
            6 => (format!("/{n}.txt"), "If-None-Match: *\r\n"),
            7 => ("/../x\0".to_owned(), ""),
            _ => (format!("/{n}.txt"), ""),
        };
        let body = if lines.starts_with("Content") {
            "hello"
        } else {
            ""
        };
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n{body}");
        match random.u64(..60) {
            // Half a request, from a client that is too slow or disconnects.
            0 => {
                stream.write_all(&request.as_bytes()[..request.len() / 2])?;
                if random.bool() {
                    stream.read_to_end(&mut Vec::new())?;
                }
                return Ok(());
            }
            // A request whose response the client does not read.
            1 => return stream.write_all(request.as_bytes()),
            // The last request, announced by closing one direction.
            2 => {
                stream.write_all(request.as_bytes())?;
                stream.shutdown(Shutdown::Write)?;
                stream.read_to_end(&mut Vec::new())?;
                done.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            _ => {}
        }
        stream.write_all(request.repeat(at_once as usize).as_bytes())?;
        for _ in 0..at_once {
            if !answer(&mut stream)? {
                return Ok(());
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Reads a response. Returns whether the connection stays open.
fn answer(stream: &mut TcpStream) -> std::io::Result<bool> {
    let mut head = Vec::new();
    let mut byte = [0];
    // The client reads byte by byte, so that the next response stays unread; it is allowed to be
    // slow.
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    let len = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let len = len.and_then(|len| len.parse().ok()).unwrap_or(0);
    let len = if head.starts_with("HTTP/1.1 304") {
        0
    } else {
        len
    };
    let copied = std::io::copy(&mut stream.take(len), &mut std::io::sink())?;
    Ok(copied == len && !head.contains("Connection: close"))
}

fn held(server: &Server) -> Result<Held, Box<dyn Error>> {
    let process = format!("/proc/{}", server.child.id());
    let status = fs::read_to_string(format!("{process}/status"))?;
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let memory = memory
        .and_then(|line| line.split_whitespace().next())
        .ok_or("proc(5)")?;
    let descriptors = fs::read_dir(format!("{process}/fd"))?;
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let targets: Vec<_> = targets.collect();
    let sockets = targets
        .iter()
        .filter(|target| target.to_string_lossy().starts_with("socket:"));
    Ok([
        memory.parse()?,
        targets.len() as u64,
        // One of the sockets is the listener.
        (sockets.count() as u64).saturating_sub(1),
    ])
}
