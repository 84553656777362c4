//! A connection's thread: it waits for requests, sends them into the network, and handles the
//! exchanges that return.
//!
//! The thread needs little memory between two requests. Everything else is in boxes that exist only
//! while they are needed.

mod body;
mod feed;
mod turn;
mod write;

use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_lite::future;
use tussah::stage::{Direct, DirectHandler};
use tussah::time::{Sleep, now, sleep, timeout};
use tussah_wire::http::Status;

use super::connections::Entered;
use super::exchange::{Body, Exchange, Next};
use super::state::{Connection, Event};
use super::stream::Stream;
use crate::web::answer;
use crate::web::server::Server;
use feed::Feed;
use turn::wait_for_turn;

/// The entry point of requests into the network.
pub(crate) struct Entry<P> {
    pub(crate) server: Arc<Server>,
    pub(crate) parse: Direct<Box<Exchange>, P>,
}

/// Serves a connection until it ends.
pub(crate) async fn serve<P: DirectHandler<Event = Box<Exchange>>>(
    connection: Arc<Connection>,
    entry: Arc<Entry<P>>,
    entered: Entered,
) {
    let _open = Open(&entry.server, entered);
    if connection.stream.is_tls() && !Box::pin(handshake(&connection, &entry.server)).await {
        return;
    }
    let sleep = pin!(sleep(entry.server.config.timeouts.idle));
    let mut idle = Idle::new(sleep);
    let clock = &entry.server.clock;
    connection.wait_first(clock.passed_s());
    let (mut requests, mut spare) = (0_u32, None);
    loop {
        let event = poll_fn(|cx| {
            if idle.feeds(cx, &connection, &entry.server) {
                return Poll::Pending;
            }
            match connection.poll(cx, &mut spare) {
                Poll::Ready(event) => Poll::Ready(Some(event)),
                Poll::Pending => {
                    let is_over = idle.poll(cx, &connection, &entry.server);
                    is_over.map(|()| None)
                }
            }
        });
        let mut exchange = match event.await {
            Some(Event::Read(Ok(1..))) => spare.take().expect("it was read into"),
            Some(Event::Handed(Some(mut handed))) => {
                let stream = &connection.stream;
                match Box::pin(go_on(stream, &entry.server, &mut handed, &mut idle.feed)).await {
                    After::Parse => handed,
                    After::Wait => {
                        Exchange::put(handed);
                        connection.wait(clock.passed_s());
                        continue;
                    }
                    After::Close => return Exchange::put(handed),
                    After::End => return,
                }
            }
            // No request arrived in time, or the peer has ended the connection.
            None | Some(Event::Read(Ok(0))) => {
                if connection.stream.is_tls() {
                    Box::pin(finish(&connection.stream, &entry.server)).await;
                }
                return;
            }
            // This is an error, or a lost exchange.
            _ => return,
        };
        requests = requests.saturating_add(exchange.begins().into());
        let max = entry.server.config.limits.requests;
        exchange.is_last |= max.is_some_and(|max| requests as usize >= max);
        match send_on(&entry, &connection, exchange) {
            Ok(None) => {}
            Ok(Some(turn)) => {
                let turn = wait_for_turn(turn, &connection, &entry.server, &mut idle.feed);
                if !Box::pin(turn).await {
                    return;
                }
            }
            Err(()) => return, // the server ends
        }
    }
}

/// Sends a request into the network. Returns how long its client has to wait for its turn, if the
/// request was rejected and the budget for rejections is used up.
fn send_on<P: DirectHandler<Event = Box<Exchange>>>(
    entry: &Entry<P>,
    connection: &Arc<Connection>,
    mut exchange: Box<Exchange>,
) -> Result<Option<Duration>, ()> {
    connection.begin(&mut exchange);
    let budget = &entry.server.budget;
    let begun = budget.begin();
    entry.parse.send(exchange).map_err(drop)?;
    Ok(budget.turn_after(begun))
}

/// Responds that there are too many connections, and ends the connection.
pub(crate) async fn refuse(connection: Arc<Connection>, server: Arc<Server>) {
    let server = &*server;
    let Some(_refused) = server.connections.refuse() else {
        return;
    };
    let mut exchange = Exchange::take();
    exchange.is_last = true;
    let fields = [("Retry-After", "1")];
    answer::text(server, &mut exchange, Status::SERVICE_UNAVAILABLE, &fields);
    if handshake(&connection, server).await
        && write::all(&connection.stream, server, &mut exchange)
            .await
            .is_ok()
    {
        linger(&connection.stream, server, &mut exchange).await;
    }
}

