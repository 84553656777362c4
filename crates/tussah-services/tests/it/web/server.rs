//! A server in this process, of a directory of its own.

use std::fs::{self, File};
use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use tempfile::TempDir;
use tussah::sync::oneshot;
use tussah::{Builder, Clock, FileDriver, ManualClock, PoolPolicy, Runtime};
use tussah_services::web::Web;
use tussah_services::web::config::{Config, ListenAddress};

use super::client::{Answer, Client};

/// A directory for a server.
pub struct Site {
    pub directory: TempDir,
    pub config: Config,
    workers: usize,
    has_one_reader: bool,
}

impl Site {
    /// An empty one.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let config = Config {
            root: directory.path().into(),
            listen: vec![ListenAddress::Tcp(([127, 0, 0, 1], 0).into())],
            ..Default::default()
        };
        Self {
            directory,
            config,
            workers: 2,
            has_one_reader: false,
        }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// With a file more, which was last modified on 6 November 1994 at 08:49:37.
    pub fn file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.write(path, bytes, 784_111_777);
        self
    }

    /// Writes a file that was modified then.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>, modified_s: u64) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("it lies in the directory")).expect("a directory");
        fs::write(&path, bytes).expect("a file");
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(modified_s);
        let file = File::options()
            .write(true)
            .open(&path)
            .expect("it was written");
        file.set_modified(modified).expect("the time is a time");
    }

    pub fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Sets the number of the runtime's workers, which is 2 otherwise.
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = count;
        self
    }

    /// Gives the blocking pool a single OS thread, which also reads the files.
    pub fn one_reader(mut self) -> Self {
        self.has_one_reader = true;
        self
    }

    pub fn start(self) -> Server {
        self.start_with(|web| web)
    }

    pub fn start_with(self, add: impl FnOnce(Web) -> Web) -> Server {
        Server::start(self, add, Clock::real())
    }

    /// With a clock that the test moves.
    pub fn start_by_hand(self) -> (Server, ManualClock) {
        self.start_by_hand_with(|web| web)
    }

    pub fn start_by_hand_with(self, add: impl FnOnce(Web) -> Web) -> (Server, ManualClock) {
        let hand = Clock::manual();
        (Server::start(self, add, hand.clock()), hand)
    }
}

/// Gives the blocking pool a single OS thread, which also reads the files.
pub fn with_one_reader(builder: Builder) -> Builder {
    builder.files(FileDriver::Pool).blocking(PoolPolicy {
        threads_max: 1,
        ..PoolPolicy::default()
    })
}

/// A server, until it is dropped.
pub struct Server {
    pub site: Site,
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(site: Site, add: impl FnOnce(Web) -> Web, clock: Clock) -> Self {
        let web = add(Web::new(site.config.clone()));
        let mut builder = Runtime::builder().workers(site.workers).clock(clock);
        if site.has_one_reader {
            builder = with_one_reader(builder);
        }
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = oneshot::async_channel();
        let thread = thread::spawn(move || {
            let runtime = builder.build();
            runtime.expect("a runtime").block_on(async move {
                let running = web.start().await.unwrap_or_else(|error| panic!("{error}"));
                let address = running.addresses().next().cloned();
                tell.send(address).expect("the test waits for it");
                let _ = stopped.await; // the test ends
                running.stop().await;
            });
        });
        let Ok(Some(ListenAddress::Tcp(address))) = told.recv() else {
            panic!("the server does not start");
        };
        Self {
            site,
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// The answer to one request on a connection of its own.
    #[track_caller]
    pub fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        self.connect().ask(request)
    }

    #[track_caller]
    pub fn get(&self, path: &str, lines: &str) -> Answer {
        self.connect().get(path, lines)
    }

    #[track_caller]
    pub fn check_status(&self, path: &str, expected: u16) {
        let answer = self.get(path, "");
        assert_eq!(answer.status, expected, "{path}: {}", answer.head);
    }

    /// Lets seconds pass, until the server has seen them.
    pub fn pass(&self, hand: &ManualClock, seconds: u64) {
        let mut client = self.connect();
        let mut up = || -> u64 {
            let page = client.get("/status?json", "");
            let page: serde_json::Value = serde_json::from_slice(&page.body).expect("it is JSON");
            page["up_s"].as_u64().expect("a number")
        };
        let until = up() + seconds;
        while up() < until {
            hand.advance(Duration::from_millis(500));
        }
    }

    /// Stops it, and waits until it has stopped.
    pub fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !thread::panicking() {
                ended.expect("the server does not panic");
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Bytes that differ from place to place: a pattern whose length divides nothing.
pub fn bytes(len: usize) -> Vec<u8> {
    let pattern = (0..4093_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8);
    let mut bytes = pattern.collect::<Vec<_>>().repeat(len.div_ceil(4093));
    bytes.truncate(len);
    bytes
}

/// Makes the system forget the data of a file. Returns false if its file system is in memory.
pub fn evict(path: &Path) -> bool {
    let file = File::open(path).expect("it is there");
    rustix::fs::fsync(&file).expect("there is room");
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).expect("a file can be forgotten");
    // Not at the beginning, which the system would then read ahead.
    let middle = file.metadata().expect("it is open").len() / 2;
    let (mut byte, flags) = ([0], ReadWriteFlags::NOWAIT);
    let read = preadv2(&file, &mut [IoSliceMut::new(&mut byte)], middle, flags);
    read == Err(Errno::AGAIN)
}

/// Long bodies are compared with this, since nobody could read what `assert_eq` prints.
#[track_caller]
pub fn assert_same(found: &[u8], expected: &[u8]) {
    let differs = found.iter().zip(expected).position(|(a, b)| a != b);
    assert!(
        found == expected,
        "{} bytes, expected {}; the first that differs is at {differs:?}",
        found.len(),
        expected.len()
    );
}

/// A client with its server.
pub struct Kept {
    client: Client,
    server: Server,
}

impl Server {
    pub fn connect_kept(self) -> Kept {
        Kept {
            client: self.connect(),
            server: self,
        }
    }
}

impl Kept {
    /// Another connection in place of this one.
    pub fn again(&mut self) {
        self.client = self.server.connect();
    }
}

impl Deref for Kept {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Kept {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}
