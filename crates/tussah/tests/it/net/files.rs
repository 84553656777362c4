//! Files that are sent.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tussah::net::FileTruncated;
use tussah::spawn;

use super::{narrow_pair, pair, pattern, run, until};

fn file(len: usize) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(&pattern(len))?;
    Ok(file)
}

#[test]
fn a_part_of_a_file_arrives() {
    run(2, async {
        let (client, server) = pair().await?;
        let file = file(3_000_000)?;
        file.sync_all()?;
        // So that it has to be read again, where the file system does so.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        let sender = spawn(async move {
            server.send_file(file.as_fd(), 7, 2_900_000).await?;
            server.send_file(file.as_fd(), 0, 0).await?;
            server.write_all(b"end").await
        });
        let mut received = vec![0; 2_900_003];
        client.read_exact(&mut received).await?;
        sender.await.expect("no panic")?;
        let expected = &pattern(3_000_000)[7..2_900_007];
        assert!(received.strip_suffix(b"end") == Some(expected));
        Ok(())
    });
}

/// `sendfile` refuses it with `EINVAL`: what the kernel makes up when it is read has no pages.
#[test]
fn a_file_that_the_system_cannot_send_is_read_and_written() {
    run(2, async {
        let (client, server) = pair().await?;
        let file = File::open("/proc/self/cmdline")?;
        let (unsent, _peer) = std::os::unix::net::UnixStream::pair()?;
        let refused = rustix::fs::sendfile(&unsent, &file, Some(&mut 0), 10);
        assert_eq!(refused, Err(rustix::io::Errno::INVAL));
        let expected = std::fs::read("/proc/self/cmdline")?;
        let len = expected.len() as u64;
        server.send_file(file.as_fd(), 1, len - 1).await?;
        let mut received = vec![0; expected.len() - 1];
        client.read_exact(&mut received).await?;
        assert_eq!(received, expected[1..]);
        let error = server.send_file(file.as_fd(), 0, len + 10).await;
        let error = error.expect_err("it ends before");
        let inner = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<FileTruncated>());
        let truncated = inner.expect("it says how much");
        assert_eq!((truncated.sent, truncated.len), (len, len + 10));
        Ok(())
    });
}

/// The same where only some of it fits into the socket at a time.
#[test]
fn a_long_file_that_the_system_cannot_send_arrives_whole() {
    run(2, async {
        let (client, server) = narrow_pair().await?;
        let long: String = (0..20_000).map(|number| number.to_string()).collect();
        // Ends with its standard input.
        let mut child = Command::new("/bin/cat")
            .env_clear()
            .env("LONG", &long)
            .stdin(Stdio::piped())
            .spawn()?;
        let expected = format!("LONG={long}\0").into_bytes();
        let path = format!("/proc/{}/environ", child.id());
        // The system makes the environment up after it has said that the child is there.
        until(|| std::fs::read(&path).is_ok_and(|read| read == expected)).await;
        let file = File::open(&path)?;
        let len = expected.len() as u64;
        let sender = spawn(async move { server.send_file(file.as_fd(), 0, len).await });
        let mut received = vec![0; expected.len()];
        client.read_exact(&mut received).await?;
        sender.await.expect("no panic")?;
        assert!(received == expected);
        drop(child.stdin.take());
        child.wait()?;
        Ok(())
    });
}

#[test]
fn a_file_that_is_truncated_while_it_is_sent() {
    run(1, async {
        let (client, server) = narrow_pair().await?;
        let file = Arc::new(file(1_000_000)?);
        let sent = file.clone();
        let sender = spawn(async move { server.send_file(sent.as_fd(), 0, 1_000_000).await });
        client.readable().await?;
        // The buffers are full, and most of the file is still to go.
        file.set_len(10)?;
        let mut received = 0;
        let mut buffer = vec![0; 100_000];
        loop {
            match client.read(&mut buffer).await? {
                0 => break,
                len => received += len as u64,
            }
        }
        let error = sender
            .await
            .expect("no panic")
            .expect_err("it is too short");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let inner = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<FileTruncated>());
        let truncated = inner.expect("it says how much");
        assert_eq!((truncated.sent, truncated.len), (received, 1_000_000));
        let text = format!("the file ended after {received} of 1000000 bytes were sent");
        assert_eq!(error.to_string(), text);
        assert!(received < 1_000_000);
        Ok(())
    });
}

#[test]
fn a_source_that_is_not_a_regular_file_is_refused() {
    run(1, async {
        let (client, server) = pair().await?;
        let peer = client.local_addr()?;
        let error = server.send_file(client.as_fd(), 0, 10).await;
        let error = error.expect_err("a socket is no file");
        assert!(
            error
                .to_string()
                .starts_with(&format!("send a file to {peer}: ")),
            "{error}"
        );
        let (reader, _writer) = io::pipe()?;
        for source in [client.as_fd(), reader.as_fd()] {
            let error = server.send_file(source, 0, 10).await;
            let error = error.expect_err("it would have to be waited for");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(
                error
                    .to_string()
                    .ends_with("expected a regular file or a block device")
            );
        }
        until(|| server.try_write(b"x").is_ok()).await;
        Ok(())
    });
}
