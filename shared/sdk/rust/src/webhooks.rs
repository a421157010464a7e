//! The verification of webhooks, as Standard Webhooks defines it.
//!
//! Verify the raw body, before anything parses it. Delivery is at least once: a receiver that
//! has seen [`Event::event_id`](crate::models::Event) before answers 2xx and does nothing.
//!
//! ```
//! use sortie_worker::webhooks::{Verifier, sign};
//!
//! let secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";
//! let body = br#"{"eventType":"job.completed","eventId":"urn:orch:event:1"}"#;
//! let now = std::time::SystemTime::now();
//! let seconds = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
//! let signature = sign(secret, "urn:orch:event:1", seconds, body).unwrap();
//!
//! let verifier = Verifier::new([secret]).unwrap();
//! let headers = [
//!     ("Webhook-Id", "urn:orch:event:1".to_owned()),
//!     ("Webhook-Timestamp", seconds.to_string()),
//!     ("Webhook-Signature", signature),
//! ];
//! let event = verifier.verify(body, headers.iter().map(|(n, v)| (*n, v.as_bytes()))).unwrap();
//! assert_eq!(event.event_type, "job.completed");
//! ```

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use ring::hmac;

use crate::models::Event;

/// The default greatest age of a webhook.
pub const TOLERANCE: Duration = Duration::from_secs(300);
const MOST_SIGNATURES: usize = 32;

/// Why a webhook, or a secret, is refused. It has no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// A header is missing, malformed or there twice.
    Headers(&'static str),
    /// The timestamp is further away than the tolerance.
    Age,
    /// No signature is valid.
    Signature,
    /// The body is not an event.
    Body,
    /// The secret is not `whsec_` and base64.
    Secret,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Headers(name) => write!(f, "missing or malformed {name}"),
            Self::Age => f.write_str("the webhook is too old or too new"),
            Self::Signature => f.write_str("no signature is valid"),
            Self::Body => f.write_str("the body is not an event"),
            Self::Secret => f.write_str("malformed secret: want whsec_ and base64"),
        }
    }
}

impl std::error::Error for Refused {}

/// Verifies webhooks with one secret, or several during a rotation.
#[derive(Clone)]
pub struct Verifier {
    keys: Vec<hmac::Key>,
    tolerance: Duration,
}

impl Verifier {
    /// Returns a verifier.
    ///
    /// # Errors
    ///
    /// [`Refused::Secret`] without a secret, and for a malformed one.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, Refused> {
        let keys: Vec<_> = secrets
            .into_iter()
            .map(|secret| key(secret.as_ref()))
            .collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(Refused::Secret);
        }
        let tolerance = TOLERANCE;
        Ok(Self { keys, tolerance })
    }

    /// Sets the greatest age; by default [`TOLERANCE`].
    #[must_use]
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Returns the event of a webhook that has a valid signature. The headers have names in any
    /// case, as those of `http` and `hyper` have.
    ///
    /// # Errors
    ///
    /// [`Refused`], which a receiver answers with 401.
    pub fn verify<'a, N: AsRef<str>>(
        &self,
        body: &[u8],
        headers: impl IntoIterator<Item = (N, &'a [u8])>,
    ) -> Result<Event, Refused> {
        self.verify_at(body, headers, SystemTime::now())
    }

    /// Does the same at another time, for tests.
    ///
    /// # Errors
    ///
    /// Those of [`Verifier::verify`].
    pub fn verify_at<'a, N: AsRef<str>>(
        &self,
        body: &[u8],
        headers: impl IntoIterator<Item = (N, &'a [u8])>,
        now: SystemTime,
    ) -> Result<Event, Refused> {
        const NAMES: [&str; 3] = ["Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"];
        let mut values: [Option<&str>; 3] = [None; 3];
        for (name, value) in headers {
            let Some(at) = NAMES
                .iter()
                .position(|n| n.eq_ignore_ascii_case(name.as_ref()))
            else {
                continue;
            };
            let text = std::str::from_utf8(value).map_err(|_| Refused::Headers(NAMES[at]))?;
            if values[at].replace(text.trim()).is_some() {
                return Err(Refused::Headers(NAMES[at]));
            }
        }
        let [id, timestamp, signatures] = values;
        let id = id
            .filter(|id| !id.is_empty())
            .ok_or(Refused::Headers(NAMES[0]))?;
        let seconds = timestamp
            .and_then(seconds)
            .ok_or(Refused::Headers(NAMES[1]))?;
        let signatures = signatures.ok_or(Refused::Headers(NAMES[2]))?;
        let sent = UNIX_EPOCH
            .checked_add(Duration::from_secs(seconds))
            .ok_or(Refused::Age)?;
        let age = now
            .duration_since(sent)
            .unwrap_or_else(|early| early.duration());
        if age > self.tolerance {
            return Err(Refused::Age);
        }
        let content = content(id, seconds, body);
        let given = signatures
            .split(' ')
            .filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok())
            .take(MOST_SIGNATURES);
        let mut valid = false;
        for signature in given {
            for key in &self.keys {
                valid |= hmac::verify(key, &content, &signature).is_ok();
            }
        }
        if !valid {
            return Err(Refused::Signature);
        }
        serde_json::from_slice(body).map_err(|_| Refused::Body)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Verifier({} secrets)", self.keys.len())
    }
}

/// Returns the signature of a body, for tests of receivers.
///
/// # Errors
///
/// [`Refused::Secret`] for a malformed secret.
pub fn sign(secret: &str, id: &str, seconds: u64, body: &[u8]) -> Result<String, Refused> {
    let tag = hmac::sign(&key(secret)?, &content(id, seconds, body));
    Ok(format!("v1,{}", STANDARD.encode(tag.as_ref())))
}

fn key(secret: &str) -> Result<hmac::Key, Refused> {
    let encoded = secret.strip_prefix("whsec_").unwrap_or(secret);
    match STANDARD.decode(encoded) {
        Ok(bytes) if !bytes.is_empty() => Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes)),
        _ => Err(Refused::Secret),
    }
}

/// Reads a timestamp, which has digits alone.
fn seconds(text: &str) -> Option<u64> {
    let digits = text.len() < 16 && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn content(id: &str, seconds: u64, body: &[u8]) -> Vec<u8> {
    [format!("{id}.{seconds}.").as_bytes(), body].concat()
}
