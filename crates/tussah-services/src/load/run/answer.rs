//! A parser for responses that arrive in pieces.

use std::time::{Duration, SystemTime};

use tussah_wire::http::response::{self, ResponseHead, RetryAfter};
use tussah_wire::http::{Framing, Method, Refusal, body, date, head};

/// The parts of a head that are relevant to the load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::load) struct Head {
    pub(in crate::load) status: u16,
    /// True if the server closes the connection after this response.
    pub(in crate::load) closes: bool,
    /// The value of `Retry-After`.
    pub(in crate::load) retry_after: Option<Duration>,
}

/// The next element of the input.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::load) enum Step<'a> {
    /// The input is used up; call again with more.
    Starved,
    /// The head of a final response.
    Head(Head),
    /// A part of its body.
    Body(&'a [u8]),
    /// The end of the response.
    End,
}

/// The state in which a stream of responses ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::load) enum Ended {
    /// Between two responses.
    Between,
    /// Within a response whose body lasts until the end of the stream.
    Whole,
    /// Within any other response.
    Within,
}

/// A parser for a stream of responses.
#[derive(Debug)]
pub(in crate::load) struct Parser {
    state: State,
    /// The beginning of an incomplete head.
    stash: Vec<u8>,
}

#[derive(Debug)]
enum State {
    Head,
    Body(body::Decoder, Framing),
}

impl Parser {
    pub(in crate::load) fn new() -> Self {
        Self {
            state: State::Head,
            stash: Vec::new(),
        }
    }

    /// Returns the next element and removes it from the input. `method` is the method of the
    /// request.
    ///
    /// # Errors
    /// Returns an error if the input is not a response. The parser cannot continue after that.
    pub(in crate::load) fn step<'a>(
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

    /// Handles the end of the stream.
    pub(in crate::load) fn ended(&self) -> Ended {
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
            // Interim responses (RFC 9110, section 15.2) are skipped.
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

/// The parser discards bodies, so their length is unlimited.
const BODY: body::Limits = body::Limits {
    body_bytes_max: u64::MAX,
    extension_bytes_max: 8 * 1024,
    trailer_bytes_max: 8 * 1024,
};

fn parse(bytes: &[u8], method: Method) -> Result<Option<ResponseHead>, Refusal> {
    response::parse(bytes, method, &head::Limits::default())
}

/// Returns the time that a client has to wait.
fn wait(retry_after: RetryAfter) -> Duration {
    Duration::from_secs(match retry_after {
        RetryAfter::Seconds(seconds) => seconds,
        RetryAfter::At(unix_s) => unix_s.saturating_sub(date::unix_seconds(SystemTime::now())),
    })
}

/// Removes the first bytes of the input.
fn take<'a>(input: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(len);
    *input = rest;
    taken
}

#[cfg(test)]
mod tests;
