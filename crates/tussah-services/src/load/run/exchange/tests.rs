//! Tests of exchanges with servers that stop reading for a while or send unsolicited data.

use std::future::poll_fn;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, SndBuf};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::load::run::requests::{Message, Targets};
use crate::load::run::tls::{Trust, connector};
use crate::load::run::url::Url;

/// Less than TLS holds back, and more than the sockets of a connection hold.
const BODY_BYTES: usize = 60_000;

/// Performs the handshake, and reads a request only on command.
fn serve(listener: &TcpListener, told: &mpsc::Receiver<()>) -> io::Result<()> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let made = made.expect("a certificate can be made");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("they fit");
    let mut session = ServerConnection::new(Arc::new(config)).expect("it is good");
    let (mut stream, _) = listener.accept()?;
    while session.is_handshaking() {
        session.complete_io(&mut stream)?;
    }
    told.recv().expect("the client tells");
    let mut stream = StreamOwned::new(session, stream);
    let mut received = Vec::new();
    while !received.ends_with(b"xend") {
        let mut piece = [0; 4096];
        let len = io::Read::read(&mut stream, &mut piece)?;
        received.extend_from_slice(&piece[..len]);
    }
    io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
}

fn flight() -> Flight {
    Flight {
        target: 0,
        first: true,
        last: false,
        checked: false,
        claimed: false,
        due_ns: 0,
        sent_ns: 0,
    }
}

fn get() -> Requests {
    let message = Message {
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: Vec::new(),
        announces_end: false,
    };
    let url = Url::parse("http://localhost/").expect("it is one");
    Requests::new(&url, &Targets::One, message)
}

#[test]
fn data_before_the_next_request_is_unsolicited() {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let client = TcpStream::connect(listener.local_addr().expect("it is bound"));
    let client = client.expect("it listens");
    let (mut server, _) = listener.accept().expect("a client has come");
    let runtime = tussah::Runtime::builder()
        .workers(1)
        .build()
        .expect("a thread can start");
    let requests = get();
    let failure = runtime.block_on(async {
        client.set_nonblocking(true).expect("it is a socket");
        let client = tussah::net::TcpStream::from_std(client).expect("it is connected");
        let mut exchange = Exchange::new();
        exchange.connected(Stream::Tcp(client));
        // A server without room for another connection reports that before it receives a request.
        io::Write::write_all(&mut server, ANSWER).expect("it is connected");
        exchange.push(flight());
        let first = poll_fn(|context| exchange.poll(context, &requests, |_, _| {}));
        first.await.expect("it is answered");
        io::Write::write_all(&mut server, ANSWER).expect("it is connected");
        exchange.push(flight());
        poll_fn(|context| exchange.poll(context, &requests, |_, _| {})).await
    });
    let failure = failure.expect_err("nobody has asked for it");
    assert_eq!(failure.fault.name(), "unsolicited");
}

#[test]
fn data_that_tls_holds_back_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    setsockopt(&listener, RcvBuf, &4096).expect("it can be small");
    let client = TcpStream::connect(listener.local_addr().expect("it is bound"));
    let client = client.expect("it listens");
    setsockopt(&client, SndBuf, &4096).expect("it can be small");
    let (tell, told) = mpsc::channel();
    let server = thread::spawn(move || serve(&listener, &told));
    let message = Message {
        method: "POST".to_owned(),
        fields: Vec::new(),
        body: [&vec![b'x'; BODY_BYTES][..], b"end"].concat(),
        announces_end: false,
    };
    let requests = Requests::new(
        &Url::parse("https://localhost/").expect("it is one"),
        &Targets::One,
        message,
    );
    let runtime = tussah::Runtime::builder()
        .workers(1)
        .build()
        .expect("a thread can start");
    let statuses = runtime.block_on(async {
        client.set_nonblocking(true).expect("it is a socket");
        let client = tussah::net::TcpStream::from_std(client).expect("it is connected");
        let (connector, name) = connector("localhost", Trust::All).expect("it is a name");
        let stream = connector
            .connect(name, client)
            .await
            .expect("it is trusted");
        let mut exchange = Exchange::new();
        exchange.connected(Stream::Tls(Box::new(stream)));
        exchange.push(flight());
        let mut statuses = Vec::new();
        let whole = poll_fn(|context| {
            let polled = exchange.poll(context, &requests, |_, answer| {
                statuses.push(answer.head.status)
            });
            // TLS has accepted all of the data, but the sockets have not.
            if exchange.written == 1 {
                let _ = tell.send(());
            }
            polled
        });
        let whole = tussah::time::timeout(Duration::from_secs(20), whole).await;
        whole.expect("it comes to an end").expect("it is answered");
        statuses
    });
    assert_eq!(statuses, [200]);
    server
        .join()
        .expect("it does not panic")
        .expect("the connection stays");
}
