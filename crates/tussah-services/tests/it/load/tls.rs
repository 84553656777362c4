//! TLS.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tussah_services::load::Times;

use super::server::{Action, Server, ok};
use super::{ended, summary};

/// A server with a self-signed certificate, which it writes to the file.
fn server(certificate_path: &std::path::Path) -> Server {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let made = made.expect("a certificate can be made");
    std::fs::write(certificate_path, made.cert.pem()).expect("there is room");
    let chain: Vec<CertificateDer<'static>> = vec![made.cert.der().clone()];
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("they fit");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    // The body is longer than a TLS record.
    let body = vec![b'x'; 100_000];
    let server = Server::new(port, move |_| Action::Send(ok(&body)));
    let accepting = server.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("there are descriptors");
            let session = ServerConnection::new(config.clone()).expect("the configuration is good");
            let server = accepting.clone();
            thread::spawn(move || server.connection(StreamOwned::new(session, stream)));
        }
    });
    server
}

#[test]
fn trusted_and_not() {
    let certificate = tempfile::NamedTempFile::new().expect("a file");
    let path = certificate.path();
    let server = server(path);
    let url = format!("https://localhost:{}/", server.port);
    let good = summary(&format!(
        "{url} -c 2 -n 20 --pipeline 2 --cacert {}",
        path.display()
    ));
    assert_eq!(
        (good.requests.served, good.requests.failed),
        (20, 0),
        "{:?}",
        good.errors
    );
    let options = "-c 2 -n 20 --requests-per-connection 2 --insecure";
    let anyone = summary(&format!("{url} {options}"));
    assert_eq!(
        (anyone.requests.served, anyone.requests.failed),
        (20, 0),
        "{:?}",
        anyone.errors
    );
    // The first request on a connection counts from its sending, and from its due time if
    // connecting is included.
    let options = "-c 1 -n 10 --requests-per-connection 1 --insecure";
    let anew = summary(&format!("{url} {options}"));
    let sum = |times: &Times| times.mean * times.count as f64;
    assert_eq!(anew.connect.count, 9);
    let (parts, all) = (sum(&anew.latency) + sum(&anew.connect), sum(&anew.response));
    assert!(parts < all * 1.01, "{parts} ns of {all}");
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    std::fs::write(path, other.expect("a certificate").cert.pem()).expect("there is room");
    let (status, text) = ended(&format!("{url} -c 1 -n 1 --cacert {}", path.display()));
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("certificate"), "{text}");
}

#[test]
fn invalid_certificates_are_refused() {
    let check = |text: &str, expected: &str| {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("there is room");
        let options = format!("--cacert {} -n 1", file.path().display());
        let (status, text) = ended(&format!("https://127.0.0.1:1/ {options}"));
        assert_eq!(status, 1, "{text}");
        assert!(text.contains(expected), "{text}");
    };
    check("", "at least one certificate");
    check("-----BEGIN CERTIFICATE-----\nnonsense\n", "");
}
