//! Pipes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use tussah::pipe::{Writer, pipe};
use tussah::spawn;

use crate::alone::{alone, descriptors};
use crate::cancel::{cut, cuts};
use crate::{run, run_on_one};

/// More than a pipe holds.
const MUCH: usize = 300_000;

/// Bytes that are different at each place.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[test]
fn more_than_a_pipe_holds_goes_through() {
    run(async {
        let (reader, writer) = pipe().expect("made");
        let written = spawn(async move { writer.write_all(&pattern(MUCH)).await });
        let mut first = vec![0; 1000];
        reader.read_exact(&mut first).await.expect("bytes come");
        let len = reader.read_to_end(&mut first).await.expect("the rest");
        assert_eq!(len, MUCH - 1000);
        assert!(first == pattern(MUCH));
        written.await.expect("no panic").expect("all is written");
    });
}

#[test]
fn small_messages_go_to_and_fro() {
    run(async {
        let ((here, there_back), (there, back)) = (pipe().expect("made"), pipe().expect("made"));
        let echo = spawn(async move {
            let mut byte = [0];
            while there.read(&mut byte).await.expect("it works") > 0 {
                there_back.write_all(&byte).await.expect("somebody reads");
            }
        });
        for n in 0..=255 {
            back.write_all(&[n]).await.expect("somebody reads");
            let mut byte = [!n, !n];
            assert_eq!(here.read(&mut byte).await.expect("it works"), 1);
            assert_eq!(byte[0], n);
        }
        drop(back);
        echo.await.expect("no panic");
    });
}

#[test]
fn the_end_is_reported_however_it_comes() {
    run(async {
        let (reader, writer) = pipe().expect("made");
        writer.write_all(b"abc").await.expect("there is room");
        let mut buffer = [0; 8];
        let error = {
            let exactly = spawn(async move {
                let error = reader.read_exact(&mut buffer).await.expect_err("too few");
                (reader, error)
            });
            drop(writer);
            let (reader, error) = exactly.await.expect("no panic");
            assert_eq!(reader.try_read(&mut [0]).expect("it works"), Some(0));
            error
        };
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(
            error.to_string(),
            "read from a pipe: expected 8 bytes, got 3"
        );

        let (reader, writer) = pipe().expect("made");
        let blocked = spawn(async move { writer.write_all(&pattern(MUCH)).await });
        reader.read_exact(&mut [0; 10]).await.expect("bytes come");
        drop(reader);
        let error = blocked.await.expect("no panic").expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    });
}

#[test]
fn try_read_returns_available_data() {
    run(async {
        let (reader, writer) = pipe().expect("made");
        let mut byte = [0];
        assert_eq!(reader.try_read(&mut byte).expect("it works"), None);
        assert_eq!(writer.try_write(b"x").expect("it works"), Some(1));
        assert_eq!(reader.try_read(&mut byte).expect("it works"), Some(1));
        while writer.try_write(&[0; 4096]).expect("it works").is_some() {}
        assert_eq!(reader.try_read(&mut byte).expect("it works"), Some(1));
        assert_eq!(reader.read(&mut [0; 4095]).await.expect("it works"), 4095);
        assert_eq!(writer.write(b"x").await.expect("there is room"), 1);
    });
}

#[test]
fn the_traits_of_futures_io_work_for_pipes() {
    run(async {
        let (mut reader, mut writer) = pipe().expect("made");
        let written = spawn(async move {
            AsyncWriteExt::write_all(&mut writer, &pattern(MUCH)).await?;
            writer.close().await?;
            let error = writer.write(b"x").await.expect_err("it is closed");
            assert_eq!(error.kind(), io::ErrorKind::NotConnected);
            writer.into_fd().expect_err("it is closed");
            io::Result::Ok(())
        });
        let mut all = Vec::new();
        let read = AsyncReadExt::read_to_end(&mut reader, &mut all).await;
        assert_eq!(read.expect("it works"), MUCH);
        assert!(all == pattern(MUCH));
        written.await.expect("no panic").expect("it works");
    });
}

