//! Futures that are dropped at each of their awaits.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tussah::fs::{self, Cursor, File};
use tussah::{FileDriver, Runtime};

use super::{Place, read_write};

/// Counts its wakes, each of which unparks the test.
struct Count(std::thread::Thread, AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

/// Polls N times, each time after a wake, then drops. Returns the output if it was ready before.
fn poll_times<F: Future>(runtime: &Runtime, future: F, times: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let count = Arc::new(Count(std::thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(count.clone());
    for time in 0..times {
        let before = count.1.load(Ordering::SeqCst);
        let polled = runtime.block_on(std::future::poll_fn(|_| {
            Poll::Ready(future.as_mut().poll(&mut Context::from_waker(&waker)))
        }));
        if let Poll::Ready(output) = polled {
            return Some(output);
        }
        while time + 1 < times && count.1.load(Ordering::SeqCst) == before {
            std::thread::park();
        }
    }
    None
}

/// Waits until no descriptor of this process leads to the directory.
fn nothing_is_open(directory: &Path) {
    let is_open = || {
        let own = std::fs::read_dir("/proc/self/fd").expect("Linux has it");
        own.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .any(|path| path.starts_with(directory))
    };
    while is_open() {
        std::thread::yield_now();
    }
}

async fn everything(directory: &Path) -> std::io::Result<()> {
    use futures_lite::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
    let (a, b) = (directory.join("a"), directory.join("b"));
    fs::write(&a, vec![b'a'; 1000]).await?;
    let copied = fs::copy(&a, &b).await?;
    let text = fs::read_to_string(&b).await?;
    assert_eq!((copied, text.len()), (1000, 1000));
    let file = read_write().open(&a).await?;
    file.append("more").await.0?;
    file.write_all_at("front", 0).await.0?;
    file.read_exact_at(vec![0; 100].into_boxed_slice(), 3)
        .await
        .0?;
    file.sync_all().await?;
    file.set_len(10).await?;
    let mut cursor = Cursor::new(file.clone());
    cursor.write_all(b"behind").await?;
    cursor.seek(std::io::SeekFrom::End(-4)).await?;
    cursor.read_exact(&mut [0; 4]).await?;
    drop(cursor);
    file.close().await?;
    let deep = directory.join("x/y");
    fs::create_dir_all(&deep).await?;
    let mut entries = fs::read_dir(directory).await?;
    while let Some(entry) = entries.next().await {
        entry?;
    }
    fs::set_permissions(&a, 0o600).await?;
    fs::canonicalize(&a).await?;
    fs::rename(&a, &b).await?;
    fs::remove_dir_all(directory.join("x")).await?;
    fs::remove_file(&b).await?;
    File::open("/no/such").await.expect_err("it is not there");
    Ok(())
}

#[test]
fn everything_is_dropped_at_every_await() {
    for driver in [FileDriver::Auto, FileDriver::Pool] {
        let builder = Runtime::builder().workers(2).files(driver);
        let runtime = builder.build().expect("the workers start");
        let mut polls = 0;
        loop {
            // One of its own for each, as some of what was dropped goes on.
            let place = Place::new();
            let ended = poll_times(&runtime, everything(place.0.path()), polls);
            nothing_is_open(place.0.path());
            if let Some(result) = ended {
                result.expect("nothing stands in its way");
                break;
            }
            polls += 1;
        }
        // How often it has to wait beyond that is a matter of speed.
        assert!(polls > 1, "it was dropped {polls} times");
        while runtime.driver().files_in_flight() > 0 {
            std::thread::yield_now();
        }
    }
}
