//! Files with a position.

use std::io::{ErrorKind, SeekFrom};

use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWriteExt, StreamExt};
use tussah::fs::{Cursor, File};

use super::{both, read_write};

#[test]
fn a_cursor_reads_writes_and_seeks() {
    both(async |_, place| {
        let file = read_write().open(place.path("file")).await.expect("open");
        let mut cursor = Cursor::new(file);
        for n in 0..10_000 {
            let line = format!("line {n}\n");
            cursor.write_all(line.as_bytes()).await.expect("written");
        }
        assert_eq!(cursor.seek(SeekFrom::Start(5)).await.expect("sought"), 5);
        let mut digit = [0; 1];
        cursor.read_exact(&mut digit).await.expect("read");
        assert_eq!(&digit, b"0");
        // What was read ahead is not where the next byte is written.
        cursor.write_all(b"!").await.expect("written");
        cursor.seek(SeekFrom::Current(-7)).await.expect("sought");
        let mut lines = futures_lite::io::BufReader::new(cursor).lines();
        assert_eq!(
            lines.next().await.expect("one").expect("read"),
            "line 0!line 1"
        );
        let rest: Vec<_> = lines.try_collect().await.expect("read");
        assert_eq!(rest.len(), 9_998);
        assert_eq!(rest.last().expect("many"), "line 9999");
    });
}

#[test]
fn a_cursor_seeks_from_the_end() {
    both(async |_, place| {
        std::fs::write(place.path("file"), "0123456789").expect("written");
        let file = File::open(place.path("file")).await.expect("open");
        let mut cursor = Cursor::new(file);
        assert_eq!(cursor.seek(SeekFrom::End(-3)).await.expect("sought"), 7);
        let mut rest = Vec::new();
        cursor.read_to_end(&mut rest).await.expect("read");
        assert_eq!(rest, b"789");
        let before = cursor.seek(SeekFrom::End(-11)).await;
        let error = before.expect_err("before the beginning");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(cursor.position(), 10);
    });
}

#[test]
fn an_error_behind_comes_with_the_next_operation() {
    both(async |_, _| {
        let full = File::options().write(true).open("/dev/full").await;
        let mut cursor = Cursor::new(full.expect("open"));
        let written = cursor.write_all(b"too much").await;
        let error = match written {
            Ok(()) => cursor.flush().await.expect_err("it is full"),
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        cursor.close().await.expect("it was told once");
    });
}
