//! Certificates and keys for TLS.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{InconsistentKeys, ServerConfig};

/// Bound, in bytes: the largest certificate or key file. A larger file is rejected, since it cannot
/// be one of these.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The TLS configuration of a server, which can be reloaded from the certificate and key files.
#[derive(Debug)]
pub struct Reloadable {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<ServerConfig>>,
}

impl Reloadable {
    /// Reads a certificate with its chain, and its private key, both in PEM format.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or has the wrong contents, or if the key does
    /// not match the certificate.
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let current = RwLock::new(load(certificate, key)?);
        Ok(Self {
            certificate: certificate.into(),
            key: key.into(),
            current,
        })
    }

    /// Returns the configuration for new connections. Open connections keep their configuration.
    #[must_use]
    pub fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read())
    }

    /// Reads both files again.
    ///
    /// # Errors
    /// Returns the same errors as [`open`](Self::open). If the reload fails, the current
    /// certificate stays in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let new = load(&self.certificate, &self.key)?;
        *self.current.write() = new;
        Ok(())
    }
}

fn load(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(certificate)?;
    let private = private_key(key)?;
    let failed = |problem| TlsError {
        file: certificate.into(),
        problem,
    };
    // The provider is explicit, since the default provider depends on the features of all crates in
    // the program.
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(Problem::Rustls(error)))?;
    let built = builder
        .with_no_client_auth()
        .with_single_cert(chain, private);
    let mut config = built.map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            failed(Problem::Mismatch { key: key.into() })
        }
        other => failed(Problem::Rustls(other)),
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec(), b"http/1.0".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = sections(file, Expected::Certificate)?;
    let certificates = found
        .iter()
        .filter(|(kind, _)| matches!(kind, SectionKind::Certificate));
    let chain: Vec<_> = certificates
        .map(|(_, der)| CertificateDer::from(der.clone()))
        .collect();
    if chain.is_empty() {
        return Err(unexpected(file, Expected::Certificate, &found));
    }
    Ok(chain)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let mut found = sections(file, Expected::Key)?;
    let is_key = |(kind, _): &(SectionKind, Vec<u8>)| {
        matches!(
            kind,
            SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey
        )
    };
    let Some(at) = found.iter().position(is_key) else {
        return Err(unexpected(file, Expected::Key, &found));
    };
    let (kind, der) = found.swap_remove(at);
    Ok(match kind {
        SectionKind::RsaPrivateKey => PrivateKeyDer::Pkcs1(der.into()),
        SectionKind::EcPrivateKey => PrivateKeyDer::Sec1(der.into()),
        _ => PrivateKeyDer::Pkcs8(der.into()),
    })
}

/// Returns the parts of a PEM file whose kind is known.
fn sections(file: &Path, expected: Expected) -> Result<Vec<(SectionKind, Vec<u8>)>, TlsError> {
    let failed = |problem| TlsError {
        file: file.into(),
        problem,
    };
    let read = fs::metadata(file).and_then(|meta| match meta.len() {
        FILE_BYTES_MAX.. => Err(io::Error::other("the file is larger than 1 MiB")),
        _ => fs::read(file),
    });
    let bytes = read.map_err(|error| failed(Problem::Io(expected, error)))?;
    let encrypted = b"-----BEGIN ENCRYPTED PRIVATE KEY-----";
    if bytes
        .windows(encrypted.len())
        .any(|window| window == encrypted)
    {
        return Err(failed(Problem::Found(expected, "an encrypted private key")));
    }
    let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    sections.map_err(|error| match error {
        pem::Error::MissingSectionEnd { .. } => {
            failed(Problem::Found(expected, "a part without its END line"))
        }
        other => failed(Problem::Pem(expected, other)),
    })
}

fn unexpected(file: &Path, expected: Expected, found: &[(SectionKind, Vec<u8>)]) -> TlsError {
    let found = match found.first() {
        None => "nothing in PEM",
        Some((SectionKind::Certificate, _)) => "a certificate",
        Some((
            SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey,
            _,
        )) => "a private key",
        Some((SectionKind::Csr, _)) => "a request for a certificate",
        Some((SectionKind::PublicKey, _)) => "a public key",
        Some(_) => "something else",
    };
    TlsError {
        file: file.into(),
        problem: Problem::Found(expected, found),
    }
}

/// An error in a certificate file or a key file.
#[derive(Debug)]
pub struct TlsError {
    file: PathBuf,
    problem: Problem,
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    Certificate,
    Key,
}

#[derive(Debug)]
enum Problem {
    Io(Expected, io::Error),
    Pem(Expected, pem::Error),
    Found(Expected, &'static str),
    /// The key in this file belongs to another certificate.
    Mismatch {
        key: PathBuf,
    },
    Rustls(rustls::Error),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "a certificate in PEM (-----BEGIN CERTIFICATE-----)",
            Self::Key => "a private key in PEM, not encrypted (-----BEGIN PRIVATE KEY-----)",
        })
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match &self.problem {
            Problem::Io(expected, error) => write!(f, "{file}: expected {expected}: {error}"),
            Problem::Pem(expected, error) => write!(f, "{file}: expected {expected}: {error}"),
            Problem::Found(expected, found) => {
                write!(f, "{file}: expected {expected}, found {found}")
            }
            Problem::Mismatch { key } => write!(
                f,
                "{}: this private key does not belong to the certificate in {file}",
                key.display()
            ),
            Problem::Rustls(error) => write!(f, "{file}: {error}"),
        }
    }
}