/// A connection's place among the open connections, until this value is dropped.
struct Open<'a>(&'a Server, Entered);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.connections.leave(&self.1);
    }
}

async fn handshake(connection: &Connection, server: &Server) -> bool {
    let shaken = timeout(
        server.config.timeouts.head,
        Box::pin(connection.stream.handshake()),
    );
    let shaken = async { matches!(shaken.await, Ok(Ok(()))) };
    let cut = async {
        server.until_cut().await;
        false
    };
    future::or(shaken, cut).await
}

/// A future that completes when the connection has been idle for longer than its timeout. Requests
/// do not touch the timer: when it fires, the start of the idle time is checked.
struct Idle<'a> {
    sleep: Pin<&'a mut Sleep>,
    is_set: bool,
    is_ending: bool,
    /// The body of a request in flight. It is here because the thread then refers to one value less
    /// while it waits.
    feed: Option<Box<Feed>>,
}

impl<'a> Idle<'a> {
    fn new(sleep: Pin<&'a mut Sleep>) -> Self {
        Self {
            sleep,
            is_set: false,
            is_ending: false,
            feed: None,
        }
    }

    /// Feeds the body of a request in flight. Returns whether the thread has to wait for more of
    /// it: until then, nothing else may wait for the stream.
    #[inline]
    fn feeds(&mut self, cx: &mut Context<'_>, connection: &Connection, server: &Server) -> bool {
        let Some(feed) = &mut self.feed else {
            return false;
        };
        let polled = feed.poll(cx, &connection.stream, &server.config.timeouts);
        polled.is_pending() && !connection.is_handed()
    }

    #[inline]
    fn poll(&mut self, cx: &mut Context<'_>, connection: &Connection, server: &Server) -> Poll<()> {
        if self.is_set && !self.sleep.is_elapsed() && !server.is_ending() {
            return Poll::Pending;
        }
        self.poll_sleep(cx, connection, server)
    }

    #[cold]
    fn poll_sleep(
        &mut self,
        cx: &mut Context<'_>,
        connection: &Connection,
        server: &Server,
    ) -> Poll<()> {
        if server.is_ending() {
            return self.poll_ending(cx, connection, server);
        }
        while self.sleep.as_mut().poll(cx).is_ready() {
            let (idle_max, busy) = (server.config.timeouts.idle, connection.is_busy());
            // A busy connection may be answered in the meantime, in a later second.
            let now_s = server.clock.passed_s();
            let passed_s = now_s.saturating_sub(connection.waits_since_s());
            // Only a part of the first second has passed.
            let passed = Duration::from_secs(passed_s.saturating_sub(1));
            if !busy && passed >= idle_max {
                return Poll::Ready(());
            }
            // The clock may lag by a few milliseconds.
            let rest = if busy { idle_max } else { idle_max - passed };
            let rest = rest.max(Duration::from_millis(100));
            self.sleep.as_mut().reset(now() + rest);
        }
        self.is_set = true;
        Poll::Pending
    }

    /// Waits for the end of the server, at which an idle connection ends. The client does not know
    /// of the end yet, and its next request may be on its way.
    fn poll_ending(
        &mut self,
        cx: &mut Context<'_>,
        connection: &Connection,
        server: &Server,
    ) -> Poll<()> {
        if !connection.is_free() {
            return Poll::Pending;
        }
        if !self.is_ending {
            self.is_ending = true;
            // This stays within the time limit of the shutdown, so that the connection is not cut.
            let config = &server.config;
            let wait = config.timeouts.linger.min(config.drain / 2);
            self.sleep.as_mut().reset(now() + wait);
        }
        self.sleep.as_mut().poll(cx)
    }
}

/// The next step of a connection.
enum After {
    /// Parse the next request, complete or not, or the request whose body has arrived or was
    /// refused.
    Parse,
    /// Wait for the next request.
    Wait,
    /// End the connection, after the last response.
    Close,
    /// End the connection immediately.
    End,
}

