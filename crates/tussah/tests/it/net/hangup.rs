//! Peers that hang up, by half or wholly, with bytes before that nobody reads.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, Waker};

use tussah::net::{Hangup, Shutdown, TcpStream, UnixStream};

use super::{pair, run};

/// Both kinds of streams have the same.
trait Stream: Sized {
    fn poll(&self, context: &mut Context<'_>, hangup: Hangup) -> Poll<io::Result<()>>;
    fn has(&self, hangup: Hangup) -> bool;
    fn send(&self, bytes: &[u8]) -> io::Result<usize>;
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize>;
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn finish(&self) -> io::Result<()>;
}

macro_rules! stream {
    ($stream:ty) => {
        impl Stream for $stream {
            fn poll(&self, context: &mut Context<'_>, hangup: Hangup) -> Poll<io::Result<()>> {
                self.poll_hangup(context, hangup)
            }
            fn has(&self, hangup: Hangup) -> bool {
                self.has_hung_up(hangup)
            }
            fn send(&self, bytes: &[u8]) -> io::Result<usize> {
                self.try_write(bytes)
            }
            fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
                self.try_read(buffer)
            }
            fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_readable(context)
            }
            fn finish(&self) -> io::Result<()> {
                self.shutdown(Shutdown::Write)
            }
        }
    };
}

stream!(TcpStream);
stream!(UnixStream);

/// Checks a pair on which nothing was waited for yet.
async fn check<S: Stream>(client: S, server: S) -> io::Result<()> {
    let context = &mut Context::from_waker(Waker::noop());
    assert!(server.poll(context, Hangup::Half).is_pending());
    // It is readable when the peer hangs up, so that this is a second edge.
    client.send(b"ab")?;
    poll_fn(|context| server.poll_readable(context)).await?;
    assert!(server.poll(context, Hangup::Half).is_pending());
    assert!(!server.has(Hangup::Half));
    client.finish()?;
    poll_fn(|context| server.poll(context, Hangup::Half)).await?;
    assert!(server.has(Hangup::Half) && !server.has(Hangup::Full));
    // It is still written to, and read: nothing of what came before is lost.
    assert_eq!(server.send(b"c")?, 1);
    poll_fn(|context| client.poll_readable(context)).await?;
    assert_eq!(client.receive(&mut [0])?, 1);
    for len in [1, 1, 0] {
        assert_eq!(server.receive(&mut [0])?, len);
    }
    assert!(server.poll(context, Hangup::Full).is_pending());
    drop(client);
    // A Unix socket says so at once; TCP when something comes that nobody is there for.
    let _ = server.send(b"d"); // it may be told already
    poll_fn(|context| server.poll(context, Hangup::Full)).await?;
    assert!(server.has(Hangup::Half) && server.has(Hangup::Full));
    Ok(())
}

#[test]
fn a_peer_hangs_up_by_half_and_then_wholly() {
    run(1, async {
        let (client, server) = pair().await?;
        check(client, server).await?;
        let (client, server) = UnixStream::pair()?;
        check(client, server).await
    });
}

#[test]
fn a_reset_is_a_hang_up_whatever_was_not_read() {
    run(1, async {
        for unread in [&b""[..], b"unread"] {
            let (client, server) = pair().await?;
            client.write_all(unread).await?;
            if !unread.is_empty() {
                poll_fn(|context| server.poll_readable(context)).await?;
            }
            client.set_linger(Some(std::time::Duration::ZERO))?;
            let hung_up = tussah::spawn(async move {
                poll_fn(|context| server.poll_hangup(context, Hangup::Full)).await
            });
            tussah::yield_now().await;
            drop(client);
            hung_up.await.expect("no panic")?;
        }
        Ok(())
    });
}
