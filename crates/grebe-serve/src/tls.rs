//! TLS with a given certificate; the link contains its SHA-256.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};
use subtle::ConstantTimeEq;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::error::Error;

/// The acceptor for a certificate, and the certificate's SHA-256.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<(TlsAcceptor, [u8; 32]), Error> {
    let wrong = |path: &Path, why: String| Error::Certificate { path: path.to_owned(), why };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| wrong(certificate, error.to_string()))?;
    let own = chain.first().ok_or_else(|| wrong(certificate, "it does not contain a certificate".into()))?;
    let digest = digest(own);
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private));
    let config = config.map_err(|error| wrong(key, error.to_string()))?;
    Ok((TlsAcceptor::from(Arc::new(config)), digest))
}

/// A connector that accepts only the holder of a certificate.
pub(crate) fn connector(certificate: [u8; 32]) -> Result<TlsConnector, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Pinned { certificate, provider: Arc::clone(&provider) });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Accepts one certificate, regardless of its names, dates and issuer.
#[derive(Debug)]
struct Pinned {
    certificate: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match bool::from(digest(end_entity).ct_eq(&self.certificate)) {
            true => Ok(ServerCertVerified::assertion()),
            false => {
                Err(rustls::Error::General("it shows another certificate than the one in the link".into()))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn digest(certificate: &CertificateDer<'_>) -> [u8; 32] {
    let sum = ::ring::digest::digest(&::ring::digest::SHA256, certificate);
    sum.as_ref().try_into().expect("SHA-256 has 32 bytes")
}
