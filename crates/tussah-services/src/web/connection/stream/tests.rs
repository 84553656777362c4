//! Tests of the causes of failed connections.

use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::{CryptoProvider, GetRandomFailed, SecureRandom, ring};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use super::*;

/// A system without random numbers.
#[derive(Debug)]
struct NoRandom;

impl SecureRandom for NoRandom {
    fn fill(&self, _: &mut [u8]) -> Result<(), GetRandomFailed> {
        Err(GetRandomFailed)
    }
}

/// Returns the error of a server for the first bytes of its client.
fn first(provider: CryptoProvider, mut bytes: &[u8]) -> rustls::Error {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("one can be made");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("they fit");
    let mut server = ServerConnection::new(Arc::new(config)).expect("it is good");
    server.read_tls(&mut bytes).expect("memory can be read");
    server.process_new_packets().expect_err("it can't go on")
}

fn hello() -> Vec<u8> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("it is good");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("memory can be written");
    bytes
}

#[test]
fn an_error_is_attributed_to_the_client_or_the_server() {
    let none = CryptoProvider {
        secure_random: &NoRandom,
        ..ring::default_provider()
    };
    let tls = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let table = [
        (tls(first(none, &hello())), Cause::Tls),
        (
            tls(rustls::Error::General("signing failed".into())),
            Cause::Tls,
        ),
        (
            tls(first(ring::default_provider(), b"GET / HTTP/1.1\r\n\r\n")),
            Cause::Peer,
        ),
        (io::ErrorKind::ConnectionReset.into(), Cause::Peer),
        (Errno::NOMEM.into(), Cause::System),
        (Errno::NOBUFS.into(), Cause::System),
    ];
    for (error, expected) in table {
        assert_eq!(cause(&error), expected, "{error}");
    }
}
