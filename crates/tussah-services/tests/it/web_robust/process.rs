//! The server as a process, with a directory of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tempfile::TempDir;

use super::client::{Answer, Client, request};

/// Bound, in seconds: how long a test waits for what has to come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A directory with files for a server, and for what goes with one.
pub struct Site(TempDir);

impl Site {
    pub fn new() -> Self {
        let site = Self(tempfile::tempdir().expect("there is room"));
        site.file("site/a.txt", "hello\n")
    }

    /// With a file, in the directory `site` if it is to be served.
    pub fn file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("it lies in the directory")).expect("a directory");
        fs::write(path, bytes).expect("there is room");
        self
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// A server of it. In the options `{}` stands for the directory that holds `site`.
    #[track_caller]
    pub fn serve(self, options: &str) -> Process {
        let command = self.command(&format!("--listen 127.0.0.1:0 {options}"));
        Process::start(self, command)
    }

    pub fn command(&self, options: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tussah"));
        command.arg("web").arg(self.path("site"));
        let here = self.0.path().display().to_string();
        command.args(
            options
                .split_whitespace()
                .map(|option| option.replace("{}", &here)),
        );
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TUSSAH_") {
                command.env_remove(name);
            }
        }
        command
    }
}

/// Bytes that differ from place to place.
pub fn bytes(len: usize) -> Vec<u8> {
    (0..len as u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// Waits until something is so; fails the test if that takes too long.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        pause(2);
    }
}

/// Waits N milliseconds, because progress of another process wakes nothing here.
pub fn pause(ms: u64) {
    thread::park_timeout(Duration::from_millis(ms));
}

/// A server that runs, until this is dropped.
pub struct Process {
    pub site: Site,
    /// Where it listens, as it says: without the ways in by TCP, empty.
    pub addresses: Vec<SocketAddr>,
    child: Child,
    said: Arc<Mutex<String>>,
    /// The OS thread that reads the output until the process has ended.
    listeners: Vec<JoinHandle<()>>,
}

impl Process {
    #[track_caller]
    pub fn start(site: Site, mut command: Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self::start_as_is(site, command)
    }

    /// The same with the standard streams of the command; what it says on standard output must be
    /// piped.
    #[track_caller]
    pub fn start_as_is(site: Site, mut command: Command) -> Self {
        let mut child = command.spawn().expect("the command is there");
        let said = Arc::new(Mutex::new(String::new()));
        let stdout = child.stdout.take().expect("it is piped");
        let mut listeners = vec![listen(stdout, &said)];
        listeners.extend(child.stderr.take().map(|stderr| listen(stderr, &said)));
        let mut process = Self {
            site,
            addresses: Vec::new(),
            child,
            said,
            listeners,
        };
        let line = process.says("serving ");
        let words = line.split_whitespace();
        let addresses = words.filter_map(|word| {
            let (_, address) = word.split_once("://")?;
            address.trim_end_matches('/').parse().ok()
        });
        process.addresses = addresses.collect();
        process
    }

    /// The line that it says with these words in it, once it has.
    #[track_caller]
    pub fn says(&mut self, words: &str) -> String {
        let mut found = None;
        until(
            &format!("the server says {words:?}; it said {:?}", self.said()),
            || {
                let has_ended = self.child.try_wait().expect("it is ours").is_some();
                if has_ended {
                    self.hear_all();
                }
                let said = self.said();
                found = said
                    .lines()
                    .find(|line| line.contains(words))
                    .map(str::to_owned);
                assert!(found.is_some() || !has_ended, "it has ended: {said}");
                found.is_some()
            },
        );
        found.expect("it has said so")
    }

    /// All that it has said.
    pub fn said(&self) -> String {
        self.said.lock().expect("nobody panics with it").clone()
    }

    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    pub fn connect(&self) -> Client<TcpStream> {
        Client::new(TcpStream::connect(self.address()).expect("the server listens"))
    }

    /// The answer to one request on a connection of its own.
    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.connect().ask(&request(path, ""))
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is ours");
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Reads the rest of the output of a server that has ended.
    fn hear_all(&mut self) {
        for listener in self.listeners.drain(..) {
            listener.join().expect("it only reads");
        }
    }

    /// Waits until it has ended, and its output has been read.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until(
            &format!("the server ends; it said {:?}", self.said()),
            || {
                status = self.child.try_wait().expect("it is ours");
                status.is_some()
            },
        );
        self.hear_all();
        status.expect("it has ended")
    }

    /// How many descriptors it has open.
    pub fn descriptors(&self) -> usize {
        let directory = fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        directory.expect("it lives").count()
    }

    /// How many sockets it has open.
    pub fn sockets(&self) -> usize {
        let directory = fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        let links = directory
            .expect("it lives")
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        links
            .filter(|link| link.to_string_lossy().starts_with("socket:"))
            .count()
    }

    /// Waits until it has no more sockets open than that.
    #[track_caller]
    pub fn expect_sockets(&self, count: usize) {
        until(
            &format!("{count} sockets or less, found {}", self.sockets()),
            || self.sockets() <= count,
        );
    }

    /// How many descriptors it may have from now on.
    pub fn limit_descriptors(&self, max: u64) {
        let limit = Rlimit {
            current: Some(max),
            maximum: Some(max),
        };
        prlimit(Some(self.pid()), Resource::Nofile, limit).expect("a limit may be lowered");
    }

    /// Limits the length of its files.
    pub fn limit_files(&self, bytes: u64) {
        let limit = Rlimit {
            current: Some(bytes),
            maximum: Some(bytes),
        };
        prlimit(Some(self.pid()), Resource::Fsize, limit).expect("a limit may be lowered");
    }

    /// Returns the memory of the process, in bytes, without files.
    pub fn memory_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it lives");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kb.expect("the kernel says so") * 1024
    }

    /// How many calls it has made that write, `sendfile` among them and `sendmsg` not
    /// (proc_pid_io(5)).
    pub fn writes(&self) -> u64 {
        let io = fs::read_to_string(format!("/proc/{}/io", self.child.id())).expect("it lives");
        let count = io.lines().find_map(|line| line.strip_prefix("syscw: "));
        let count = count.and_then(|count| count.parse().ok());
        count.expect("the kernel says so")
    }

    /// Returns the CPU time that the process has used, in ticks of the kernel.
    pub fn cpu_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it lives");
        let (_, rest) = stat.rsplit_once(')').expect("proc(5)");
        let fields = rest.split_whitespace().skip(11).take(2);
        fields
            .map(|field| field.parse::<u64>().expect("a number"))
            .sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Keeps what is said.
fn listen(from: impl Read + Send + 'static, said: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let said = Arc::clone(said);
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let mut said = said.lock().expect("nobody panics with it");
            said.push_str(&line);
            said.push('\n');
        }
    })
}