/// Does the work that the network has left to the thread.
async fn go_on(
    stream: &Stream,
    server: &Server,
    exchange: &mut Exchange,
    feed: &mut Option<Box<Feed>>,
) -> After {
    let after = match exchange.next {
        Next::Again => After::Parse,
        Next::Kept => {
            if let Some(feed) = feed.take() {
                feed.give_back(&mut exchange.input);
            }
            After::Parse
        }
        Next::Read => read_more(stream, server, exchange).await,
        Next::Body => match body::read(stream, server, exchange).await {
            Ok(rest) => {
                *feed = rest;
                After::Parse
            }
            Err(None) => {
                server.note_unanswered(stream, exchange);
                After::End
            }
            Err(Some(status)) => refused(exchange, status),
        },
        Next::Write => match write(stream, server, exchange, feed.take()).await {
            Ok(()) if !exchange.response.keep_alive => After::Close,
            Ok(()) if exchange.has_more() => After::Parse,
            Ok(()) => After::Wait,
            Err(_) => After::End,
        },
        Next::Close => After::Close,
        Next::Reset => After::End,
    };
    if matches!(after, After::Close) && (stream.is_tls() || !exchange.is_last_of_client()) {
        linger(stream, server, exchange).await;
    }
    after
}

/// Sends the rest of a response, and feeds the rest of the request's body to its handler meanwhile.
async fn write(
    stream: &Stream,
    server: &Server,
    exchange: &mut Exchange,
    feed: Option<Box<Feed>>,
) -> io::Result<()> {
    let Some(mut feed) = feed else {
        return write::all(stream, server, exchange).await;
    };
    let write = write::all(stream, server, exchange);
    future::or(write, feed.run(stream, &server.config.timeouts)).await?;
    feed.give_back(&mut exchange.input);
    Ok(())
}

/// Refuses a request that cannot be read.
fn refused(exchange: &mut Exchange, status: Status) -> After {
    exchange.body = Body::Refused(status);
    After::Parse
}

/// Reads more of an incomplete head. The time limit covers the whole head, however slowly it
/// arrives.
async fn read_more(stream: &Stream, server: &Server, exchange: &mut Exchange) -> After {
    let begun = exchange
        .coming
        .as_ref()
        .map_or_else(Instant::now, |(_, begun)| *begun);
    let left = server.config.timeouts.head.saturating_sub(begun.elapsed());
    if exchange.input.is_full() {
        exchange.input.grow();
    }
    let read = poll_fn(|cx| stream.poll_read(cx, exchange.input.room()));
    match timeout(left, read).await {
        Ok(Ok(len @ 1..)) => {
            exchange.input.add(len);
            After::Parse
        }
        Ok(_) => After::End,
        Err(_) => refused(exchange, Status::REQUEST_TIMEOUT),
    }
}

/// Closes a connection so that the peer receives all of the last response: a reset would discard it
/// (RFC 9112, section 9.6).
async fn linger(stream: &Stream, server: &Server, exchange: &mut Exchange) {
    let end = async {
        if poll_fn(|cx| stream.poll_finish(cx)).await.is_err() {
            return;
        }
        loop {
            exchange.input.consume(exchange.input.filled().len());
            let read = poll_fn(|cx| stream.poll_read(cx, exchange.input.room())).await;
            if !matches!(read, Ok(1..)) {
                return;
            }
        }
    };
    // After this time the connection is closed in any case.
    let _ = timeout(server.config.timeouts.linger, end).await;
}

/// Closes an encrypted connection between two requests.
async fn finish(stream: &Stream, server: &Server) {
    let end = poll_fn(|cx| stream.poll_finish(cx));
    // The connection is closed in any case.
    let _ = timeout(server.config.timeouts.linger, end).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the size, in bytes, of the future that an async function of three arguments returns.
    fn future_bytes<A, B, C, F>(_: impl Fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    struct Parse;

    impl DirectHandler for Parse {
        type Event = Box<Exchange>;

        fn handle(&self, _exchange: Box<Exchange>) {}
    }

    #[test]
    fn a_connection_that_waits_is_small() {
        assert!(size_of::<Connection>() <= 112);
        let thread = future_bytes(serve::<Parse>);
        assert!(thread <= 232, "{thread}");
    }
}
