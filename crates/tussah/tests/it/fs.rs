//! Files, in both forms: by io_uring, if the kernel has it, and by the blocking pool.

mod cursor;
mod dropped;
mod errors;
mod names;
mod whole;

use std::path::PathBuf;

use tussah::fs::{AlignedBuf, File, OpenOptions};
use tussah::{FileDriver, Runtime};

/// A directory of its own, which is removed in the end.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Runs a test in both forms.
fn both(test: impl AsyncFn(&Runtime, &Place)) {
    for driver in [FileDriver::Auto, FileDriver::Pool] {
        let runtime = Runtime::builder().workers(2).files(driver).build();
        let runtime = runtime.expect("the workers start");
        runtime.block_on(test(&runtime, &Place::new()));
    }
}

fn read_write() -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).create(true);
    options
}

#[test]
fn written_data_reads_back() {
    both(async |_, place| {
        let file = read_write().open(place.path("file")).await.expect("open");
        let (written, buffer) = file.write_at(b"hello world".to_vec(), 0).await;
        assert_eq!((written.expect("written"), buffer.len()), (11, 11));
        file.write_all_at("W", 6).await.0.expect("written");
        file.append("!").await.0.expect("written");
        let (read, buffer) = file.read_at(Vec::with_capacity(64), 6).await;
        assert_eq!((read.expect("read"), &buffer[..]), (6, &b"World!"[..]));
        file.set_len(5).await.expect("cut");
        file.sync_data().await.expect("synced");
        file.sync_all().await.expect("synced");
        assert_eq!(file.len().await.expect("known"), 5);
        let metadata = file.metadata().await.expect("known");
        assert!(metadata.is_file() && metadata.inode > 0 && metadata.links == 1);
        file.close().await.expect("closed");
    });
}

#[test]
fn reads_come_short_at_the_end() {
    both(async |_, place| {
        std::fs::write(place.path("file"), "0123456789").expect("written");
        let file = File::open(place.path("file")).await.expect("open");
        let (read, buffer) = file.read_at(vec![0xAA; 8].into_boxed_slice(), 6).await;
        assert_eq!(read.expect("read"), 4);
        assert_eq!(&buffer[..], b"6789\xAA\xAA\xAA\xAA");
        let (read, buffer) = file.read_at(vec![1; 8], 10).await;
        assert_eq!((read.expect("read"), buffer.len()), (0, 0));
        let (read, _) = file.read_exact_at(vec![0; 8].into_boxed_slice(), 2).await;
        read.expect("there is as much");
        let (read, _) = file.read_exact_at(vec![0; 8].into_boxed_slice(), 3).await;
        let error = read.expect_err("there is one less");
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
        let text = "expected 8 bytes, but the file ends after 7";
        assert!(error.to_string().ends_with(text), "{error}");
        // Nothing is asked for.
        let (read, _) = file.read_at(Vec::new(), 0).await;
        assert_eq!(read.expect("read"), 0);
    });
}

#[test]
fn many_threads_read_and_write_one_file() {
    both(async |runtime, place| {
        const LEN: usize = 10_000;
        let file = read_write().open(place.path("file")).await.expect("open");
        let threads: Vec<_> = (0..64u8)
            .map(|n| {
                let file = file.clone();
                runtime.spawn(async move {
                    let offset = usize::from(n) * LEN;
                    let bytes = vec![n; LEN];
                    file.write_all_at(bytes, offset as u64)
                        .await
                        .0
                        .expect("written");
                    let (read, bytes) = file.read_at(vec![0; LEN], offset as u64).await;
                    assert_eq!(read.expect("read"), LEN);
                    assert!(bytes.iter().all(|byte| *byte == n));
                })
            })
            .collect();
        for thread in threads {
            thread.await.expect("no panic");
        }
        assert_eq!(file.len().await.expect("known"), 64 * LEN as u64);
    });
}

#[test]
fn a_file_is_cut_while_it_is_read() {
    both(async |runtime, place| {
        const LEN: usize = 1 << 20;
        std::fs::write(place.path("file"), vec![7; LEN]).expect("written");
        let file = read_write().open(place.path("file")).await.expect("open");
        let cut = runtime.spawn({
            let file = file.clone();
            async move {
                for n in (0..16).rev() {
                    file.set_len(n * LEN as u64 / 16).await.expect("cut");
                }
            }
        });
        loop {
            let (read, bytes) = file.read_at(vec![0; LEN], 0).await;
            let read = read.expect("a shorter file is no error");
            assert_eq!(bytes.len(), read);
            if read == 0 {
                break;
            }
        }
        cut.await.expect("no panic");
    });
}

#[test]
fn direct_reads_and_writes_are_aligned() {
    both(async |_, place| {
        const BLOCK: usize = 4096;
        let opened = read_write().direct(true).open(place.path("file")).await;
        let file = match opened {
            // The file system has no direct I/O.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => return,
            opened => opened.expect("open"),
        };
        let mut buffer = AlignedBuf::zeroed(2 * BLOCK, BLOCK);
        buffer.fill(b'x');
        let (written, buffer) = file.write_all_at(buffer, 0).await;
        written.expect("written");
        let (read, buffer) = file.read_at(buffer, BLOCK as u64).await;
        assert_eq!(read.expect("read"), BLOCK);
        assert!(buffer.len() == BLOCK && buffer.iter().all(|byte| *byte == b'x'));
        // One that is not, the file system refuses, or, if it can do without, takes.
        let (read, _) = file.read_at(AlignedBuf::zeroed(BLOCK, BLOCK), 1).await;
        if let Err(error) = read {
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
            assert!(error.to_string().ends_with("(os error 22)"), "{error}");
        }
    });
}

#[test]
fn buffers_of_all_kinds() {
    both(async |_, place| {
        let file = read_write().open(place.path("file")).await.expect("open");
        let shared: std::sync::Arc<[u8]> = b"shared "[..].into();
        file.append(shared.clone()).await.0.expect("written");
        file.append(&b"static "[..]).await.0.expect("written");
        file.append(b"array ").await.0.expect("written");
        file.append(String::from("string "))
            .await
            .0
            .expect("written");
        file.append(Box::<[u8]>::from(&b"boxed"[..]))
            .await
            .0
            .expect("written");
        assert_eq!(std::sync::Arc::strong_count(&shared), 1);
        let text = std::fs::read_to_string(place.path("file")).expect("it is there");
        assert_eq!(text, "shared static array string boxed");
    });
}
