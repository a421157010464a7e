//! The client of HTTP: TLS with ring, no redirects, errors without URLs, bounded answers.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What names this SDK in requests.
pub(crate) const USER_AGENT: &str = concat!("sortie-rust/", env!("CARGO_PKG_VERSION"));

/// A sum with a longer delay may overflow.
const MOST_ASKED: Duration = Duration::from_secs(366 * 86_400);

/// Returns a client. It follows no redirect: that would carry a token to another server.
pub(crate) fn client() -> Result<reqwest::Client, String> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls()?)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .user_agent(USER_AGENT)
        .build()
        .map_err(|error| reason(&error))
}

/// The provider is set here, so that another one of the process does not matter.
fn tls() -> Result<rustls::ClientConfig, String> {
    use rustls_platform_verifier::BuilderVerifierExt as _;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = || {
        rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())
    };
    let config = match versions()?.with_platform_verifier() {
        Ok(config) => config,
        // A container without certificates can still use http.
        Err(_) => versions()?.with_root_certificates(rustls::RootCertStore::empty()),
    };
    Ok(config.with_no_client_auth())
}

/// Describes an error without its URL, which may be a secret.
pub(crate) fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    let mut cause = error.source();
    if cause.is_none() {
        return if error.is_builder() {
            "malformed request"
        } else {
            "request failed"
        }
        .to_owned();
    }
    let mut text = String::new();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}

/// Returns whether a text is an http or https URL with a host.
pub(crate) fn is_url(text: &str) -> bool {
    reqwest::Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// Returns whether a text can be a token: it fits into a header.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Returns the delay that an answer asks for, at most a year.
pub(crate) fn retry_after(headers: &reqwest::header::HeaderMap) -> Option<Duration> {
    asked_delay(headers).map(|delay| delay.min(MOST_ASKED))
}

fn asked_delay(headers: &reqwest::header::HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(ms) = text("x-backoff-ms").and_then(|value| value.parse().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let value = text("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    http_date(value)?.duration_since(SystemTime::now()).ok()
}

/// Returns the time of `Wed, 21 Oct 2026 07:28:00 GMT`.
fn http_date(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut words = text.split_once(", ")?.1.split(' ');
    let (day, month, year, clock) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    crate::time::parse(&format!("{year}-{month:02}-{day}T{clock}Z"))
}

/// Reads a body of at most `most` bytes.
pub(crate) async fn read(mut response: reqwest::Response, most: usize) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| reason(&error))? {
        if body.len() + chunk.len() > most {
            return Err("the answer is too large".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Returns an exponential delay with full jitter.
pub(crate) fn backoff(failures: u32, first: Duration, most: Duration) -> Duration {
    let bound = first.saturating_mul(1 << failures.min(20)).min(most);
    bound.mul_f64(random())
}

/// Returns a number from 0 to 1.
pub(crate) fn random() -> f64 {
    let bytes = random_bytes::<4>();
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

/// Returns random bytes, or zeros if the system has none.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0; N];
    let _ = ring::rand::SystemRandom::new().fill(&mut bytes);
    bytes
}

/// Returns bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_of_answers_are_read() {
        let of = |name: &'static str, value: &str| {
            let mut headers = reqwest::header::HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(of("retry-after", "3"), Some(Duration::from_secs(3)));
        assert_eq!(of("x-backoff-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(of("retry-after", "1e19"), Some(MOST_ASKED));
        assert_eq!(of("x-backoff-ms", "18446744073709551615"), Some(MOST_ASKED));
        assert!(of("retry-after", "Wed, 21 Oct 2999 07:28:00 GMT") > Some(Duration::from_secs(1)));
        for value in [
            "-1",
            "NaN",
            "soon",
            "",
            "1e300",
            "Wed, 21 Oct 1999 07:28:00 GMT",
        ] {
            assert_eq!(of("retry-after", value), None, "{value}");
        }
    }

    #[test]
    fn delays_grow_to_a_limit() {
        let (first, most) = (Duration::from_millis(500), Duration::from_secs(30));
        for failures in [0, 1, 5, 40, u32::MAX] {
            let bound = first.saturating_mul(1 << failures.min(20)).min(most);
            assert!(backoff(failures, first, most) <= bound);
        }
    }
}