impl std::error::Error for TlsError {}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};
    use tempfile::TempDir;

    fn make() -> (String, String, CertificateDer<'static>) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (cert.pem(), signing_key.serialize_pem(), cert.der().clone())
    }

    /// Writes `cert.pem` and `key.pem`, and returns the certificate that a client has to trust.
    fn write(place: &TempDir) -> CertificateDer<'static> {
        let (cert, key, der) = make();
        fs::write(place.path().join("cert.pem"), cert).unwrap();
        fs::write(place.path().join("key.pem"), key).unwrap();
        der
    }

    /// Performs a handshake in memory and returns the negotiated protocol.
    fn handshake(
        server: Arc<ServerConfig>,
        trusted: &CertificateDer<'static>,
    ) -> Result<Vec<u8>, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let mut client = builder.with_root_certificates(roots).with_no_client_auth();
        client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = ServerConnection::new(server).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).unwrap();
            server.read_tls(&mut &bytes[..]).unwrap();
            server.process_new_packets()?;
            bytes.clear();
            server.write_tls(&mut bytes).unwrap();
            client.read_tls(&mut &bytes[..]).unwrap();
            client.process_new_packets()?;
        }
        Ok(client.alpn_protocol().unwrap().to_vec())
    }

    #[test]
    fn files_are_read_again() {
        let place = tempfile::tempdir().unwrap();
        let first = write(&place);
        let (cert, key) = (place.path().join("cert.pem"), place.path().join("key.pem"));
        let tls = Reloadable::open(&cert, &key).unwrap();
        assert_eq!(handshake(tls.current(), &first).unwrap(), b"http/1.1");
        let second = write(&place);
        assert!(handshake(tls.current(), &second).is_err());
        let open = tls.current();
        tls.reload().unwrap();
        assert!(handshake(tls.current(), &second).is_ok());
        assert!(handshake(open, &first).is_ok());
        fs::write(&key, "").unwrap();
        tls.reload().unwrap_err();
        assert!(handshake(tls.current(), &second).is_ok());
    }

    #[test]
    fn errors_in_the_certificate_files_are_reported() {
        const CERTIFICATE: &str = "a certificate in PEM (-----BEGIN CERTIFICATE-----)";
        const KEY: &str = "a private key in PEM, not encrypted (-----BEGIN PRIVATE KEY-----)";
        let (cert, key, der) = make();
        let (_, another, _) = make();
        let encrypted =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let csr = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";
        let rubbish = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let unfinished = &cert[..cert.len() - 30];
        let table: [(&[u8], &str, String); 9] = [
            (
                key.as_bytes(),
                &key,
                format!("C: expected {CERTIFICATE}, found a private key"),
            ),
            (
                cert.as_bytes(),
                &cert,
                format!("K: expected {KEY}, found a certificate"),
            ),
            (
                cert.as_bytes(),
                encrypted,
                format!("K: expected {KEY}, found an encrypted private key"),
            ),
            (
                csr.as_bytes(),
                &key,
                format!("C: expected {CERTIFICATE}, found a request for a certificate"),
            ),
            (
                &der,
                &key,
                format!("C: expected {CERTIFICATE}, found nothing in PEM"),
            ),
            (
                b"",
                &key,
                format!("C: expected {CERTIFICATE}, found nothing in PEM"),
            ),
            (
                cert.as_bytes(),
                "",
                format!("K: expected {KEY}, found nothing in PEM"),
            ),
            (
                cert.as_bytes(),
                &another,
                "K: this private key does not belong to the certificate in C".into(),
            ),
            (
                unfinished.as_bytes(),
                &key,
                format!("C: expected {CERTIFICATE}, found a part without its END line"),
            ),
        ];
        let place = tempfile::tempdir().unwrap();
        let (cert_file, key_file) = (place.path().join("C"), place.path().join("K"));
        let folder = format!("{}/", place.path().display());
        let error = || {
            Reloadable::open(&cert_file, &key_file)
                .unwrap_err()
                .to_string()
                .replace(&folder, "")
        };
        assert_eq!(
            error(),
            format!("C: expected {CERTIFICATE}: No such file or directory (os error 2)")
        );
        for (cert, key, expected) in table {
            fs::write(&cert_file, cert).unwrap();
            fs::write(&key_file, key).unwrap();
            assert_eq!(error(), expected);
        }
        fs::write(&cert_file, rubbish).unwrap();
        fs::write(&key_file, &key).unwrap();
        assert!(
            error().starts_with("C: invalid peer certificate"),
            "{}",
            error()
        );
    }

    #[test]
    fn key_and_chain_may_stand_in_one_file() {
        let place = tempfile::tempdir().unwrap();
        let (cert, key, der) = make();
        let (other, ..) = make();
        let both = place.path().join("both.pem");
        fs::write(&both, [key, cert, other].concat()).unwrap();
        let tls = Reloadable::open(&both, &both).unwrap();
        assert!(handshake(tls.current(), &der).is_ok());
    }
}
