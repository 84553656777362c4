//! A web proxy with callbacks, as in libasync-mp: each connection has a color, and the cache has
//! one.
//!
//! It completes the example of Zeldovich 2002, section 2.2 and figure 2-1. A connection is a box
//! that each callback hands to the next, as `wrap` carries its arguments there.
//! [docs/proxy.md](../../../docs/proxy.md) compares it with other styles.

#[path = "proxy_common/mod.rs"]
mod common;

use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use tussah::events::{on_readable, on_signal, tcp_connect_with};
use tussah::net::{Shutdown, TcpListener, TcpStream};
use tussah::signal::Signal;
use tussah::{Callback, Color, post_in};

use common::{ANSWER_MAX, Body, CLIENT_LIMIT, CONTINUE, Cache, Cut, End, Failure, Fault, Flow};
use common::{LINGER, Limit, Options, Request, Response, Step, TUNNEL, Tunnel};
use common::{forward, pass, when_readable, when_writable};

const CACHE: Color = Color(u64::MAX);

/// The state shared by all connections. The lock is never contended, since only events of one color
/// take it.
#[derive(Clone)]
struct Proxy {
    cache: Arc<Mutex<Cache>>,
    origin_limit: Duration,
}

struct Connection {
    proxy: Proxy,
    color: Color,
    client: Arc<TcpStream>,
    input: Flow,
    limit: Option<Limit>,
}

/// A connection whose request is being served.
struct Exchange {
    of: Box<Connection>,
    request: Request,
    origin: Arc<TcpStream>,
    output: Flow,
    response: Option<Response>,
}

/// A connection whose response is ready.
struct Answer {
    of: Box<Connection>,
    output: Flow,
    keeps_alive: bool,
}

fn main() -> Result<(), Failure> {
    let options = Options::get();
    let runtime = options.runtime()?;
    let proxy = Proxy {
        cache: Arc::new(Mutex::new(Cache::new(options.cache))),
        origin_limit: options.origin_limit(),
    };
    let (stop, stopped) = mpsc::channel();
    runtime.block_on(async {
        let interrupted = move |()| stop.send(()).unwrap_or_default();
        on_signal(Signal::INT, Callback::new(Color::DEFAULT, interrupted))?;
        let listener = Arc::new(options.listen()?);
        let from = listener.clone();
        let accept = move |()| accept(&from, &proxy);
        on_readable(&listener, Callback::new(Color::DEFAULT, accept));
        io::Result::Ok(())
    })?;
    let _ = stopped.recv();
    Ok(())
}

fn accept(listener: &TcpListener, proxy: &Proxy) {
    match listener.try_accept() {
        Ok((client, _)) => {
            let color = Color(client.as_raw_fd() as u64);
            next_request(Box::new(Connection {
                proxy: proxy.clone(),
                color,
                client: Arc::new(client),
                input: Flow::default(),
                limit: None,
            }));
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) => eprintln!("{error}"),
    }
}

/// Continues with the next request, in an event of its own. A runtime that is ending drops the
/// connection.
fn next_request(mut this: Box<Connection>) {
    this.limit = Limit::new(&this.client, this.color, CLIENT_LIMIT);
    let _ = post_in(this.color, move || parse_request(this));
}

fn read_request(mut this: Box<Connection>) {
    match this.client.try_read(this.input.room()) {
        Ok(0) => close(this, b""),
        Ok(len) => match this.input.came(len) {
            Ok(()) => parse_request(this),
            Err(text) => close(this, &Fault::bad(text).answer()),
        },
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_for_request(this),
        Err(_) => {}
    }
}

// [exchange]
fn parse_request(mut this: Box<Connection>) {
    match Request::parse(this.input.unclaimed()) {
        Ok(Some(request)) => {
            this.limit = None;
            let _ = post_in(CACHE, move || look_up(this, request));
        }
        Ok(None) => wait_for_request(this),
        Err(fault) => close(this, &fault.answer()),
    }
}

