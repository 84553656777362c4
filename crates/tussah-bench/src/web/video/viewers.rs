//! Viewers that play streams, and notice when a stream is late.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::disks::Disks;
use super::{CHUNK_S, LOOK, Options};
use crate::epoll::{self, Epoll, EventFlags};

/// A number of viewers of one server.
pub(super) struct Show {
    pub(super) address: SocketAddr,
    pub(super) streams: usize,
    pub(super) seed: u64,
}

/// The streams that failed, and the waiting times of the others.
#[derive(Debug, Default)]
pub(super) struct Seen {
    late: usize,
    refused: usize,
    ended: usize,
    unstarted: usize,
    /// The longest time from a request to the begin of playing, in seconds.
    pub(super) start_s_max: f64,
}

impl Seen {
    /// Returns whether every stream was held.
    pub(super) fn is_held(&self) -> bool {
        self.late + self.refused + self.ended + self.unstarted == 0
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            late,
            refused,
            ended,
            unstarted,
            start_s_max,
        } = self;
        write!(
            f,
            "{late} late, {refused} refused, {ended} ended early, {unstarted} never began; \
             play began after {start_s_max:.1} s at most"
        )
    }
}

struct Viewer {
    stream: TcpStream,
    asked: Instant,
    /// The end of the head, until it is complete.
    head: Vec<u8>,
    /// The time at which the viewer had a chunk of the video; it plays from then on.
    plays_since: Option<Instant>,
    /// The bytes of the video, once the head is complete.
    bytes: Option<u64>,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Watching,
    Late,
    Refused,
    Ended,
}

/// Bound, in bytes: the maximum number read from a connection at a time.
const BUFFER_BYTES: usize = 1 << 18;

impl Show {
    /// Lets the viewers start one after the other, and returns what they saw in the end.
    pub(super) fn run(&self, disks: &Disks, options: &Options) -> Result<Seen, String> {
        let start = Duration::from_secs(options.start_s.into());
        let all = start + Duration::from_secs(options.watch_s.into());
        let most = options.rate() * (u64::from(options.ahead_s) + 2 * all.as_secs());
        let mut random = fastrand::Rng::with_seed(self.seed);
        let (epoll, mut ready) = (Epoll::new(), epoll::Ready::new());
        let mut viewers: Vec<Viewer> = Vec::new();
        let (begin, mut looked) = (Instant::now(), Instant::now());
        let mut buffer = vec![0; BUFFER_BYTES];
        while begin.elapsed() < all {
            let due = begin.elapsed().as_secs_f64() / start.as_secs_f64().max(0.001);
            let due = ((due * self.streams as f64) as usize + 1).min(self.streams);
            while viewers.len() < due {
                let (path, from) = disks.any(viewers.len(), most, &mut random);
                let viewer = Viewer::start(self.address, &path, from);
                let viewer = viewer.map_err(|error| format!("cannot connect: {error}"))?;
                epoll.add(&viewer.stream, viewers.len(), EventFlags::IN);
                viewers.push(viewer);
            }
            epoll.wait(&mut ready, Some(Duration::from_millis(5)));
            for event in &ready {
                let viewer = &mut viewers[epoll::token(event)];
                if viewer.take(&mut buffer) {
                    epoll.modify(&viewer.stream, epoll::token(event), EventFlags::empty());
                }
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                viewers
                    .iter_mut()
                    .for_each(|viewer| viewer.look(options.rate()));
            }
        }
        Ok(sum(&viewers))
    }
}

fn sum(viewers: &[Viewer]) -> Seen {
    let mut seen = Seen::default();
    for viewer in viewers {
        match (viewer.fate, viewer.plays_since) {
            (Fate::Late, _) => seen.late += 1,
            (Fate::Refused, _) => seen.refused += 1,
            (Fate::Ended, _) => seen.ended += 1,
            (Fate::Watching, None) => seen.unstarted += 1,
            (Fate::Watching, Some(since)) => {
                let start = (since - viewer.asked).as_secs_f64();
                seen.start_s_max = seen.start_s_max.max(start);
            }
        }
    }
    seen
}

impl Viewer {
    fn start(address: SocketAddr, path: &str, from: u64) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nRange: bytes={from}-\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            asked: Instant::now(),
            head: Vec::new(),
            plays_since: None,
            bytes: None,
            fate: Fate::Watching,
        })
    }

    /// Takes what has arrived. Returns whether nothing more will come.
    fn take(&mut self, buffer: &mut [u8]) -> bool {
        match self.stream.read(buffer) {
            Ok(0) => self.ends(Fate::Ended),
            Ok(len) => {
                if let Some(bytes) = &mut self.bytes {
                    *bytes += len as u64;
                } else {
                    self.head.extend(&buffer[..len]);
                    self.begin();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.ends(Fate::Ended),
        }
        matches!(self.fate, Fate::Refused | Fate::Ended)
    }

    /// Begins with the video if the head is complete.
    fn begin(&mut self) {
        let Some(end) = memchr::memmem::find(&self.head, b"\r\n\r\n") else {
            return;
        };
        if self.head.starts_with(b"HTTP/1.1 206 ") {
            self.bytes = Some((self.head.len() - end - 4) as u64);
        } else {
            self.ends(Fate::Refused);
        }
        self.head = Vec::new();
    }

    fn ends(&mut self, fate: Fate) {
        if self.fate == Fate::Watching {
            self.fate = fate;
        }
    }

    /// Begins to play if a chunk has arrived, and notes if all that has arrived is played.
    fn look(&mut self, rate: u64) {
        let bytes = self.bytes.unwrap_or(0);
        match self.plays_since {
            Some(since) if since.elapsed().as_secs_f64() * rate as f64 > bytes as f64 => {
                self.ends(Fate::Late);
            }
            None if bytes >= rate * u64::from(CHUNK_S) => self.plays_since = Some(Instant::now()),
            _ => {}
        }
    }
}
