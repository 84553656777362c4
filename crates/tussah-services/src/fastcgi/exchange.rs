//! One request over one connection, in both directions at the same time.

use std::future::poll_fn;
use std::io;
use std::num::NonZeroU16;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_io::AsyncRead;
use futures_lite::future;
use tussah::sync::LimitPermit;
use tussah::time::timeout;
use tussah_wire::fastcgi::{self, Event, Parser, Role, Stream};

use super::backend::Pool;
use super::connection::Connection;
use super::failure::Failure;
use super::params::Params;

/// The records around the variables, in bytes, if there are less than 64 KiB of these and no body.
const HEADER_BYTES: usize = 64;

/// The maximum length of one read of the request's body, in bytes.
const BODY_BYTES: usize = 32 * 1024;

/// The maximum length of the first read of the body, in bytes, since most requests have none.
const FIRST_BODY_BYTES: usize = 512;

/// Bound, in bytes: the maximum length of a line of the application's messages; a longer line is
/// logged in parts.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// A request that has been sent at least in part.
pub(super) struct Exchange<B> {
    pub(super) pool: Arc<Pool>,
    /// The number of the request.
    id: NonZeroU16,
    /// The connection, until the application has ended the response.
    connection: Option<Connection>,
    /// The permit for the connection.
    permit: Option<LimitPermit>,
    parser: Parser,
    /// The part of the connection's input that has not been parsed.
    unparsed: Range<usize>,
    /// The bytes to send and the number of those sent.
    output: Vec<u8>,
    sent: usize,
    /// The body, until its end.
    body: Option<B>,
    /// Space for reading the body; empty before its first bytes.
    space: Vec<u8>,
    /// True if the client, not the application, is the one to wait for.
    waits_for_body: bool,
    /// True if the connection had another request before. It may end at any moment.
    was_kept: bool,
    /// True once a byte has been sent.
    has_begun: bool,
    /// True while the request may be sent again: its method is safe, no byte of the response has
    /// arrived, and `output` still holds all that was sent.
    may_repeat: bool,
    /// The error that ended sending. The application may have responded before.
    broken: Option<io::Error>,
    /// The variables of the request, which name the script in messages.
    params: Params,
    message: Vec<u8>,
}

/// The result of one step.
enum Step {
    /// Bytes were sent, or read without a result.
    Progress,
    /// Output of the application was appended.
    Output,
    /// The application has ended the response.
    End,
}

impl<B: AsyncRead + Unpin> Exchange<B> {
    /// Returns an exchange in a box, because the futures around it would be several times as long.
    pub(super) fn new(
        pool: Arc<Pool>,
        permit: LimitPermit,
        (connection, was_kept): (Connection, bool),
        params: Params,
        body: B,
    ) -> Box<Self> {
        let id = connection.id();
        let mut output = Vec::with_capacity(params.pairs.len() + HEADER_BYTES);
        fastcgi::push_begin_request(&mut output, id, Role::Responder, true);
        fastcgi::push_stream(&mut output, Stream::Params, id, &params.pairs);
        fastcgi::push_stream_end(&mut output, Stream::Params, id);
        Box::new(Self {
            pool,
            id,
            connection: Some(connection),
            permit: Some(permit),
            was_kept,
            parser: Parser::new(id),
            unparsed: 0..0,
            output,
            sent: 0,
            body: Some(body),
            space: Vec::new(),
            waits_for_body: false,
            has_begun: false,
            may_repeat: params.is_safe(),
            broken: None,
            params,
            message: Vec::new(),
        })
    }

    /// Appends the next output of the application to `output`. Returns false at the end of the
    /// response.
    pub(super) async fn read(&mut self, output: &mut Vec<u8>) -> Result<bool, Failure> {
        let time = self.pool.options.silence;
        loop {
            if self.connection.is_none() {
                return Ok(false);
            }
            let mut step = poll_fn(|cx| self.poll_step(cx, output));
            // Most steps are ready, and reading the clock for a time limit is as long as some.
            let step = match future::poll_once(&mut step).await {
                Some(step) => Ok(step),
                None => timeout(time, step).await,
            };
            match step {
                Ok(Ok(Step::Progress)) => {}
                Ok(Ok(Step::Output)) => return Ok(true),
                Ok(Ok(Step::End)) => return Ok(false),
                Ok(Err(failure)) if self.may_retry(&failure) => {
                    // The kept connection ended at the same moment; nothing of the request is lost.
                    self.connection = Some(self.pool.connect(self.id).await?);
                    (self.sent, self.broken) = (0, None);
                    self.was_kept = false;
                }
                Ok(Err(failure)) => return Err(failure),
                Err(_) if self.waits_for_body => {}
                Err(_) => return Err(Failure::Silent(time)),
            }
        }
    }

    /// Returns whether a kept connection broke before a byte was sent, or, if the request may be
    /// repeated, before a byte of the response arrived. An application such as php-fpm with
    /// `pm.max_requests` closes a connection shortly after a response.
    fn may_retry(&self, failure: &Failure) -> bool {
        let is_new = match failure {
            Failure::Broken(_) => !self.has_begun || self.may_repeat,
            Failure::Closed => self.may_repeat,
            _ => false,
        };
        self.was_kept && is_new
    }

    fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Poll<Result<Step, Failure>> {
        let has_sent = self.poll_send(cx)?;
        if let Some(error) = self.broken.take_if(|_| !self.has_begun) {
            return Poll::Ready(Err(Failure::Broken(error)));
        }
        match self.poll_receive(cx, output)? {
            Poll::Ready(step) => Poll::Ready(Ok(step)),
            Poll::Pending if has_sent => Poll::Ready(Ok(Step::Progress)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Sends what there is room for, at most one buffer. Returns whether something was sent.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<bool, Failure> {
        self.waits_for_body = false;
        if self.sent == self.output.len() {
            if self.body.is_none() || self.broken.is_some() {
                return Ok(false);
            }
            // The end of an empty body is sent together with the rest.
            self.may_repeat = false;
            self.output.clear();
            self.sent = 0;
        }
        if self.output.len() < BODY_BYTES
            && let Some(body) = &mut self.body
        {
            let mut first = [0; FIRST_BODY_BYTES];
            let space = match self.space.is_empty() {
                true => &mut first[..],
                false => &mut self.space,
            };
            match Pin::new(body).poll_read(cx, space) {
                Poll::Pending => self.waits_for_body = self.sent == self.output.len(),
                Poll::Ready(Err(error)) => return Err(Failure::Body(error)),
                Poll::Ready(Ok(0)) => {
                    self.body = None;
                    fastcgi::push_stream_end(&mut self.output, Stream::Stdin, self.id);
                }
                Poll::Ready(Ok(len)) => {
                    let bytes = &space[..len];
                    fastcgi::push_stream(&mut self.output, Stream::Stdin, self.id, bytes);
                    self.space.resize(BODY_BYTES, 0);
                }
            }
        }
        let (Some(connection), false) = (&self.connection, self.sent == self.output.len()) else {
            return Ok(false);
        };
        match connection.poll_write(cx, &self.output[self.sent..]) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(len)) => {
                self.has_begun |= len > 0;
                self.sent += len;
                Ok(true)
            }
            Poll::Ready(Err(error)) => {
                // An application may respond and close without reading the whole body.
                let may_respond = matches!(
                    error.kind(),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                );
                if self.has_begun && !may_respond {
                    return Err(Failure::Broken(error));
                }
                if self.has_begun {
                    self.sent = self.output.len();
                }
                self.broken = Some(error);
                Ok(false)
            }
        }
    }

    /// Handles the events of the application that have arrived, or reads more.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Result<Poll<Step>, Failure> {
        let before = output.len();
        loop {
            let Some(connection) = &self.connection else {
                return Err(Failure::Closed);
            };
            let bytes = connection.input(self.unparsed.clone());
            let step = self.parser.parse(bytes).map_err(Failure::Records)?;
            self.unparsed.start += step.consumed;
            match step.event {
                Some(Event::Stdout(text)) => output.extend_from_slice(text),
                Some(Event::Stderr(text)) => {
                    add_message(&self.pool, &self.params, &mut self.message, text)
                }
                Some(Event::End(end)) if end.status.is_complete() => {
                    self.end();
                    return Ok(Poll::Ready(match output.len() > before {
                        true => Step::Output, // the next step finds no connection
                        false => Step::End,
                    }));
                }
                Some(Event::End(end)) => return Err(Failure::Rejected(end.status)),
                Some(Event::Values(_) | Event::UnknownType(_)) => {}
                None if output.len() > before => return Ok(Poll::Ready(Step::Output)),
                // Each read is a step, because the application is not silent, whatever it sends.
                None => return Ok(self.poll_fill(cx)?.map(|()| Step::Progress)),
            }
        }
    }

    /// Reads more bytes. All earlier ones have been parsed.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let Some(connection) = &mut self.connection else {
            return Poll::Ready(Err(Failure::Closed));
        };
        let read = ready!(connection.poll_read(cx));
        Poll::Ready(match (read, self.broken.take()) {
            (Ok(len @ 1..), broken) => {
                self.may_repeat = false;
                self.broken = broken;
                self.unparsed = 0..len;
                Ok(())
            }
            (Ok(0), None) => Err(Failure::Closed),
            (Ok(0), Some(error)) | (Err(error), _) => Err(Failure::Broken(error)),
        })
    }

    /// Releases the connection. It is kept if both sides have said everything.
    fn end(&mut self) {
        let all_sent = self.body.is_none() && self.sent == self.output.len();
        let can_keep = all_sent && self.broken.is_none() && self.unparsed.is_empty();
        if let Some(connection) = self.connection.take()
            && can_keep
        {
            self.pool.keep(connection);
        }
        self.permit = None;
    }
}

/// Logs part of the application's messages, line by line.
fn add_message(pool: &Pool, params: &Params, message: &mut Vec<u8>, text: &[u8]) {
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        for piece in line.chunks(MESSAGE_BYTES_MAX) {
            if message.len() + piece.len() > MESSAGE_BYTES_MAX {
                log(pool, params, message);
            }
            message.extend_from_slice(piece);
        }
        if line.ends_with(b"\n") {
            log(pool, params, message);
        }
    }
}

/// Logs a message of the application.
fn log(pool: &Pool, params: &Params, message: &mut Vec<u8>) {
    let text = message.trim_ascii();
    if !text.is_empty() {
        let (text, script) = (printable(text), printable(params.script()));
        tracing::warn!(backend = %pool.address, %script, "FastCGI application: {text}");
    }
    message.clear();
}

/// Returns text that contains no control characters.
fn printable(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace(char::is_control, "\u{fffd}")
}

impl<B> Drop for Exchange<B> {
    fn drop(&mut self) {
        log(&self.pool, &self.params, &mut self.message);
    }
}
