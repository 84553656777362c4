//! A web proxy with one thread per connection, in straight-line code.
//!
//! `proxy_callbacks.rs` is the same proxy with callbacks. [docs/proxy.md](../../../docs/proxy.md)
//! compares them.

#[path = "proxy_common/mod.rs"]
mod common;

use std::io;
use std::time::{Duration, Instant};

use futures_lite::future::zip;
use tussah::net::{Shutdown, TcpStream};
use tussah::signal::{Signal, signal};
use tussah::time::timeout;
use tussah::{Colored, spawn};

use common::{ANSWER_MAX, Body, CLIENT_LIMIT, CONTINUE, Cache, Cut, End, Failure, Fault, Flow};
use common::{LINGER, Options, Request, Response, TUNNEL};

/// The state shared by all connections.
#[derive(Clone)]
struct Proxy {
    cache: Colored<Cache>,
    origin_limit: Duration,
}

fn main() -> Result<(), Failure> {
    let options = Options::get();
    let runtime = options.runtime()?;
    let proxy = Proxy {
        cache: Colored::new_in(&runtime, Cache::new(options.cache)),
        origin_limit: options.origin_limit(),
    };
    runtime.block_on(async {
        let interrupted = signal(Signal::INT)?;
        let listener = options.listen()?;
        let accepting = spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                spawn(connection(client, proxy.clone()));
            }
        });
        interrupted.recv().await?;
        // A runtime that is shutting down accepts no connections.
        accepting.abort();
        let _ = accepting.await;
        Ok(())
    })
}

async fn connection(client: TcpStream, proxy: Proxy) {
    let mut input = Flow::default();
    loop {
        match exchange(&client, &mut input, &proxy).await {
            Ok(true) => {}
            Ok(false) => return close(&client, b"").await,
            Err(End::Fault(fault)) => return close(&client, &fault.answer()).await,
            Err(End::CutOff) => return drop(client.set_linger(Some(Duration::ZERO))),
        }
    }
}

// [exchange]
/// Handles one request. Returns true if the connection may send another.
async fn exchange(client: &TcpStream, input: &mut Flow, proxy: &Proxy) -> Result<bool, End> {
    let Ok(request) = timeout(CLIENT_LIMIT, read_request(client, input)).await else {
        return Ok(false);
    };
    let Some(request) = request? else {
        return Ok(false);
    };
    if let Some(url) = request.cacheable.clone() {
        let found = proxy
            .cache
            .read(move |cache| cache.get(&url, Instant::now()));
        if let Some(answer) = found.await {
            let begun = input.begin(request.len, b"", Body::NONE, 0);
            begun.map_err(Fault::bad)?;
            client.write_all(&answer).await.map_err(|_| End::CutOff)?;
            return Ok(request.keeps_alive);
        }
    }
    let connect = TcpStream::builder().timeout(proxy.origin_limit);
    let address = (&*request.host, request.port);
    let origin = connect.connect(address).await.map_err(Fault::origin)?;
    if request.is_tunnel {
        return tunnel(client, input, &origin, &request).await;
    }
    let begun = input.begin(request.len, &request.head, request.body, 0);
    begun.map_err(Fault::bad)?;
    if request.expects_continue {
        client.write_all(CONTINUE).await.map_err(|_| End::CutOff)?;
    }
    match forward(client, input, &origin).await {
        // An origin that did not read the whole request may still have answered.
        Ok(()) | Err(Cut::Write(_)) => {}
        Err(cut) => return Err(cut.into()),
    }
    let mut output = Flow::default();
    let reading = timeout(
        proxy.origin_limit,
        read_response(&origin, &mut output, &request),
    );
    let response = reading.await.map_err(|_| Fault::late())??;
    let copy_max = response.fresh_for.map_or(0, |_| ANSWER_MAX);
    let begun = output.begin(response.len, &response.head, response.body, copy_max);
    begun.map_err(Fault::broken)?;
    forward(&origin, &mut output, client)
        .await
        .map_err(|_| End::CutOff)?;
    if let (Some(url), Some(time), Some(answer)) =
        (request.cacheable, response.fresh_for, output.take_copy())
    {
        let put = move |cache: &mut Cache| cache.put(&url, &answer, time, Instant::now());
        proxy.cache.with(put).await;
    }
    Ok(response.keeps_alive && input.is_done())
}
// [exchange]

async fn read_request(client: &TcpStream, input: &mut Flow) -> Result<Option<Request>, Fault> {
    loop {
        if let Some(request) = Request::parse(input.unclaimed())? {
            return Ok(Some(request));
        }
        match client.read(input.room()).await {
            Ok(0) | Err(_) => return Ok(None),
            Ok(len) => input.came(len).map_err(Fault::bad)?,
        }
    }
}

async fn read_response(
    origin: &TcpStream,
    output: &mut Flow,
    request: &Request,
) -> Result<Response, Fault> {
    loop {
        if let Some(response) = Response::parse(output.unclaimed(), request)? {
            return Ok(response);
        }
        match origin.read(output.room()).await.map_err(Fault::origin)? {
            0 => return Err(Fault::no_answer()),
            len => output.came(len).map_err(Fault::broken)?,
        }
    }
}

// [forward]
/// Forwards the rest of a message.
async fn forward(from: &TcpStream, flow: &mut Flow, to: &TcpStream) -> Result<(), Cut> {
    loop {
        while !flow.to_write().is_empty() {
            let len = to.write(flow.to_write()).await.map_err(Cut::Write)?;
            flow.wrote(len);
        }
        if flow.is_done() {
            return Ok(());
        }
        let len = from.read(flow.room()).await.map_err(Cut::Read)?;
        flow.came(len).map_err(Cut::Message)?;
    }
}
// [forward]

/// Forwards data in both directions until both have ended.
async fn tunnel(
    client: &TcpStream,
    input: &mut Flow,
    origin: &TcpStream,
    request: &Request,
) -> Result<bool, End> {
    let mut output = Flow::default();
    let begun = input.begin(request.len, b"", Body::ToTheEnd, 0);
    begun.map_err(Fault::bad)?;
    let begun = output.begin(0, TUNNEL, Body::ToTheEnd, 0);
    begun.map_err(Fault::bad)?;
    let pass = async |from: &TcpStream, flow: &mut Flow, to: &TcpStream| {
        if forward(from, flow, to).await.is_err() {
            // Neither direction is useful without the other.
            let _ = from.shutdown(Shutdown::Both);
        }
        let _ = to.shutdown(Shutdown::Write);
    };
    zip(
        pass(client, input, origin),
        pass(origin, &mut output, client),
    )
    .await;
    Ok(false)
}

/// Closes a connection after a last response. It keeps reading what the client sends, because
/// otherwise the system would reset the connection before the response has arrived (RFC 9112,
/// section 9.6).
async fn close(client: &TcpStream, answer: &[u8]) {
    let closing = async {
        client.write_all(answer).await?;
        client.shutdown(Shutdown::Write)?;
        while client.read(&mut [0; 4096]).await? > 0 {}
        io::Result::Ok(())
    };
    // However this ends, nothing more can be done.
    let _ = timeout(LINGER, closing).await;
}
