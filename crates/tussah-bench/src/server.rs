//! A server under test in its own process, and the client that measures it from another process.
//!
//! The process of a run is the client. It starts this program once more with `--serve`, and that
//! process is the server. The server prints its port, answers each line of standard input with a
//! line of measurements, and ends when its input ends. The measurements therefore describe the
//! server alone.
//!
//! If there are enough CPUs, the server gets one for each of its workers and the client gets the
//! next one. With `--share-cpu` the client gets the last CPU of the server.

use std::io::{BufRead, BufReader, ErrorKind, Lines, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use serde::{Deserialize, Serialize};

use crate::cli::Options;
use crate::measure::{anonymous_bytes, cpu_time};
use crate::metric::Metric;
use crate::{descriptors, runtimes};

/// Bound, in connections: the maximum number that wait to be accepted. It is more than any client
/// has in progress at the same time.
const BACKLOG_MAX: i32 = 4096;

/// Bound, in seconds: the maximum time for which a server may respond to nobody. It is longer than
/// the slowest server takes for all connections.
pub const SILENCE: Duration = Duration::from_secs(30);

/// Bytes that the server has received, in workloads that count them.
pub static RECEIVED: AtomicU64 = AtomicU64::new(0);

/// The busy servlets of the measured stage, in workloads that count them.
pub static SERVLETS: AtomicU64 = AtomicU64::new(0);

/// The servlets that the controller of that stage allows.
pub static SERVLETS_ALLOWED: AtomicU64 = AtomicU64::new(0);

/// The resources that a server has used since its process began.
#[derive(Debug, Serialize, Deserialize)]
pub struct Usage {
    /// The time of the measurement, in seconds.
    pub at_s: f64,
    /// User and system CPU time, in seconds.
    pub cpu_s: f64,
    /// Resident anonymous memory, in bytes.
    pub anonymous_bytes: f64,
    /// Bytes of the heap in use, with an allocator that counts them.
    pub heap_bytes: Option<f64>,
    /// Bytes received, in workloads that count them.
    pub received_bytes: u64,
    /// Busy servlets, in workloads that count them.
    pub servlets: u64,
    /// Servlets that the controller allows, in the same workloads.
    pub servlets_allowed: u64,
}

/// Runs one side of a workload: `serve`, which never returns, in the process of the server, and
/// `client` in the other process.
///
/// # Panics
///
/// Panics if a process may not have `connections` open files.
pub fn run(
    options: &Options,
    connections: usize,
    serve: fn(&Options),
    client: fn(&Options) -> Vec<Metric>,
) -> Vec<Metric> {
    if let Err(error) = descriptors::allow(connections) {
        panic!("{connections} connections: {error}");
    }
    if !options.serve {
        return client(options);
    }
    if let Some((server, _)) = cpus(options) {
        runtimes::pin_to_cpus(server);
    }
    serve(options);
    unreachable!("a server serves until its process ends");
}

/// Opens `count` blocking listeners on one port of the loopback and sends the port to the client.
/// The kernel distributes the connections among the listeners.
pub fn listen(count: usize) -> Vec<TcpListener> {
    let listen = |port| -> rustix::io::Result<TcpListener> {
        let flags = SocketFlags::CLOEXEC;
        let socket: OwnedFd =
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_socket_reuseport(&socket, count > 1)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        rustix::net::listen(&socket, BACKLOG_MAX)?;
        Ok(socket.into())
    };
    let mut listeners: Vec<TcpListener> = Vec::new();
    for _ in 0..count {
        let port = listeners.first().map_or(0, port);
        listeners.push(listen(port).expect("the loopback has a free port"));
    }
    announce(port(&listeners[0]));
    listeners
}

/// Sends the port of a listener to the client, and answers its questions from then on.
pub fn announce(port: u16) {
    std::thread::spawn(move || answer(port));
}

/// Opens a single listener, which the workers of a server share.
pub fn listen_once() -> TcpListener {
    listen(1).remove(0)
}

/// Makes the listener nonblocking.
pub fn nonblocking(listener: &TcpListener) -> &TcpListener {
    let set = listener.set_nonblocking(true);
    set.expect("a socket can be set to not block");
    listener
}

/// Accepts a pending connection of a nonblocking listener, and makes it nonblocking.
pub fn accept(listener: &TcpListener) -> Option<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    match rustix::net::accept_with(listener, flags) {
        Ok(stream) => Some(stream.into()),
        Err(rustix::io::Errno::AGAIN) => None,
        Err(error) => panic!("accept failed: {error}"),
    }
}

