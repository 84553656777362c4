//! A query to one server and its answer.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::FutureExt as _;
use futures_util::stream::StreamExt as _;
use hickory_resolver::net::NetError;
use hickory_resolver::net::tcp::TcpClientStream;
use hickory_resolver::net::udp::UdpClientStream;
use hickory_resolver::net::xfer::{DnsMultiplexer, DnsRequestSender as _, FirstAnswer as _};
use hickory_resolver::proto::op::{
    DnsRequest, DnsRequestOptions, DnsResponse, Message, Query, ResponseCode,
};

use super::believe::believe;
use super::error::{Failure, Reason};
use super::provider::Provider;

/// Bound, in datagrams: the maximum number of times that a question is sent to a server within the
/// timeout, each time from its own port.
pub(super) const SENDINGS_MAX: u8 = 2;

/// A server, and the timeout for its answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) timeout: Duration,
}

impl Server {
    /// Asks over UDP, and over TCP if the answer is truncated. Returns the trusted part of the
    /// answer: `NoError` or `NXDomain`, with records of the requested type, or else at most one
    /// alias.
    ///
    /// Each question has its own sockets, from an unpredictable port (RFC 5452, section 9.2), and
    /// no thread. Nothing remains when the answer has arrived or is no longer wanted.
    pub(super) async fn ask(self, query: &Query) -> Result<Message, Failure> {
        let answer = self.judge(query, guarded(self.by_datagram(query)).await)?;
        let answer = match answer.truncation {
            true => self.judge(query, guarded(self.by_stream(query)).await)?,
            false => answer,
        };
        if answer.truncation {
            return Err(self.malformed("it is truncated although sent over TCP"));
        }
        let believed = believe(answer.into_message(), query);
        believed.ok_or_else(|| self.malformed("its aliases form a loop"))
    }

    fn judge(
        self,
        query: &Query,
        answer: Result<DnsResponse, NetError>,
    ) -> Result<DnsResponse, Failure> {
        let answer = answer.map_err(|error| self.failed(Reason::of(error, self.timeout)))?;
        if answer.queries != [query.clone()] {
            return Err(self.malformed("it repeats another question"));
        }
        match answer.response_code {
            ResponseCode::NoError | ResponseCode::NXDomain => Ok(answer),
            ResponseCode::Refused => Err(self.failed(Reason::Refused)),
            code => Err(self.failed(Reason::ServerFailure(code))),
        }
    }

    async fn by_datagram(self, query: &Query) -> Result<DnsResponse, NetError> {
        let mut sender = UdpClientStream::builder(self.address, Provider)
            .with_timeout(Some(self.timeout))
            .with_max_retries(SENDINGS_MAX)
            .build();
        sender.send_message(request(query)).first_answer().await
    }

    async fn by_stream(self, query: &Query) -> Result<DnsResponse, NetError> {
        let timeout = Some(self.timeout);
        let (connection, sender) = TcpClientStream::new(self.address, None, timeout, Provider);
        let connection = DnsMultiplexer::new(connection.await?, sender);
        let mut connection = connection.with_timeout(self.timeout);
        let mut answer = connection.send_message(request(query));
        poll_fn(|context| {
            // Poll the connection first: it delivers the answer and enforces the timeout.
            let end = match connection.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(()))) | Poll::Pending => None,
                Poll::Ready(Some(Err(error))) => Some(error),
                Poll::Ready(None) => Some(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            };
            match (answer.poll_next_unpin(context), end) {
                (Poll::Ready(answer), _) => Poll::Ready(answer.unwrap_or(Err(NetError::Timeout))),
                (Poll::Pending, Some(error)) => Poll::Ready(Err(error)),
                (Poll::Pending, None) => Poll::Pending,
            }
        })
        .await
    }

    fn malformed(self, what: &str) -> Failure {
        self.failed(Reason::Malformed(what.to_owned()))
    }

    fn failed(self, reason: Reason) -> Failure {
        let server = Some(self.address);
        Failure { server, reason }
    }
}

/// Turns a panic into an error. The generator of the random ID panics if the kernel gives it no
/// random numbers.
async fn guarded(
    asking: impl Future<Output = Result<DnsResponse, NetError>>,
) -> Result<DnsResponse, NetError> {
    let answer = AssertUnwindSafe(asking).catch_unwind().await;
    answer.unwrap_or_else(|_| {
        let text = "the exchange panicked (does a filter forbid getrandom?)";
        Err(io::Error::other(text).into())
    })
}

/// Creates the request with a random ID and with EDNS (RFC 6891), which allows longer datagrams.
fn request(query: &Query) -> DnsRequest {
    DnsRequest::from_query(query.clone(), DnsRequestOptions::default())
}