/// In packet mode a short read does not say that nothing is left, and nothing more will be reported
/// of what is.
#[test]
fn packets_are_read_one_by_one() {
    run_on_one(async {
        let (reader, writer) = pipe().expect("made");
        // Whoever has the writer's descriptor may do so.
        let packets = rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(writer.fd().expect("open"), packets).expect("a pipe may be");
        let writes = spawn(async move {
            // Both are there when the one who waits is woken.
            writer.write_all(b"one").await.expect("there is room");
            writer.write_all(b"three").await.expect("there is room");
            writer
        });
        let mut buffer = [0; 64];
        assert_eq!(reader.read(&mut buffer).await.expect("it works"), 3);
        assert_eq!(reader.read(&mut buffer).await.expect("it works"), 5);
        drop(writes.await.expect("no panic"));
    });
}

#[test]
fn a_descriptor_comes_back_in_blocking_mode() {
    run(async {
        let (reader, writer) = pipe().expect("made");
        let is_non_blocking = |fd: BorrowedFd<'_>| {
            rustix::fs::fcntl_getfl(fd)
                .expect("open")
                .contains(rustix::fs::OFlags::NONBLOCK)
        };
        assert!(is_non_blocking(reader.as_fd()) && is_non_blocking(writer.fd().expect("open")));
        let (reader, writer) = (
            reader.into_fd().expect("open"),
            writer.into_fd().expect("open"),
        );
        assert!(!is_non_blocking(reader.as_fd()) && !is_non_blocking(writer.as_fd()));
    });
}

#[test]
fn a_cancelled_read_has_read_nothing() {
    alone("pipe::a_cancelled_read_has_read_nothing", || {
        run_on_one(async {
            let (reader, writer) = pipe().expect("made");
            let reader = std::sync::Arc::new(reader);
            let mut before = None;
            for polls in cuts() {
                let next = polls as u8;
                let write = spawn({
                    let fd = writer
                        .fd()
                        .expect("open")
                        .try_clone_to_owned()
                        .expect("open");
                    async move {
                        Writer::from_fd(fd)
                            .expect("a pipe")
                            .write_all(&[next])
                            .await
                    }
                });
                let mut byte = [0];
                let cut_off = cut(reader.read(&mut byte), polls).await;
                let ended = cut_off.is_some();
                match cut_off {
                    Some(read) => assert_eq!(read.expect("it works"), 1),
                    None => reader.read_exact(&mut byte).await.expect("it is there"),
                }
                assert_eq!(byte, [next]);
                write.await.expect("no panic").expect("written");
                assert_eq!(descriptors(), *before.get_or_insert_with(descriptors));
                if ended {
                    break;
                }
            }
        });
    });
}

#[test]
fn a_cancelled_write_has_written_nothing() {
    run(async {
        for polls in cuts() {
            let (reader, writer) = pipe().expect("made");
            let mut full = 0;
            while let Some(len) = writer.try_write(&[0; 4096]).expect("it works") {
                full += len;
            }
            let read = spawn(async move {
                let mut all = vec![0; full];
                reader.read_exact(&mut all).await.expect("it is there");
                all.clear();
                reader.read_to_end(&mut all).await.expect("the rest");
                all
            });
            let cut_off = cut(writer.write(b"first"), polls).await;
            writer.write_all(b"second").await.expect("there is room");
            drop(writer);
            let all = read.await.expect("no panic");
            match cut_off {
                Some(_) => assert_eq!(all, b"firstsecond"),
                None => assert_eq!(all, b"second"),
            }
            if cut_off.is_some() {
                break;
            }
        }
    });
}

#[test]
fn a_cancelled_read_to_end_goes_on_where_it_was() {
    run(async {
        for polls in cuts() {
            let (reader, writer) = pipe().expect("made");
            let write = spawn(async move { writer.write_all(&pattern(MUCH)).await });
            let mut all = Vec::new();
            let ended = cut(reader.read_to_end(&mut all), polls).await.is_some();
            reader.read_to_end(&mut all).await.expect("the rest");
            assert!(all == pattern(MUCH));
            write.await.expect("no panic").expect("written");
            if ended {
                break;
            }
        }
    });
}

#[test]
fn a_transfer_that_never_waits_lets_others_run() {
    tussah::Runtime::builder()
        .workers(1)
        .build()
        .expect("the worker starts")
        .block_on_spawned(async {
            let (reader, writer) = pipe().expect("made");
            let other = spawn(async {});
            while !other.is_finished() {
                writer.write_all(&[1; 4096]).await.expect("there is room");
                reader
                    .read_exact(&mut [0; 4096])
                    .await
                    .expect("it is there");
            }
        });
}
