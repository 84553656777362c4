//! Responses, as they come in pieces (RFC 9112, sections 4, 6 and 7).

mod chunked;

use std::time::Duration;

use chunked::Chunked;

/// Bound, in bytes: how long a head may be; longer ones count as bad.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Bound, in fields: how many a head may have.
const FIELDS_MAX: usize = 100;

/// What is wrong with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bad;

/// What a head says that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// The length of the body, if it is known from the beginning.
    pub(super) length: Option<u64>,
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
    /// So many bytes of the body are to come.
    Length(u64),
    Chunked(Chunked),
    /// The body ends with the stream.
    Stream,
}

impl Parser {
    pub(super) fn new() -> Self {
        Self {
            state: State::Head,
            stash: Vec::new(),
        }
    }

    /// Finds what is next, and takes it from the input. `bodiless`: the response to HEAD has no body.
    ///
    /// # Errors
    /// What came is no response; there is no going on.
    pub(super) fn step<'a>(
        &mut self,
        input: &mut &'a [u8],
        bodiless: bool,
    ) -> Result<Step<'a>, Bad> {
        match &mut self.state {
            State::Head => self.head(input, bodiless),
            State::Length(0) => Ok(self.end()),
            _ if input.is_empty() => Ok(Step::Starved),
            State::Length(left) => {
                let len = input
                    .len()
                    .min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= len as u64;
                Ok(Step::Body(take(input, len)))
            }
            State::Stream => Ok(Step::Body(take(input, input.len()))),
            State::Chunked(chunked) => match chunked.step(input)? {
                Some([]) => Ok(Step::Starved),
                Some(body) => Ok(Step::Body(body)),
                None => Ok(self.end()),
            },
        }
    }

    /// The stream has ended.
    pub(super) fn ended(&mut self) -> Ended {
        match self.state {
            State::Head if self.stash.is_empty() => Ended::Between,
            State::Stream => {
                self.end();
                Ended::Whole
            }
            _ => Ended::Within,
        }
    }

    fn end(&mut self) -> Step<'static> {
        self.state = State::Head;
        Step::End
    }

    fn head<'a>(&mut self, input: &mut &'a [u8], bodiless: bool) -> Result<Step<'a>, Bad> {
        while !input.is_empty() {
            let before = self.stash.len();
            let parsed = if before == 0 {
                parse(input)?
            } else {
                let room = HEAD_BYTES_MAX.saturating_sub(before).min(input.len());
                self.stash.extend_from_slice(&input[..room]);
                parse(&self.stash)?
            };
            let Some((head, framing, len)) = parsed else {
                if before == 0 {
                    self.stash.extend_from_slice(input);
                }
                if self.stash.len() >= HEAD_BYTES_MAX {
                    return Err(Bad);
                }
                take(input, input.len());
                return Ok(Step::Starved);
            };
            take(input, len - before);
            self.stash.clear();
            // Interim responses (RFC 9110, section 15.2) are passed over.
            if (100..200).contains(&head.status) && head.status != 101 {
                continue;
            }
            let none = bodiless || matches!(head.status, 101 | 204 | 304);
            self.state = match framing {
                _ if none => State::Length(0),
                Framing::Length(length) => State::Length(length),
                Framing::Chunked => State::Chunked(Chunked::new()),
                Framing::Stream => State::Stream,
            };
            let length = match self.state {
                State::Length(length) => Some(length),
                _ => None,
            };
            let closes = head.closes || matches!(self.state, State::Stream);
            return Ok(Step::Head(Head {
                length,
                closes,
                ..head
            }));
        }
        Ok(Step::Starved)
    }
}

/// How the length of a body is known (RFC 9112, section 6.3).
enum Framing {
    Length(u64),
    Chunked,
    Stream,
}

/// Parses a head, with how long it is; `None`: it is not whole.
fn parse(bytes: &[u8]) -> Result<Option<(Head, Framing, usize)>, Bad> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(len) = response.parse(bytes).map_err(|_| Bad)? else {
        return Ok(None);
    };
    let mut head = Head {
        status: response.code.ok_or(Bad)?,
        length: None,
        closes: response.version == Some(0),
        retry_after: None,
    };
    let mut framing = Framing::Stream;
    for field in &*response.headers {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        // By the length first: most fields are of no interest.
        match field.name.len() {
            10 if is("connection") => {
                let has = |option| has(field.value, option);
                head.closes = has("close") || head.closes && !has("keep-alive");
            }
            11 if is("retry-after") => {
                head.retry_after = number(field.value).map(Duration::from_secs);
            }
            14 if is("content-length") && !matches!(framing, Framing::Chunked) => {
                let length = number(field.value).ok_or(Bad)?;
                if matches!(framing, Framing::Length(before) if before != length) {
                    return Err(Bad);
                }
                framing = Framing::Length(length);
            }
            17 if is("transfer-encoding") => {
                framing = match has(field.value, "chunked") {
                    true => Framing::Chunked,
                    false => Framing::Stream,
                };
            }
            _ => {}
        }
    }
    Ok(Some((head, framing, len)))
}

/// Whether a list has an option.
fn has(value: &[u8], option: &str) -> bool {
    let mut options = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    options.any(|word| word.eq_ignore_ascii_case(option.as_bytes()))
}

fn number(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Takes the first bytes of the input.
fn take<'a>(input: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(len);
    *input = rest;
    taken
}

#[cfg(test)]
mod tests;
