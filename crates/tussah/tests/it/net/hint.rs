//! Waiting until there may be something to read, without reading.

use std::future::poll_fn;
use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tussah::net::{TcpStream, UnixStream};
use tussah::spawn;

use super::{pair, run};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Both kinds of streams have the same.
trait Hints {
    fn hint(&self, context: &mut Context<'_>) -> Poll<std::io::Result<()>>;
    fn attempt(&self, buffer: &mut [u8]) -> std::io::Result<usize>;
}

macro_rules! hints {
    ($stream:ty) => {
        impl Hints for $stream {
            fn hint(&self, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
                self.poll_readable(context)
            }
            fn attempt(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
                self.try_read(buffer)
            }
        }
    };
}

hints!(TcpStream);
hints!(UnixStream);

/// Checks a stream that nothing has been waited for at yet, byte by byte, and its end.
async fn check(server: impl Hints + Send + Sync + 'static, mut send: impl FnMut(Option<u8>)) {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    assert!(server.hint(&mut Context::from_waker(&waker)).is_pending());
    let server = Arc::new(server);
    // Whoever called last is woken, and reads all before it waits again.
    let reader = spawn({
        let server = Arc::clone(&server);
        async move {
            let (mut read, mut buffer) = (Vec::new(), [0; 2]);
            loop {
                poll_fn(|context| server.hint(context)).await?;
                match server.attempt(&mut buffer) {
                    Ok(0) => return Ok(read),
                    Ok(len) => read.extend_from_slice(&buffer[..len]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        }
    });
    for byte in 0..100 {
        send(Some(byte));
        if byte % 7 == 0 {
            tussah::yield_now().await;
        }
    }
    send(None);
    let read = reader.await.expect("no panic").expect("it can be read");
    assert_eq!(read, (0..100).collect::<Vec<_>>());
    // The end is there for everybody, and as often as it is asked for.
    for _ in 0..3 {
        assert!(server.hint(&mut Context::from_waker(&waker)).is_ready());
        assert_eq!(server.attempt(&mut [0]).expect("the end"), 0);
    }
}

#[test]
fn the_hint_stays_until_the_data_is_read() {
    run(1, async {
        let (client, server) = pair().await?;
        let mut client = Some(client);
        let send = |byte: Option<u8>| match (byte, &client) {
            (Some(byte), Some(client)) => {
                assert_eq!(client.try_write(&[byte]).expect("there is room"), 1);
            }
            _ => drop(client.take()),
        };
        check(server, send).await;
        let (client, server) = std::os::unix::net::UnixStream::pair()?;
        server.set_nonblocking(true)?;
        let mut client = Some(client);
        let send = |byte: Option<u8>| match (byte, &mut client) {
            (Some(byte), Some(client)) => client.write_all(&[byte]).expect("there is room"),
            _ => drop(client.take()),
        };
        check(UnixStream::from_std(server)?, send).await;
        Ok(())
    });
}

/// A socket that nothing has waited for yet seems ready to `try_` functions. A waiter for a hint
/// does not get the same hint again and again.
#[test]
fn an_attempt_that_finds_nothing_has_the_hint_wait() {
    run(1, async {
        let (client, server) = pair().await?;
        let blocks = || {
            let error = server.try_read(&mut [0]).expect_err("nothing is there");
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        };
        let context = &mut Context::from_waker(Waker::noop());
        for _ in 0..3 {
            blocks();
            assert!(server.poll_readable(context).is_pending());
        }
        client.write_all(b"ab").await?;
        poll_fn(|context| server.poll_readable(context)).await?;
        assert_eq!(server.try_read(&mut [0])?, 1);
        // There is more, and so it does not wait.
        assert!(server.poll_readable(context).is_ready());
        assert_eq!(server.try_read(&mut [0])?, 1);
        blocks();
        assert!(server.poll_readable(context).is_pending());
        Ok(())
    });
}

#[test]
fn a_loop_of_hints_lets_others_run() {
    run(1, async {
        let (client, server) = pair().await?;
        client.write_all(b"a").await?;
        poll_fn(|context| server.poll_readable(context)).await?;
        let ended = Arc::new(AtomicUsize::new(0));
        let end = Arc::clone(&ended);
        let reader = spawn(async move {
            while end.load(Ordering::Relaxed) == 0 {
                poll_fn(|context| server.poll_readable(context)).await?;
            }
            std::io::Result::Ok(())
        });
        let other = spawn(async move { ended.store(1, Ordering::Relaxed) });
        other.await.expect("no panic");
        reader.await.expect("no panic")
    });
}
