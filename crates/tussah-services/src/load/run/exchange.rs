//! Requests that are sent together on a connection, and their responses.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use tussah_wire::http::Method;

use super::answer::{Ended, Head, Parser, Step};
use super::connect::{Failure, Stream};
use super::fault::Fault;
use super::files::{Contents, FileNumber};
use super::requests::Requests;
use crate::load::report::tally::Outcome;

/// The size of the read buffer, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// The maximum number of buffers in one write. More would rarely be filled.
const BUFFERS_MAX: usize = 64;

thread_local! {
    // The buffer keeps nothing from one poll to the next, so waiting connections need none.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(in crate::load) struct Flight {
    /// The number of the target.
    pub(in crate::load) target: u32,
    /// True for the first or the last request on its connection.
    pub(in crate::load) first: bool,
    pub(in crate::load) last: bool,
    /// True if the bytes of its body are compared.
    pub(in crate::load) checked: bool,
    /// True if the request counts toward the limited number of requests of the run.
    pub(in crate::load) claimed: bool,
    pub(in crate::load) due_ns: u64,
    pub(in crate::load) sent_ns: u64,
}

/// The response to a request.
#[derive(Clone, Copy, Debug)]
pub(in crate::load) struct Answered {
    pub(in crate::load) outcome: Outcome,
    pub(in crate::load) head: Head,
    /// Bytes received since the last response.
    pub(in crate::load) bytes: u64,
}

/// The connection of a client, with its requests in flight.
pub(in crate::load) struct Exchange {
    stream: Option<Stream>,
    parser: Parser,
    flights: VecDeque<Flight>,
    /// The number of requests written, and the number of bytes written of the next request.
    written: usize,
    written_bytes: usize,
    answer: Option<Answer>,
    bytes: u64,
    /// The number of requests begun on this connection, or to be begun on the next one.
    pub(in crate::load) begun: u32,
    /// True if the server closes the connection.
    closes: bool,
    /// True if a response has arrived on this connection.
    has_answered: bool,
}

/// A response whose head has arrived.
struct Answer {
    head: Head,
    /// Bytes of its body that have arrived.
    body_len: u64,
    /// The expected length of the body.
    expected_len: Option<u64>,
    /// The expected contents of the rest of the body.
    contents: Option<Contents>,
    is_wrong: bool,
}

impl Answer {
    fn new(head: Head, flight: &Flight, requests: &Requests) -> Self {
        let file = requests
            .file(flight.target)
            .filter(|_| head.status == 200 && requests.method != Method::Head);
        Self {
            head,
            body_len: 0,
            expected_len: file.map(FileNumber::len),
            contents: file.filter(|_| flight.checked).map(FileNumber::contents),
            is_wrong: false,
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        self.body_len += bytes.len() as u64;
        if let Some(contents) = &mut self.contents
            && !contents.continues(bytes)
        {
            self.is_wrong = true;
            self.contents = None;
        }
    }

    fn outcome(&self) -> Outcome {
        let is_length_wrong = self.expected_len.is_some_and(|len| len != self.body_len);
        match self.head.status {
            503 => Outcome::Rejected,
            400.. => Outcome::Failed(Fault::Status),
            _ if self.is_wrong || is_length_wrong => Outcome::Failed(Fault::WrongBody),
            _ => Outcome::Served,
        }
    }
}

impl Exchange {
    pub(in crate::load) fn new() -> Self {
        Self {
            stream: None,
            parser: Parser::new(),
            flights: VecDeque::new(),
            written: 0,
            written_bytes: 0,
            answer: None,
            bytes: 0,
            begun: 0,
            closes: false,
            has_answered: false,
        }
    }

    pub(in crate::load) fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    pub(in crate::load) fn connected(&mut self, stream: Stream) {
        self.stream = Some(stream);
        self.parser = Parser::new();
        self.closes = false;
        self.has_answered = false;
    }

    /// Takes the connection out of use.
    pub(in crate::load) fn disconnect(&mut self) -> Option<Stream> {
        self.begun = 0;
        self.stream.take()
    }

    /// Returns whether the server has closed the connection or will close it.
    pub(in crate::load) fn closes(&self) -> bool {
        self.closes
    }

    /// Adds a request to those that will be sent.
    pub(in crate::load) fn push(&mut self, flight: Flight) {
        self.begun += 1;
        self.flights.push_back(flight);
    }

    /// Sets the time of sending for requests that waited for a connection.
    pub(in crate::load) fn sent_at(&mut self, now_ns: u64) {
        let flights = self.flights.iter_mut();
        flights.for_each(|flight| flight.sent_ns = now_ns);
    }

    /// Returns the requests in flight.
    pub(in crate::load) fn flights(&mut self) -> &mut VecDeque<Flight> {
        &mut self.flights
    }

    /// Gives up the requests in flight and the connection.
    pub(in crate::load) fn fail(&mut self) -> impl Iterator<Item = Flight> {
        self.disconnect();
        self.answer = None;
        self.bytes = 0;
        self.written = 0;
        self.written_bytes = 0;
        self.flights.drain(..)
    }

