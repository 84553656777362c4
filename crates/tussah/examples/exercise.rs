//! Uses every part of a runtime once for each line of input. Other programs disturb it and then
//! check the results.
//!
//! `yes | head -3 | cargo run --example exercise` runs all parts, and `exercise files udp` only
//! these two. Each round prints one line: `ok`, `error: ` with what the system refused, or
//! `wrong: ` with an unexpected result. When the system refuses nothing, every round is `ok`.

use std::error::Error;
use std::io::{self, BufRead};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tussah::dns::Resolver;
use tussah::net::{
    RecvSlot, TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream,
};
use tussah::process::Command;
use tussah::time::{sleep, timeout};
use tussah::{Color, Colored, fs, pipe, spawn};

/// A round normally takes milliseconds. A round that takes this long hangs.
const HANG_LIMIT: Duration = Duration::from_secs(20);

/// Bound, in events: the maximum number that are posted in one round.
const POSTS: usize = 100;

/// The parts of a round.
const PARTS: [&str; 8] = [
    "events", "pool", "files", "streams", "udp", "unix", "names", "children",
];

/// Returns an error of the kind `InvalidData`, which stands for a wrong result, unless the
/// condition holds.
fn expect(is_so: bool, what: &str) -> io::Result<()> {
    if is_so {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

async fn events() -> io::Result<()> {
    let count = Colored::new(0);
    let threads: Vec<_> = (0..POSTS)
        .map(|n| {
            let count = count.clone();
            tussah::spawn_in(Color(n as u64 % 7), async move {
                tussah::yield_now().await;
                count.with(|count| *count += 1).await;
            })
        })
        .collect();
    for thread in threads {
        thread.await.map_err(io::Error::other)?;
    }
    let count = count.with(|count| *count).await;
    expect(count == POSTS, "each thread has counted once")
}

async fn pool() -> io::Result<()> {
    let pool = tussah::Handle::current();
    let job = pool.blocking().submit(|| 6 * 7);
    let job = job.map_err(|refused| io::Error::other(refused.to_string()))?;
    let result = job.await.map_err(io::Error::other)?;
    expect(result == 42, "the job gives its result")
}

/// Returns a path that no other round uses.
fn own_path() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("tussah-exercise-{}-{count}", std::process::id()))
}

async fn files() -> io::Result<()> {
    let folder = own_path();
    fs::create_dir(&folder).await?;
    let used = files_in(&folder).await;
    let removed = fs::remove_dir_all(&folder).await;
    used.and(removed)
}

async fn files_in(folder: &Path) -> io::Result<()> {
    let path = folder.join("file");
    let mut data = vec![7; 300_000];
    let mut options = fs::File::options();
    options.read(true).write(true).create_new(true);
    let file = options.open(&path).await?;
    file.write_all_at(data.clone(), 0).await.0?;
    file.sync_all().await?;
    let (read, read_back) = file.read_exact_at(vec![0; data.len()], 0).await;
    read?;
    expect(read_back == data, "what was written is read")?;
    file.set_len(1000).await?;
    data.truncate(1000);
    let file = fs::File::options().append(true).open(&path).await?;
    file.append(data.clone()).await.0?;
    file.sync_data().await?;
    file.close().await?;
    data.extend_from_within(..);
    let moved = folder.join("moved");
    fs::rename(&path, &moved).await?;
    fs::hard_link(&moved, &path).await?;
    fs::symlink("moved", folder.join("link")).await?;
    let whole = fs::read(folder.join("link")).await?;
    expect(whole == data, "a file has what was appended")?;
    let len = fs::metadata(&moved).await?.len;
    expect(len == 2000, "a file is as long as what was written")?;
    fs::remove_file(&path).await?;
    let mut entries = fs::read_dir(folder).await?;
    let mut names = Vec::new();
    while let Some(entry) = entries.next().await {
        names.push(entry?.file_name().to_owned());
    }
    names.sort();
    expect(names == ["link", "moved"], "a folder lists its files")
}

async fn streams() -> io::Result<()> {
    let (reader, writer) = pipe::pipe()?;
    writer.write_all(b"through the pipe").await?;
    drop(writer);
    let mut text = Vec::new();
    reader.read_to_end(&mut text).await?;
    expect(text == b"through the pipe", "a pipe carries bytes")?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = spawn(async move {
        let (stream, _) = listener.accept().await?;
        let mut bytes = vec![0; 100_000];
        stream.read_exact(&mut bytes).await?;
        stream.write_all(&bytes).await
    });
    let talk = async {
        let stream = TcpStream::connect(address).await?;
        stream.write_all(&[9; 100_000]).await?;
        let mut bytes = vec![0; 100_000];
        stream.read_exact(&mut bytes).await?;
        expect(
            bytes.iter().all(|&byte| byte == 9),
            "a stream carries bytes",
        )
    };
    let talked = talk.await;
    if talked.is_err() {
        server.abort_handle().abort();
    }
    match server.await {
        Ok(served) => served.and(talked),
        Err(_) => talked,
    }
}

