//! A connection's thread: waits for requests, sends them into the network, and sees to what that gives back.
//!
//! What it needs between two requests is small; all else is in boxes that are there as long as they are needed.

use std::future::{Future as _, poll_fn};
use std::io::{self, IoSlice};
use std::os::fd::AsFd as _;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tussah::time::{Sleep, sleep, timeout};

use super::accept::Entry;
use super::connection::{Connection, Event};
use super::exchange::{Exchange, Next};
use super::response::SLICES_MAX;
use super::server::Server;
use super::stream::Stream;

/// Serves a connection until it ends.
pub(crate) async fn serve(connection: Arc<Connection>, entry: Arc<Entry>) {
    let mut idle = Idle {
        sleep: pin!(sleep(entry.server.limits.idle_max)),
        is_set: false,
    };
    let mut active_s = entry.server.clock.passed_s();
    let mut spare = None;
    loop {
        let event = poll_fn(|cx| match connection.poll(cx, &mut spare) {
            Poll::Pending => {
                let busy = connection.is_busy();
                idle.poll(cx, &entry.server, active_s, busy).map(|()| None)
            }
            Poll::Ready(event) => Poll::Ready(Some(event)),
        });
        let mut exchange = match event.await {
            Some(Event::Read(Ok(1..))) => spare.take().expect("it was read into"),
            Some(Event::Handed(Some(handed))) => {
                match Box::pin(go_on(&connection, &entry.server, handed)).await {
                    After::Parse(exchange) => exchange,
                    After::Wait => continue,
                    After::End => return,
                }
            }
            // The end, an error, a lost exchange, or too long without a request.
            _ => return,
        };
        active_s = entry.server.clock.passed_s();
        connection.begin(&mut exchange);
        if entry.parse.send(exchange).is_err() {
            return; // the server ends
        }
    }
}

/// Waits until there was no request for too long. The timer is not touched by requests: when it fires, it is looked when the last one was.
struct Idle<'a> {
    sleep: Pin<&'a mut Sleep>,
    is_set: bool,
}

impl Idle<'_> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        server: &Server,
        active_s: u64,
        busy: bool,
    ) -> Poll<()> {
        if self.is_set && !self.sleep.is_elapsed() {
            return Poll::Pending;
        }
        while self.sleep.as_mut().poll(cx).is_ready() {
            let idle_max = server.limits.idle_max;
            let passed = Duration::from_secs(server.clock.passed_s() - active_s);
            if !busy && passed >= idle_max {
                return Poll::Ready(());
            }
            let rest = if busy { idle_max } else { idle_max - passed };
            self.sleep.as_mut().reset(Instant::now() + rest);
        }
        self.is_set = true;
        Poll::Pending
    }
}

/// What a connection does next.
enum After {
    /// The next request is there, as far as it has come.
    Parse(Box<Exchange>),
    /// Wait for the next one.
    Wait,
    /// End.
    End,
}

/// Does what the network has left to do.
async fn go_on(connection: &Connection, server: &Server, mut exchange: Box<Exchange>) -> After {
    match exchange.next {
        Next::Again => return After::Parse(exchange),
        Next::Read => return read_more(connection, server, exchange).await,
        Next::Reset => return After::End,
        Next::Close => {}
        Next::Write => {
            if write(&connection.stream, server, &mut exchange)
                .await
                .is_err()
            {
                return After::End;
            }
            if exchange.response.keep_alive {
                if exchange.has_more() {
                    return After::Parse(exchange);
                }
                Exchange::put(exchange);
                return After::Wait;
            }
        }
    }
    linger(&connection.stream, server, &mut exchange).await;
    After::End
}

/// Reads more of a head that has begun.
async fn read_more(connection: &Connection, server: &Server, mut exchange: Box<Exchange>) -> After {
    let read = poll_fn(|cx| connection.stream.poll_read(cx, exchange.input.room()));
    match timeout(server.limits.head_max, read).await {
        Ok(Ok(len @ 1..)) => {
            exchange.input.add(len);
            After::Parse(exchange)
        }
        _ => After::End,
    }
}

/// Sends the rest of an answer.
async fn write(stream: &Stream, server: &Server, exchange: &mut Exchange) -> io::Result<()> {
    loop {
        let response = &exchange.response;
        let sent = if let Some((page, from, len)) = response.file() {
            let len = len.min(256 * 1024);
            let file = page.file.as_ref().expect("a piece of a file has one");
            stream.send_file(file.as_fd(), from, len).await?;
            len
        } else {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = response.slices(&mut slices);
            let write = poll_fn(|cx| stream.poll_write(cx, &slices[..count]));
            timeout(server.limits.stall_max, write).await?? as u64
        };
        if exchange.response.advance(sent) {
            return Ok(());
        }
    }
}

/// Ends a connection so that the peer gets all of the last answer: a reset would take it away (RFC 9112, section 9.6).
async fn linger(stream: &Stream, server: &Server, exchange: &mut Exchange) {
    if stream.finish().is_err() {
        return;
    }
    let drain = async {
        loop {
            exchange.input.consume(exchange.input.filled().len());
            let read = poll_fn(|cx| stream.poll_read(cx, exchange.input.room())).await;
            if !matches!(read, Ok(1..)) {
                return;
            }
        }
    };
    // Over after this time in any case.
    let _ = timeout(server.limits.linger_max, drain).await;
}
