//! A source of HTTP requests.

use std::net::SocketAddr;

use parking_lot::Mutex;
use tussah::flow::{AsyncOut, Period, Size, module};
use tussah::sync::mpsc::{Receiver, channel};

use super::wire::{Arrival, wire};
use super::{Request, Response};
use crate::web::config::{
    Cache, CacheKind, Config, HalfClose, Limits, ListenAddress, StatusPageOptions, Timeouts,
};
use crate::web::site::Site;
use crate::web::{Routes, Running};

/// Accepts connections and sends their HTTP/1.1 requests into the graph. Each connection is a flow.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `listen` | address | the address; port 0 selects a free port |
/// | `connections` | count, 1 to 1,000,000, default 10,000 | the maximum number of open connections; at the maximum, a new connection replaces an idle one, or gets 503 |
/// | `head` | size, 1 to 65,535 bytes, default 16 KiB | the longest head; 431 for a longer one |
/// | `body` | size, default 1 MiB | the longest body; 413 for a longer one |
/// | `patience` | duration, above 0, default 30 s | the time limit for receiving a body, and the time for which a client may stall while reading a response |
/// | `idle` | duration, above 0, default 60 s | the maximum time from a response to the next request |
/// | `half_close` | flag, default true | whether to answer a client that has closed its sending side |
///
/// The head of a request must arrive within 10 seconds. The module keeps the body of a request in
/// memory until the request is dropped.
///
/// The output `out` sends the [`Request`]s. The optional output `listening` sends the bound address
/// once. The optional output `bad` sends a proposed [`Response`] if a request is not valid HTTP,
/// has a head or body that is too long, asks for a tunnel (`CONNECT`), or does not arrive in time.
/// Without an edge from `bad`, the client gets the proposed response. The connection then closes.
///
/// Each request gets exactly one answer: the response from [`HttpReply`](super::HttpReply), or an
/// automatic response if the request is dropped (see [`Request`]). The module sends the next
/// request of a connection into the graph only after the previous one has been answered, so
/// pipelined requests are answered in order. While the graph does not accept requests, at most one
/// request of each connection waits.
///
/// The flow of a connection ends when the client disconnects. If a client disconnects before the
/// graph has accepted its request, the module discards the request. When the graph stops, the
/// module accepts no further connections, and closes each open connection once all requests of that
/// connection have been answered.
///
/// If the address cannot be bound, the graph fails to start, with an error that states the reason.
#[module]
pub struct HttpListen {
    address: SocketAddr,
    /// `None` after the start.
    begun: Mutex<Option<(Running, Receiver<Arrival>)>>,
}

/// Bound, in connections: the default maximum number that are open at a time. At the maximum, a new
/// connection replaces an idle one, or gets status 503.
const CONNECTIONS: usize = 10_000;
/// Bound, in connections: the largest value of `connections`. The module does not start with a
/// larger one.
const CONNECTIONS_MAX: usize = 1_000_000;
/// Bound, in bytes: the largest value of `head`. The module does not start with a larger one.
const HEAD_MAX: u64 = u16::MAX as u64;

#[module]
impl HttpListen {
    fn init(
        listen: SocketAddr,
        connections: Option<usize>,
        head: Option<Size>,
        body: Option<Size>,
        patience: Option<Period>,
        idle: Option<Period>,
        half_close: Option<bool>,
    ) -> Result<Self, String> {
        let connections = connections.unwrap_or(CONNECTIONS);
        if !(1..=CONNECTIONS_MAX).contains(&connections) {
            return Err(format!(
                "`connections` is {connections}: expected 1 to {CONNECTIONS_MAX}"
            ));
        }
        let defaults = Limits::default();
        let head_bytes = head.map_or(defaults.head_bytes, |size| size.0);
        if !(1..=HEAD_MAX).contains(&head_bytes) {
            return Err(format!(
                "`head` is {head_bytes} bytes: expected 1 to {HEAD_MAX}"
            ));
        }
        let mut timeouts = Timeouts::default();
        if let Some(patience) = patience {
            (timeouts.body, timeouts.write) = (patience.get(), patience.get());
        }
        timeouts.idle = idle.map_or(timeouts.idle, Period::get);
        let config = Config {
            listen: vec![ListenAddress::Tcp(listen)],
            half_close: treatment(half_close),
            cache: Cache {
                kind: CacheKind::None,
                ..Cache::default()
            },
            limits: Limits {
                head_bytes,
                body_bytes: body.map_or(defaults.body_bytes, |size| size.0),
                connections,
                ..defaults
            },
            timeouts,
            status: StatusPageOptions {
                path: None,
                ..StatusPageOptions::default()
            },
            ..Config::default()
        };
        // One request of each connection, and one end.
        let (sender, arrivals) = channel(2 * connections);
        let running = Running::start(
            config,
            Routes::default(),
            |_| Ok(Site::empty()),
            Box::new(move |network, server| wire(network, server, &sender)),
        );
        let running = running.map_err(|error| error.to_string())?;
        let address = running.addresses().find_map(|address| match address {
            ListenAddress::Tcp(address) => Some(*address),
            ListenAddress::Unix(_) => None,
        });
        Ok(Self {
            address: address.unwrap_or(listen),
            begun: Mutex::new(Some((running, arrivals))),
        })
    }

    async fn start(
        &self,
        out: &impl AsyncOut<Request>,
        bad: Option<&impl AsyncOut<Response>>,
        listening: Option<&impl AsyncOut<SocketAddr>>,
    ) {
        let Some((running, mut arrivals)) = self.begun.lock().take() else {
            return;
        };
        let _stops = Stops(Some(running));
        if let Some(listening) = listening {
            listening.send(self.address).await;
        }
        while let Ok(arrival) = arrivals.recv().await {
            match arrival {
                Arrival::Request(_, request) if request.is_over() => drop(request),
                Arrival::Request(connection, request) => out.to(connection, request).await,
                // Without an edge, the client gets the response when it is dropped.
                Arrival::Bad(response) => match bad {
                    Some(bad) => bad.send(response).await,
                    None => drop(response),
                },
                Arrival::End(connection) => out.close(connection),
            }
        }
    }
}

/// Returns the treatment of a client that has closed its sending direction.
fn treatment(is_served: Option<bool>) -> HalfClose {
    match is_served {
        Some(false) => HalfClose::Cancel,
        _ => HalfClose::Serve,
    }
}

/// Shuts a server down when this value is dropped, after the requests in flight.
struct Stops(Option<Running>);

impl Drop for Stops {
    fn drop(&mut self) {
        if let (Some(running), Ok(handle)) = (self.0.take(), tussah::Handle::try_current()) {
            // A runtime that shuts down refuses it, and drops the server itself.
            drop(handle.try_spawn(running.stop()));
        }
    }
}
