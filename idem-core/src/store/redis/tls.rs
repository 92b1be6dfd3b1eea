//! `rediss://`: which certificates are trusted, and by which cryptography.

use ::redis::{Client, ConnectionInfo, TlsCertificates};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::endpoint::unusable;
use super::fault::misconfigured;
use crate::error::StoreError;

/// The same server, with certificates checked against `authority` (PEM) instead of the system's.
pub(super) fn secured(
    info: ConnectionInfo,
    authority: Option<&[u8]>,
) -> Result<ConnectionInfo, StoreError> {
    choose_provider();
    let Some(authority) = authority else {
        return Ok(info);
    };
    // The client takes a text without certificates for an authority that signs nothing.
    let has_certificate = CertificateDer::pem_slice_iter(authority).any(|found| found.is_ok());
    if !has_certificate {
        return Err(misconfigured(
            "redis: the certificate authority holds no certificate in PEM",
        ));
    }
    let client = Client::build_with_tls(info, trusting(authority)).map_err(unusable)?;
    Ok(client.get_connection_info().clone())
}

/// Trust in one authority.
pub(super) fn trusting(authority: &[u8]) -> TlsCertificates {
    TlsCertificates {
        client_tls: None,
        root_cert: Some(authority.to_vec()),
    }
}

/// Makes sure that the process has a cryptography provider.
///
/// With two of them among its dependencies rustls can not choose, and panics at the first
/// connection. Whoever has chosen before is left alone.
fn choose_provider() {
    if CryptoProvider::get_default().is_none() {
        // An error means that somebody else was quicker, which is as good.
        _ = ring::default_provider().install_default();
    }
}