    /// Sends the requests and receives responses until all have arrived. Calls `answered` for each
    /// response.
    pub(in crate::load) fn poll(
        &mut self,
        context: &mut Context<'_>,
        requests: &Requests,
        mut answered: impl FnMut(Flight, Answered),
    ) -> Poll<Result<(), Failure>> {
        let mut stream = self.stream.take().expect("a request needs a connection");
        let mut broken = None;
        let result = loop {
            // Reading comes before writing: data that arrives before a request is sent is not a
            // response to it.
            let read = SCRATCH.with_borrow_mut(|buffer| {
                let read = stream.poll_read(context, buffer);
                read.map_ok(|len| self.receive(&buffer[..len], requests, &mut answered))
            });
            match read {
                Poll::Ready(Err(error)) => break Poll::Ready(Err(self.broken(error))),
                Poll::Ready(Ok(Err(fault))) => break Poll::Ready(Err(fault.into())),
                Poll::Ready(Ok(Ok(()))) if self.flights.is_empty() => break Poll::Ready(Ok(())),
                Poll::Ready(Ok(Ok(()))) => continue,
                Poll::Pending => {}
            }
            if let Some(error) = broken {
                break Poll::Ready(Err(self.broken(error)));
            }
            // A response may arrive even if writing fails, for example the response to a body that
            // is too long.
            broken = self.write(context, &mut stream, requests);
            if broken.is_none() {
                break Poll::Pending;
            }
        };
        self.stream = Some(stream);
        result
    }

    /// Classifies the failure of a connection.
    fn broken(&self, error: io::Error) -> Failure {
        let fault = match Fault::of_transfer(&error) {
            // TLS reports this error if a connection closes without notice.
            Fault::Closed if self.answer.is_some() => Fault::Truncated,
            fault => fault,
        };
        Failure {
            fault,
            error: Some(error),
        }
    }

    /// Writes as much as there is room for, including the data that TLS holds back.
    fn write(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut Stream,
        requests: &Requests,
    ) -> Option<io::Error> {
        loop {
            let polled = match self.flights.len() - self.written {
                0 => {
                    return match stream.poll_flush(context) {
                        Poll::Ready(Err(error)) => Some(error),
                        _ => None,
                    };
                }
                // Usually there is one buffer; initializing room for more costs as much as the rest
                // of this function.
                1 => self.write_some::<2>(context, stream, requests),
                _ => self.write_some::<BUFFERS_MAX>(context, stream, requests),
            };
            match polled {
                Poll::Ready(Ok(len)) => self.advance(len, requests),
                Poll::Ready(Err(error)) => return Some(error),
                Poll::Pending => return None,
            }
        }
    }

    /// Writes up to `BUFFERS` buffers.
    fn write_some<const BUFFERS: usize>(
        &self,
        context: &mut Context<'_>,
        stream: &mut Stream,
        requests: &Requests,
    ) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); BUFFERS];
        let mut count = 0;
        let mut written_bytes = self.written_bytes;
        for flight in self.flights.range(self.written..) {
            if count + 2 > BUFFERS {
                break;
            }
            requests.rest(flight.target, flight.last, written_bytes, |slice| {
                slices[count] = slice;
                count += 1;
            });
            written_bytes = 0;
        }
        stream.poll_write(context, &slices[..count])
    }

    /// Records that `len` more bytes have been written.
    fn advance(&mut self, len: usize, requests: &Requests) {
        self.written_bytes += len;
        while let Some(flight) = self.flights.get(self.written) {
            let len = requests.len(flight.target, flight.last);
            if self.written_bytes < len {
                return;
            }
            self.written_bytes -= len;
            self.written += 1;
        }
    }

    /// Handles the bytes that were read. Empty input means the end of the stream.
    fn receive(
        &mut self,
        mut input: &[u8],
        requests: &Requests,
        answered: &mut impl FnMut(Flight, Answered),
    ) -> Result<(), Fault> {
        if input.is_empty() {
            self.closes = true;
            return match self.parser.ended() {
                Ended::Between => Err(Fault::Closed),
                Ended::Within => Err(Fault::Truncated),
                Ended::Whole => {
                    self.end(answered);
                    match self.flights.is_empty() {
                        true => Ok(()),
                        false => Err(Fault::Closed),
                    }
                }
            };
        }
        if self.has_answered && self.written == 0 && self.written_bytes == 0 {
            return Err(Fault::Unsolicited);
        }
        self.bytes += input.len() as u64;
        loop {
            let step = self.parser.step(&mut input, requests.method);
            match step.map_err(|_| Fault::BadResponse)? {
                Step::Starved => return Ok(()),
                Step::Head(head) => {
                    let flight = self
                        .flights
                        .front()
                        .expect("none is left without a request");
                    self.closes |= head.closes;
                    self.answer = Some(Answer::new(head, flight, requests));
                }
                Step::Body(bytes) => self.answer.as_mut().expect("a head precedes").body(bytes),
                Step::End => self.end(answered),
            }
            if self.flights.is_empty() && !input.is_empty() {
                return Err(Fault::Unsolicited);
            }
        }
    }

    /// Handles the end of a response.
    fn end(&mut self, answered: &mut impl FnMut(Flight, Answered)) {
        let answer = self.answer.take().expect("a head precedes an end");
        self.has_answered = true;
        let flight = self.flights.pop_front().expect("an answer has a request");
        // If a response arrives before its request is fully written, the rest of the request is
        // useless.
        match self.written.checked_sub(1) {
            Some(written) => self.written = written,
            None => {
                self.closes = true;
                self.written = self.flights.len();
                self.written_bytes = 0;
            }
        }
        let bytes = std::mem::take(&mut self.bytes);
        let ended = Answered {
            outcome: answer.outcome(),
            head: answer.head,
            bytes,
        };
        answered(flight, ended);
    }
}

#[cfg(test)]
mod tests;
