//! The trust of a TLS client.

use std::path::Path;
use std::sync::Arc;

use futures_rustls::TlsConnector;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The certificates that a client trusts.
#[derive(Clone, Copy, Debug)]
pub(in crate::load) enum Trust<'a> {
    /// All certificates.
    All,
    /// Certificates that chain to a certificate in a PEM file.
    File(&'a Path),
    /// Certificates that chain to one of the system's certificates.
    System,
}

/// Returns a connector for a host.
///
/// # Errors
/// Returns a sentence that states what is wrong with the certificates or the name.
pub(in crate::load) fn connector(
    host: &str,
    trust: Trust<'_>,
) -> Result<(TlsConnector, ServerName<'static>), String> {
    let provider = Arc::new(ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let builder = builder(provider)?;
    let mut config = match roots(trust)? {
        Some(roots) => builder.with_root_certificates(roots),
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Everybody(algorithms))),
    }
    .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| format!("expected a host name or an address, not `{host}`"))?;
    Ok((TlsConnector::from(Arc::new(config)), name))
}

fn builder(
    provider: Arc<CryptoProvider>,
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))
}

/// Returns the root certificates; `None` to trust every certificate.
fn roots(trust: Trust<'_>) -> Result<Option<RootCertStore>, String> {
    let mut roots = RootCertStore::empty();
    match trust {
        Trust::All => return Ok(None),
        Trust::File(path) => {
            let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
            let certificates =
                CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| failed(&error))?;
                roots.add(certificate).map_err(|error| failed(&error))?;
            }
            if roots.is_empty() {
                return Err(failed(&"expected at least one certificate"));
            }
        }
        Trust::System => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err("the system has no root certificates: name some with --cacert, or trust every certificate with --insecure".to_owned());
            }
        }
    }
    Ok(Some(roots))
}

/// A verifier that trusts every certificate. It still checks signatures, as a browser would.
#[derive(Debug)]
struct Everybody(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Everybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
