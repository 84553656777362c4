//! A video server in this process, of a directory of its own, with a clock that the test moves.

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tussah::sync::oneshot;
use tussah::{Clock, ManualClock, Runtime};
use tussah_services::video::{DiskOptions, Options, Video};

pub const S: Duration = Duration::from_secs(1);

/// Returns bytes that differ from place to place.
pub fn bytes(len: usize) -> Vec<u8> {
    let bytes = (0..len as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8);
    bytes.collect()
}

/// A directory with videos. Those without a rate play 10,000 bytes per second.
pub struct Videos {
    pub directory: TempDir,
    pub options: Options,
}

impl Videos {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("there is room");
        let options = Options {
            root: directory.path().into(),
            listen: ([127, 0, 0, 1], 0).into(),
            rate: 10_000,
            workers: Some(2),
            ..Options::default()
        };
        Self { directory, options }.disk(".", 1_000_000)
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    pub fn file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("it is inside")).expect("a directory");
        fs::write(path, bytes).expect("there is room");
        self
    }

    /// A disk with a rate, in bytes per second.
    pub fn disk(mut self, path: &str, rate: u64) -> Self {
        fs::create_dir_all(self.path(path)).expect("a directory");
        self.options.disks.push(DiskOptions {
            path: path.into(),
            rate: Some(rate),
        });
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    pub fn start(self) -> Server {
        Server::start(self)
    }
}

/// A server, until it is dropped.
pub struct Server {
    pub videos: Videos,
    pub address: SocketAddr,
    pub clock: ManualClock,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(videos: Videos) -> Self {
        let video = Video::new(videos.options.clone());
        let clock = Clock::manual();
        // With one worker, a stream whose chunk has been counted has set its alarm when the next
        // request is answered. A test can then move the clock.
        let runtime = Runtime::builder().workers(1).clock(clock.clock()).build();
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = oneshot::async_channel();
        let thread = thread::spawn(move || {
            runtime.expect("a runtime").block_on(async move {
                let running = video
                    .start()
                    .await
                    .unwrap_or_else(|error| panic!("{error}"));
                tell.send(running.address()).expect("the test waits for it");
                let _ = stopped.await; // the test ends
            });
        });
        Self {
            address: told.recv().expect("the server starts"),
            videos,
            clock,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Returns the answer to a request over a connection of its own.
    pub fn get(&self, path: &str, lines: &str) -> Answer {
        let mut client = self.connect();
        client.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n"));
        client.answer()
    }

    pub fn status(&self) -> Value {
        let answer = self.get("/status?format=json", "");
        serde_json::from_slice(&answer.body).expect("it is JSON")
    }

    /// Returns a number about a disk.
    pub fn disk(&self, number: usize, name: &str) -> u64 {
        let status = self.status();
        status["disks"][number][name].as_u64().expect("a number")
    }

    /// Waits until a number about a disk has a value.
    pub fn expect_disk(&self, number: usize, name: &str, value: u64) {
        while self.disk(number, name) != value {
            thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !thread::panicking() {
                ended.expect("the server does not panic");
            }
        }
    }
}

pub struct Client(BufReader<TcpStream>);

/// An answer, with the body as far as it has been read.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    pub fn len(&self) -> usize {
        let len = self.field("Content-Length").expect("a length");
        len.parse().expect("a number")
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).expect("it is not zero");
        Self(BufReader::new(stream))
    }

    pub fn ask(&mut self, bytes: &str) {
        let stream = self.0.get_mut();
        stream.write_all(bytes.as_bytes()).expect("it is read");
    }

    /// Asks for a video, and returns the head of the answer.
    pub fn play(&mut self, path: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        self.head()
    }

    pub fn head(&mut self) -> Answer {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let len = self.0.read_line(&mut head).expect("an answer");
            assert!(len > 0, "the connection ended: {head:?}");
        }
        Answer {
            status: head[9..12].parse().expect("a status"),
            head,
            body: Vec::new(),
        }
    }

    pub fn read(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.read_exact(&mut bytes).expect("more of the body");
        bytes
    }

    /// Returns the next answer, to a request other than HEAD.
    pub fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        if answer.status != 304 {
            answer.body = self.read(answer.len());
        }
        answer
    }

    /// Returns the bytes until the end of the connection, which may be a reset.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.0.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => bytes,
        }
    }
}