/// Accepts a reset as the end of a connection, since a client resets all connections at its end.
/// Panics on any other error.
pub fn ended(error: &std::io::Error) {
    let kind = error.kind();
    assert!(
        matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
        "a connection failed: {error}"
    );
}

/// Returns the port of a listener.
fn port(listener: &TcpListener) -> u16 {
    let address = listener.local_addr();
    address.expect("a bound socket has an address").port()
}

/// Sends the port to the client, and then measurements whenever the client asks. Ends the process
/// when the client no longer exists.
fn answer(port: u16) {
    let start = Instant::now();
    println!("{port}");
    for _ in std::io::stdin().lines().map_while(Result::ok) {
        let usage = Usage {
            at_s: start.elapsed().as_secs_f64(),
            cpu_s: cpu_time().as_secs_f64(),
            anonymous_bytes: anonymous_bytes(),
            heap_bytes: crate::heap_bytes(),
            received_bytes: RECEIVED.load(Ordering::Relaxed),
            servlets: SERVLETS.load(Ordering::Relaxed),
            servlets_allowed: SERVLETS_ALLOWED.load(Ordering::Relaxed),
        };
        let line = serde_json::to_string(&usage).expect("numbers have a JSON form");
        println!("{line}");
    }
    std::process::exit(0);
}

/// Returns the CPUs of this process before it pinned itself.
fn allowed_cpus() -> &'static [usize] {
    static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();
    ALLOWED.get_or_init(runtimes::allowed_cpus)
}

/// Returns the CPUs of the server and the CPU of the client; `None` if there are too few for both.
fn cpus(options: &Options) -> Option<(&'static [usize], usize)> {
    let (server, others) = allowed_cpus().split_at_checked(options.workers_or(1))?;
    let client = if options.share_cpu {
        server.last()
    } else {
        others.first()
    };
    Some((server, *client?))
}

/// The process of a server, as its client sees it. Dropping it ends the process.
#[derive(Debug)]
pub struct Server {
    /// The address of the server's listener.
    pub address: SocketAddr,
    child: Child,
    questions: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts the server for this process's peer, and pins the calling OS thread to the client's
    /// CPU.
    pub fn start(options: &Options) -> Server {
        let cpus = cpus(options);
        if cpus.is_some() {
            // A new process inherits the CPUs of its parent, which may already be pinned because of
            // an earlier server.
            runtimes::pin_to_cpus(allowed_cpus());
        }
        let program = std::env::current_exe().expect("this program has a file");
        let mut child = Command::new(program)
            .args(std::env::args_os().skip(1))
            .arg("--serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started again");
        if let Some((_, client)) = cpus {
            runtimes::pin_to_cpus(&[client]);
        }
        let questions = child.stdin.take();
        let output = child.stdout.take().expect("it was asked for");
        let mut answers = BufReader::new(output).lines();
        let port = answers.next().and_then(Result::ok);
        let port = port.and_then(|line| line.parse().ok());
        let port = port.expect("the server says its port before anything else");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Server {
            address,
            child,
            questions,
            answers,
        }
    }

    /// Asks the server for the resources that it has used so far.
    pub fn usage(&mut self) -> Usage {
        let questions = self.questions.as_mut().expect("it is there until the drop");
        questions.write_all(b"\n").expect("the server still runs");
        let answer = self.answers.next().and_then(Result::ok);
        let answer = answer.expect("the server still runs");
        serde_json::from_str(&answer).expect("the server is this program")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.questions = None;
        let status = self.child.wait();
        if !std::thread::panicking() {
            let status = status.expect("the child was not waited for");
            assert!(status.success(), "the server ended with {status}");
        }
    }
}
