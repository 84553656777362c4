//! Uses every part of a runtime once for each line of input. Other programs disturb it and then
//! check the results.
//!
//! `yes | head -3 | cargo run --example exercise`. Each round prints one line: `ok`, `error: ` with
//! the operation that the system refused, or `wrong: ` with an unexpected result. If the system
//! refuses nothing, every round is `ok`.

use std::error::Error;
use std::io::{self, BufRead};
use std::time::Duration;

use tussah::net::{TcpListener, TcpStream};
use tussah::process::Command;
use tussah::time::{sleep, timeout};
use tussah::{Color, Colored, fs, pipe, spawn};

/// A round normally takes milliseconds. A round that takes this long hangs.
const HANG_LIMIT: Duration = Duration::from_secs(5);

/// Bound, in events: the number that are posted in one round.
const POSTS: usize = 100;

/// Returns an error that states the expectation, unless the condition holds.
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

async fn files() -> io::Result<()> {
    let path = std::env::temp_dir().join(format!("tussah-exercise-{}", std::process::id()));
    let data = vec![7; 300_000];
    let file = fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .await?;
    file.write_all_at(data.clone(), 0).await.0?;
    file.sync_all().await?;
    let (read, read_back) = file.read_exact_at(vec![0; data.len()], 0).await;
    read?;
    let moved = path.with_extension("moved");
    fs::rename(&path, &moved).await?;
    let len = fs::metadata(&moved).await?.len;
    fs::remove_file(&moved).await?;
    expect(read_back == data, "what was written is read")?;
    expect(
        len == data.len() as u64,
        "a file is as long as what was written",
    )
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

async fn children() -> io::Result<()> {
    let status = Command::new("true").status().await?;
    expect(status.success(), "a child gives its status")
}

async fn round() -> Result<(), String> {
    let told = |step: &'static str| move |error: io::Error| format!("{step}: {error}");
    sleep(Duration::from_millis(1)).await;
    events().await.map_err(told("events"))?;
    pool().await.map_err(told("pool"))?;
    files().await.map_err(told("files"))?;
    streams().await.map_err(told("streams"))?;
    children().await.map_err(told("children"))
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tussah::Runtime::builder().workers(2).build()?;
    println!("ready");
    for line in io::stdin().lock().lines() {
        line?;
        let run = async { timeout(HANG_LIMIT, round()).await };
        match runtime.block_on(run) {
            Err(_) => println!("wrong: the round hangs"),
            Ok(Ok(())) => println!("ok"),
            Ok(Err(error)) => println!("error: {error}"),
        }
    }
    Ok(())
}