async fn udp() -> io::Result<()> {
    let server = UdpSocket::bind("127.0.0.1:0")?;
    let client = UdpSocket::bind("127.0.0.1:0")?;
    let to = server.local_addr()?;
    client.send_to(b"one", to).await?;
    let mut buffer = [0; 16];
    let (len, _) = server.recv_from(&mut buffer).await?;
    expect(&buffer[..len] == b"one", "a datagram arrives")?;
    let batch: [(&[u8], _); 2] = [(b"two", Some(to)), (b"three", Some(to))];
    let mut sent = 0;
    while sent < batch.len() {
        sent += client.send_batch(&batch[sent..]).await?;
    }
    let mut received = Vec::new();
    while received.len() < batch.len() {
        let mut slots = [RecvSlot::new(&mut buffer)];
        server.recv_batch(&mut slots).await?;
        received.push(slots[0].data().to_vec());
    }
    expect(received == [&b"two"[..], b"three"], "a batch arrives")
}

async fn unix() -> io::Result<()> {
    let path = own_path();
    let listener = UnixListener::bind(&path)?;
    let talked = unix_at(&listener, &path).await;
    fs::remove_file(&path).await?;
    talked
}

async fn unix_at(listener: &UnixListener, path: &Path) -> io::Result<()> {
    let client = UnixStream::connect(path).await?;
    let (server, _) = listener.accept().await?;
    let (reader, _writer) = io::pipe()?;
    client.send_fds(b"a pipe", &[reader.as_fd()]).await?;
    let mut buffer = [0; 16];
    let received = server.recv_fds(&mut buffer, 1).await?;
    expect(
        &buffer[..received.len] == b"a pipe" && received.fds.len() == 1,
        "a stream carries a descriptor",
    )?;
    server.write_all(b"answer").await?;
    client.read_exact(&mut buffer[..6]).await?;
    expect(&buffer[..6] == b"answer", "a Unix stream carries bytes")?;
    let (one, other) = UnixDatagram::pair()?;
    one.send(b"datagram").await?;
    let len = other.recv(&mut buffer).await?;
    expect(&buffer[..len] == b"datagram", "a Unix datagram arrives")
}

/// Asks a server of its own for the address of a name.
async fn names() -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?;
    let server = spawn(async move {
        let mut query = [0; 512];
        loop {
            // A failure costs an answer, so that the resolver asks again.
            if let Ok((len, client)) = socket.recv_from(&mut query).await {
                let _ = socket.send_to(&dns_answer(&query[..len]), client).await;
            }
        }
    });
    let resolver = Resolver::builder()
        .servers([address])
        .no_hosts_file()
        .timeout(Duration::from_secs(1))
        .build();
    let found = resolver.lookup_a("exercise.test.").await;
    server.abort_handle().abort();
    let found = found.map_err(io::Error::other)?;
    expect(
        found.as_slice() == [IpAddr::V4(Ipv4Addr::LOCALHOST)],
        "a name has its address",
    )
}

/// Returns the answer 127.0.0.1 to a query for an address (RFC 1035, section 4.1).
fn dns_answer(query: &[u8]) -> Vec<u8> {
    const HEAD_LEN: usize = 12;
    let name_len = query.iter().skip(HEAD_LEN).position(|&byte| byte == 0);
    let question_end = HEAD_LEN + name_len.unwrap_or(0) + 5;
    let question = query.get(HEAD_LEN..question_end).unwrap_or_default();
    let mut answer = query[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    answer.extend(question);
    // The name of the question, type A, class IN, one second, and the address.
    answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
    answer
}

async fn children() -> io::Result<()> {
    let status = Command::new("true").status().await?;
    expect(status.success(), "a child gives its status")
}

/// Runs parts, and returns the line that reports the first failure.
async fn round(parts: &[String]) -> Result<(), String> {
    sleep(Duration::from_millis(1)).await;
    for part in parts {
        let done = match part.as_str() {
            "events" => events().await,
            "pool" => pool().await,
            "files" => files().await,
            "streams" => streams().await,
            "udp" => udp().await,
            "unix" => unix().await,
            "names" => names().await,
            _ => children().await,
        };
        done.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => format!("wrong: {part}: {error}"),
            _ => format!("error: {part}: {error}"),
        })?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut parts: Vec<_> = std::env::args().skip(1).collect();
    if parts.is_empty() {
        parts = PARTS.map(str::to_owned).to_vec();
    }
    if let Some(part) = parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
        return Err(format!("unknown part {part}; known are {}", PARTS.join(", ")).into());
    }
    let runtime = tussah::Runtime::builder().workers(2).pin(true).build()?;
    println!("ready");
    for line in io::stdin().lock().lines() {
        line.map_err(|error| format!("cannot read the next line: {error}"))?;
        let run = async { timeout(HANG_LIMIT, round(&parts)).await };
        match runtime.block_on(run) {
            Err(_) => println!("wrong: the round hangs"),
            Ok(Ok(())) => println!("ok"),
            Ok(Err(report)) => println!("{report}"),
        }
    }
    Ok(())
}