fn wait_for_request(this: Box<Connection>) {
    when_readable(this.client.clone(), this.color, this, read_request);
}

fn look_up(this: Box<Connection>, request: Request) {
    let cache = this.proxy.cache.try_lock().expect("nobody else runs");
    let url = request.cacheable.as_ref();
    let found = url.and_then(|url| cache.get(url, Instant::now()));
    drop(cache);
    let _ = post_in(this.color, move || looked_up(this, request, found));
}

fn looked_up(mut this: Box<Connection>, request: Request, found: Option<Vec<u8>>) {
    if let Some(answer) = found {
        let begun = this.input.begin(request.len, b"", Body::NONE, 0);
        return match begun {
            Ok(()) => send(this, &answer, request.keeps_alive),
            Err(text) => close(this, &Fault::bad(text).answer()),
        };
    }
    let address = (request.host.clone(), request.port);
    let options = TcpStream::builder().timeout(this.proxy.origin_limit);
    let (color, mut state) = (this.color, Some((this, request)));
    let call = move |origin| {
        if let Some((this, request)) = state.take() {
            connected(this, request, origin);
        }
    };
    tcp_connect_with(options, address, Callback::new(color, call));
}
// [exchange]

fn connected(mut this: Box<Connection>, request: Request, origin: io::Result<TcpStream>) {
    let origin = match origin {
        Ok(origin) => Arc::new(origin),
        Err(error) => return close(this, &Fault::origin(error).answer()),
    };
    if request.is_tunnel {
        return tunnel(*this, &request, origin);
    }
    let begun = this
        .input
        .begin(request.len, &request.head, request.body, 0);
    if let Err(text) = begun {
        return close(this, &Fault::bad(text).answer());
    }
    if request.expects_continue {
        // It fits: the previous response was fully read before anything else was written.
        let _ = this.client.try_write(CONTINUE);
    }
    send_request(Box::new(Exchange {
        of: this,
        request,
        origin,
        output: Flow::default(),
        response: None,
    }));
}

fn send_request(mut this: Box<Exchange>) {
    let (client, origin, color) = (this.of.client.clone(), this.origin.clone(), this.of.color);
    match forward(&client, &mut this.of.input, &origin) {
        Step::Readable => when_readable(client, color, this, send_request),
        Step::Writable => when_writable(origin, color, this, send_request),
        // An origin that did not read the whole request may still have answered.
        Step::Done | Step::Cut(Cut::Write(_)) => {
            this.of.limit = Limit::new(&origin, color, this.of.proxy.origin_limit);
            when_readable(origin, color, this, read_response);
        }
        Step::Cut(cut) => match End::from(cut) {
            End::Fault(fault) => close(this.of, &fault.answer()),
            End::CutOff => cut_off(&client),
        },
    }
}

fn read_response(mut this: Box<Exchange>) {
    let fault = match this.origin.try_read(this.output.room()) {
        Ok(0) => Fault::no_answer(),
        Ok(len) => match this.output.came(len) {
            Ok(()) => return parse_response(this),
            Err(text) => Fault::broken(text),
        },
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return wait_for_response(this),
        Err(error) => Fault::origin(error),
    };
    // The time limit shuts the connection down, which looks like its end.
    let is_late = this.of.limit.as_ref().is_some_and(|limit| limit.is_over());
    let fault = if is_late { Fault::late() } else { fault };
    close(this.of, &fault.answer());
}

fn parse_response(mut this: Box<Exchange>) {
    let response = match Response::parse(this.output.unclaimed(), &this.request) {
        Ok(Some(response)) => response,
        Ok(None) => return wait_for_response(this),
        Err(fault) => return close(this.of, &fault.answer()),
    };
    this.of.limit = None;
    let copy_max = response.fresh_for.map_or(0, |_| ANSWER_MAX);
    let begun = this
        .output
        .begin(response.len, &response.head, response.body, copy_max);
    if let Err(text) = begun {
        return close(this.of, &Fault::broken(text).answer());
    }
    this.response = Some(response);
    send_response(this);
}

