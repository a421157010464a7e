//! When a broken stream is opened again, and for how long that is tried.

use std::time::Duration;

use tokio::time::Instant;

use super::error::{Error, ErrorKind};
use super::transport::{Call, Transport};
use super::Result;
use crate::http;

/// A stream sends a message in each 15 seconds.
const QUIET: Duration = Duration::from_secs(45);
const OPEN: Duration = Duration::from_secs(30);
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MOST_DELAY: Duration = Duration::from_secs(30);
/// The default of how long a stream may be away.
pub(crate) const MOST_OUTAGE: Duration = Duration::from_secs(600);

/// The failures of a stream since it last sent something.
pub(crate) struct Resumption {
    retries: u32,
    most_outage: Duration,
    failures: u32,
    opened: bool,
    lost_at: Option<Instant>,
}

impl Resumption {
    pub(crate) fn new(retries: u32, most_outage: Duration) -> Self {
        Self {
            retries,
            most_outage,
            failures: 0,
            opened: false,
            lost_at: None,
        }
    }

    /// Records that the stream sent something.
    pub(crate) fn works(&mut self) {
        self.failures = 0;
        self.lost_at = None;
    }

    /// Waits after the server ended the stream.
    pub(crate) async fn ended(&mut self, retry: Option<u64>) {
        let delay = match retry {
            Some(ms) => Duration::from_millis(ms).min(self.most_outage),
            None => self.delay(),
        };
        tokio::time::sleep(delay).await;
    }

    /// Waits after a failure, or returns it if no retry may help.
    pub(crate) async fn failed(&mut self, error: Error) -> Result<()> {
        let mut after = Duration::ZERO;
        match &error {
            Error::Connection(_) => {}
            Error::Api(api) if matches!(api.kind(), ErrorKind::RateLimited | ErrorKind::Server) => {
                after = api.retry_after.unwrap_or_default();
            }
            _ => return Err(error),
        }
        let lost_at = *self.lost_at.get_or_insert_with(Instant::now);
        let given_up = !self.opened && self.failures >= self.retries;
        if given_up || lost_at.elapsed() + after > self.most_outage {
            return Err(error);
        }
        let delay = self.delay().max(after);
        tokio::time::sleep(delay).await;
        Ok(())
    }

    fn delay(&mut self) -> Duration {
        let bound = FIRST_DELAY
            .saturating_mul(1 << self.failures.min(10))
            .min(MOST_DELAY);
        self.failures += 1;
        bound.mul_f64(0.5 + http::random() / 2.0)
    }

    /// Opens the stream.
    pub(crate) async fn open(&mut self, transport: &Transport, call: &Call) -> Result<Body> {
        let place = transport.place(call);
        let opened = tokio::time::timeout(OPEN, transport.open(call)).await;
        let timed_out = |_| Error::Connection(format!("{place}: timed out"));
        let response = opened
            .map_err(timed_out)?
            .map_err(|failure| failure.error)?;
        let media_type = response.headers().get("content-type");
        if media_type.is_some_and(|value| value.as_bytes().starts_with(b"text/html")) {
            let text = "the answer is a page, not a stream: check the url";
            return Err(Error::Malformed(text.to_owned()));
        }
        self.opened = true;
        Ok(Body { response, place })
    }
}

/// The body of a stream.
pub(crate) struct Body {
    pub(crate) response: reqwest::Response,
    place: String,
}

impl Body {
    /// Returns the next bytes; `None` at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let broken = |text: &str| Error::Connection(format!("{}: {text}", self.place));
        match tokio::time::timeout(QUIET, self.response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk.map(|chunk| chunk.to_vec())),
            Ok(Err(error)) => Err(broken(&http::reason(&error))),
            Err(_) => Err(broken("timed out")),
        }
    }
}
