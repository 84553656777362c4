//! Responses, as they come in pieces.

use std::time::{Duration, SystemTime};

use tussah_wire::http::response::{self, ResponseHead, RetryAfter};
use tussah_wire::http::{Framing, Method, Refusal, body, date, head};

/// What a head says that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// The server closes the connection after it.
    pub(super) closes: bool,
    /// When to come again.
    pub(super) retry_after: Option<Duration>,
}

/// What was found in the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// The input has no more; call with what comes.
    Starved,
    /// A final response begins.
    Head(Head),
    /// A part of its body.
    Body(&'a [u8]),
    /// It ends.
    End,
}

/// How the stream may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Between two responses.
    Between,
    /// With a response whose body lasts until then.
    Whole,
    /// Within a response.
    Within,
}

/// Takes a stream of responses apart.
#[derive(Debug)]
pub(super) struct Parser {
    state: State,
    /// The beginning of a head that did not come whole.
    stash: Vec<u8>,
}

#[derive(Debug)]
enum State {
    Head,
    Body(body::Decoder, Framing),
}

impl Parser {
    pub(super) fn new() -> Self {
        Self {
            state: State::Head,
            stash: Vec::new(),
        }
    }

    /// Finds what is next, and takes it from the input, which answers requests with this method.
    ///
    /// # Errors
    /// What came is no response; there is no going on.
    pub(super) fn step<'a>(
        &mut self,
        input: &mut &'a [u8],
        method: Method,
    ) -> Result<Step<'a>, Refusal> {
        let State::Body(decoder, _) = &mut self.state else {
            return self.head(input, method);
        };
        while !decoder.is_done() {
            if input.is_empty() {
                return Ok(Step::Starved);
            }
            let step = decoder.decode(input)?;
            let bytes = take(input, step.consumed);
            if !step.body.is_empty() {
                return Ok(Step::Body(&bytes[step.body]));
            }
        }
        self.state = State::Head;
        Ok(Step::End)
    }

    /// The stream has ended.
    pub(super) fn ended(&self) -> Ended {
        match self.state {
            State::Head if self.stash.is_empty() => Ended::Between,
            State::Body(_, Framing::UntilClose) => Ended::Whole,
            _ => Ended::Within,
        }
    }

    fn head<'a>(&mut self, input: &mut &'a [u8], method: Method) -> Result<Step<'a>, Refusal> {
        while !input.is_empty() {
            let stashed = self.stash.len();
            let head = if stashed == 0 {
                parse(input, method)?
            } else {
                self.stash.extend_from_slice(input);
                parse(&self.stash, method)?
            };
            let Some(head) = head else {
                if stashed == 0 {
                    self.stash.extend_from_slice(input);
                }
                take(input, input.len());
                break;
            };
            take(input, head.len() - stashed);
            self.stash.clear();
            // Interim responses (RFC 9110, section 15.2) are passed over.
            if head.status.code() < 200 && head.status.code() != 101 {
                continue;
            }
            self.state = State::Body(body::Decoder::new(head.framing, BODY)?, head.framing);
            return Ok(Step::Head(Head {
                status: head.status.code(),
                closes: !head.keep_alive,
                retry_after: head.retry_after.map(wait),
            }));
        }
        Ok(Step::Starved)
    }
}

/// Bodies are thrown away, so they may have any length.
const BODY: body::Limits = body::Limits {
    body_bytes_max: u64::MAX,
    extension_bytes_max: 8 * 1024,
    trailer_bytes_max: 8 * 1024,
};

fn parse(bytes: &[u8], method: Method) -> Result<Option<ResponseHead>, Refusal> {
    response::parse(bytes, method, &head::Limits::default())
}

/// How long a client is to wait.
fn wait(retry_after: RetryAfter) -> Duration {
    Duration::from_secs(match retry_after {
        RetryAfter::Seconds(seconds) => seconds,
        RetryAfter::At(unix_s) => unix_s.saturating_sub(date::unix_seconds(SystemTime::now())),
    })
}

/// Takes the first bytes of the input.
fn take<'a>(input: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(len);
    *input = rest;
    taken
}

#[cfg(test)]
mod tests;
