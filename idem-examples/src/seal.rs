//! Signatures: who has the secret has said this.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Signs, and checks signatures, by HMAC-SHA256. Cheap to clone.
#[derive(Clone)]
pub struct Seal(Arc<Hmac<Sha256>>);

impl Seal {
    /// A seal with this secret.
    ///
    /// # Errors
    /// None for HMAC, whose interface has one: any length will do.
    pub fn new(secret: &[u8]) -> anyhow::Result<Self> {
        Ok(Self(Arc::new(Hmac::new_from_slice(secret)?)))
    }

    /// One for a single purpose: what it signs, one of another purpose takes for forged.
    #[must_use]
    pub fn of(&self, purpose: &str) -> Self {
        let mac = Hmac::clone(&self.0).chain_update(purpose).chain_update([0]);
        Self(Arc::new(mac))
    }

    /// The signature, in hex digits.
    #[must_use]
    pub fn sign(&self, what: &[u8]) -> String {
        let mac = Hmac::clone(&self.0).chain_update(what);
        hex::encode(mac.finalize().into_bytes())
    }

    /// Whether this is the signature, in a time that says nothing about where it differs.
    #[must_use]
    pub fn is_signed(&self, what: &[u8], signature: &str) -> bool {
        let mac = Hmac::clone(&self.0).chain_update(what);
        hex::decode(signature).is_ok_and(|signature| mac.verify_slice(&signature).is_ok())
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_good_for_its_text_secret_and_purpose() -> anyhow::Result<()> {
        let seal = Seal::new(b"secret")?.of("session");
        let signature = seal.sign(b"alice");
        assert!(seal.is_signed(b"alice", &signature));
        assert!(!seal.is_signed(b"bob", &signature));
        assert!(!seal.is_signed(b"alice", &signature[..62]));
        assert!(!seal.is_signed(b"alice", "no hex"));
        for other in [
            Seal::new(b"secret")?.of("callback"),
            Seal::new(b"other")?.of("session"),
        ] {
            assert!(!other.is_signed(b"alice", &signature));
        }
        Ok(())
    }
}
