//! Calls that are bounded in time and size, and their repetition.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::http;

pub(crate) const FIRST_DELAY: Duration = Duration::from_millis(500);
pub(crate) const MOST_DELAY: Duration = Duration::from_secs(30);
const MOST_ANSWER: usize = 64 << 10;
const MOST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// Where the worker writes what it cannot report.
pub(crate) type Log = dyn Fn(&str) + Send + Sync;

/// The response to a call. A status of 0 means that no response came.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) retry_after: Duration,
    pub(crate) error: String,
}

impl Answer {
    pub(crate) fn failed(error: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            ..Self::default()
        }
    }

    pub(crate) fn ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns whether the same call may succeed later.
    pub(crate) fn retryable(&self) -> bool {
        matches!(self.status, 0 | 401 | 408 | 425 | 429) || self.status >= 500
    }

    pub(crate) fn object(&self) -> Option<Map<String, Value>> {
        serde_json::from_slice(&self.body).ok()
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.error.is_empty() {
            return write!(f, "status {}", self.status);
        }
        f.write_str(&self.error)
    }
}

/// Makes one call. A network error is an answer, too.
pub(crate) async fn send(request: reqwest::RequestBuilder, timeout: Duration) -> Answer {
    send_at_most(request, timeout, MOST_ANSWER).await
}

/// Makes one call whose answer has at most `most` bytes.
pub(crate) async fn send_at_most(
    request: reqwest::RequestBuilder,
    timeout: Duration,
    most: usize,
) -> Answer {
    let call = async {
        let response = request.send().await.map_err(|error| http::reason(&error))?;
        let status = response.status().as_u16();
        let after = http::retry_after(response.headers()).unwrap_or_default();
        let ok = response.status().is_success();
        let body = match http::read(response, most).await {
            Err(error) if ok => return Err(error),
            read => read.unwrap_or_default(),
        };
        Ok(Answer {
            status,
            body,
            retry_after: after.min(MOST_RETRY_AFTER),
            error: String::new(),
        })
    };
    match tokio::time::timeout(timeout, call).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => Answer::failed(error),
        Err(_) => Answer::failed("timed out"),
    }
}

/// Repeats a call until it is answered for good, until `until`, when the last call is made,
/// or `stop` is cancelled.
pub(crate) async fn repeat<F, T>(
    what: &str,
    until: Instant,
    stop: Option<&CancellationToken>,
    log: &Log,
    mut call: F,
) -> Answer
where
    F: FnMut() -> T,
    T: Future<Output = Answer>,
{
    let mut failures = 0;
    loop {
        let answer = call().await;
        if answer.ok() || !answer.retryable() {
            return answer;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return answer;
        }
        let delay = http::backoff(failures, FIRST_DELAY, MOST_DELAY)
            .max(answer.retry_after)
            .min(left);
        log(&format!(
            "{what} failed ({answer}), retrying in {:.1} s",
            delay.as_secs_f64()
        ));
        let Some(stop) = stop else {
            tokio::time::sleep(delay).await;
            failures += 1;
            continue;
        };
        tokio::select! {
            () = stop.cancelled() => return answer,
            () = tokio::time::sleep(delay) => failures += 1,
        }
    }
}