fn wait_for_response(this: Box<Exchange>) {
    when_readable(this.origin.clone(), this.of.color, this, read_response);
}

fn send_response(mut this: Box<Exchange>) {
    let (client, origin, color) = (this.of.client.clone(), this.origin.clone(), this.of.color);
    match forward(&origin, &mut this.output, &client) {
        Step::Readable => when_readable(origin, color, this, send_response),
        Step::Writable => when_writable(client, color, this, send_response),
        Step::Done => finish(*this),
        Step::Cut(_) => cut_off(&client),
    }
}

fn finish(mut this: Exchange) {
    let response = this.response.expect("it was sent");
    let proxy = this.of.proxy.clone();
    if let (Some(url), Some(time), Some(answer)) = (
        this.request.cacheable,
        response.fresh_for,
        this.output.take_copy(),
    ) {
        let _ = post_in(CACHE, move || store(&proxy, &url, &answer, time));
    }
    if response.keeps_alive && this.of.input.is_done() {
        next_request(this.of);
    } else {
        close(this.of, b"");
    }
}

fn store(proxy: &Proxy, url: &str, answer: &[u8], time: Duration) {
    let mut cache = proxy.cache.try_lock().expect("nobody else runs");
    cache.put(url, answer, time, Instant::now());
}

/// Forwards data in both directions until both have ended.
fn tunnel(this: Connection, request: &Request, origin: Arc<TcpStream>) {
    let Connection {
        color,
        client,
        mut input,
        ..
    } = this;
    let mut output = Flow::default();
    let begun = input
        .begin(request.len, b"", Body::ToTheEnd, 0)
        .and_then(|()| output.begin(0, TUNNEL, Body::ToTheEnd, 0));
    if begun.is_err() {
        return cut_off(&client);
    }
    for (from, flow, to) in [(&client, input, &origin), (&origin, output, &client)] {
        pass(Box::new(Tunnel {
            color,
            from: from.clone(),
            flow,
            to: to.clone(),
        }));
    }
}

/// Resets a connection, so that the client does not mistake a truncated response for a complete
/// one.
fn cut_off(client: &TcpStream) {
    let _ = client.set_linger(Some(Duration::ZERO));
}

/// Closes a connection after a last response. It keeps reading what the client sends, because
/// otherwise the system would reset the connection before the response has arrived (RFC 9112,
/// section 9.6).
fn close(this: Box<Connection>, answer: &[u8]) {
    send(this, answer, false);
}

/// Sends a response that is ready.
fn send(of: Box<Connection>, answer: &[u8], keeps_alive: bool) {
    let mut output = Flow::default();
    let begun = output.begin(0, answer, Body::NONE, 0);
    begun.expect("a body of no bytes has no form that could be wrong");
    send_answer(Box::new(Answer {
        of,
        output,
        keeps_alive,
    }));
}

fn send_answer(mut this: Box<Answer>) {
    let (client, color) = (this.of.client.clone(), this.of.color);
    match forward(&client, &mut this.output, &client) {
        Step::Writable => when_writable(client, color, this, send_answer),
        Step::Done if this.keeps_alive => next_request(this.of),
        Step::Done => {
            let _ = client.shutdown(Shutdown::Write);
            this.of.limit = Limit::new(&client, color, LINGER);
            when_readable(client, color, this.of, linger);
        }
        Step::Readable | Step::Cut(_) => {}
    }
}

fn linger(this: Box<Connection>) {
    match this.client.try_read(&mut [0; 4096]) {
        Ok(1..) => when_readable(this.client.clone(), this.color, this, linger),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            when_readable(this.client.clone(), this.color, this, linger);
        }
        _ => {}
    }
}
