//! Requests, their retries and their answers.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde::Serialize;

use super::error::{ApiError, Error};
use super::Result;
use crate::http;

const MOST_ANSWER: usize = 64 << 20;
const MOST_PROBLEM: usize = 64 << 10;
const MOST_RETRY_AFTER: Duration = Duration::from_secs(60);
const FIRST_DELAY: Duration = Duration::from_millis(250);
const MOST_DELAY: Duration = Duration::from_secs(8);

/// Where and how a client sends its requests.
pub(crate) struct Transport {
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) http: reqwest::Client,
}

/// One request, which may be sent again.
#[derive(Clone)]
pub(crate) struct Call {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    accept: &'static str,
    body: Option<Vec<u8>>,
    content_type: &'static str,
    idempotent: bool,
    timeout: Option<Duration>,
    /// A status from 300 that is no error.
    passes: Option<StatusCode>,
}

/// A complete answer.
pub(crate) struct Answer {
    place: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Error::Malformed(format!("{}: malformed answer: {error}", self.place)))
    }
}

impl Call {
    pub(crate) fn new(method: Method, path: String) -> Self {
        Self {
            method,
            path,
            query: Vec::new(),
            headers: Vec::new(),
            accept: "application/json",
            body: None,
            content_type: "application/json",
            idempotent: false,
            timeout: None,
            passes: None,
        }
    }

    pub(crate) fn get(path: String) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query
            .extend(value.map(|value| (name, value.to_string())));
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: Option<&str>) -> Self {
        self.headers
            .extend(value.map(|value| (name, value.to_owned())));
        self
    }

    pub(crate) fn accept(mut self, media_type: &'static str) -> Self {
        self.accept = media_type;
        self
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(crate) fn passes(mut self, status: StatusCode) -> Self {
        self.passes = Some(status);
        self
    }

    pub(crate) fn json(mut self, body: &impl Serialize) -> Result<Self> {
        let body = serde_json::to_vec(body);
        self.body = Some(body.map_err(|error| Error::Invalid(format!("body: {error}")))?);
        Ok(self)
    }

    pub(crate) fn content_type(mut self, media_type: &'static str) -> Self {
        self.content_type = media_type;
        self
    }

    /// Lets the call be sent again: the server knows a repetition by its body.
    pub(crate) fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Sets the idempotency key. With one, the call may be sent again.
    pub(crate) fn key(mut self, key: &str) -> Result<Self> {
        let printable = key.bytes().all(|b| (b' '..=b'~').contains(&b));
        if !printable || key.trim().is_empty() || key.len() > 255 {
            let want = "want 1 to 255 printable ASCII characters";
            return Err(Error::Invalid(format!("idempotency key: {want}")));
        }
        self.headers.push(("idempotency-key", key.to_owned()));
        Ok(self.idempotent())
    }

    /// Returns whether the same request twice has the effect of one.
    fn repeatable(&self) -> bool {
        self.idempotent
            || matches!(
                self.method,
                Method::GET | Method::HEAD | Method::PUT | Method::DELETE
            )
    }
}

impl Transport {
    /// Returns the answer, after retries.
    pub(crate) async fn request(&self, call: &Call) -> Result<Answer> {
        let mut attempt = 0;
        loop {
            let failure = match self.send(call).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if attempt >= self.retries || !failure.repeat {
                return Err(failure.error);
            }
            let after = failure.error.api().and_then(|error| error.retry_after);
            let delay = http::backoff(attempt, FIRST_DELAY, MOST_DELAY);
            tokio::time::sleep(delay.max(after.unwrap_or_default())).await;
            attempt += 1;
        }
    }

    async fn send(&self, call: &Call) -> std::result::Result<Answer, Failure> {
        let timeout = call.timeout.unwrap_or(self.timeout);
        let place = self.place(call);
        let sending = async {
            let response = self.open(call).await?;
            let body = http::read(response, MOST_ANSWER).await;
            body.map_err(|error| Failure {
                error: Error::Connection(format!("{place}: {error}")),
                repeat: call.repeatable(),
            })
        };
        match tokio::time::timeout(timeout, sending).await {
            Ok(body) => Ok(Answer { body: body?, place }),
            Err(_) => Err(Failure {
                error: Error::Connection(format!("{place}: timed out")),
                repeat: call.repeatable(),
            }),
        }
    }

    /// Opens an answer whose body the caller reads. There are no retries.
    pub(crate) async fn open(
        &self,
        call: &Call,
    ) -> std::result::Result<reqwest::Response, Failure> {
        let mut url = format!("{}{}", self.url, call.path);
        for (number, (name, value)) in call.query.iter().enumerate() {
            let separator = if number == 0 { '?' } else { '&' };
            url.push_str(&format!("{separator}{name}={}", encode(value, b",*:")));
        }
        let mut request = self
            .http
            .request(call.method.clone(), url)
            .header("accept", call.accept)
            .header("user-agent", http::USER_AGENT);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = &call.body {
            request = request
                .header("content-type", call.content_type)
                .body(body.clone());
        }
        let response = request
            .send()
            .await
            .map_err(|error| self.unsent(call, &error))?;
        if response.status().as_u16() < 300 || Some(response.status()) == call.passes {
            return Ok(response);
        }
        Err(refusal(call, response).await)
    }

    /// Describes a request without an answer.
    fn unsent(&self, call: &Call, error: &reqwest::Error) -> Failure {
        let text = format!("{}: {}", self.place(call), http::reason(error));
        if error.is_builder() {
            let error = Error::Invalid(text);
            return Failure {
                error,
                repeat: false,
            };
        }
        Failure {
            // Without a connection nothing was sent.
            repeat: error.is_connect() || call.repeatable(),
            error: Error::Connection(text),
        }
    }

    /// Describes a call without its query, which may be a secret.
    pub(crate) fn place(&self, call: &Call) -> String {
        let path = call.path.split('?').next().unwrap_or_default();
        format!("{} {}{path}", call.method, self.url)
    }
}

/// Why a request failed, and whether sending it again may help and cannot do harm.
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) repeat: bool,
}

async fn refusal(call: &Call, response: reqwest::Response) -> Failure {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let read = tokio::time::timeout(Duration::from_secs(10), http::read(response, MOST_PROBLEM));
    let body = read
        .await
        .ok()
        .and_then(std::result::Result::ok)
        .unwrap_or_default();
    let error = ApiError::of(status, &body, &headers);
    let asked = headers
        .get("x-should-retry")
        .is_none_or(|value| value != "false");
    let soon = error.retry_after.unwrap_or_default() <= MOST_RETRY_AFTER;
    let passing = matches!(status, 408 | 425 | 500 | 502 | 503 | 504);
    Failure {
        repeat: asked && soon && (status == 429 || (passing && call.repeatable())),
        error: Error::Api(Box::new(error)),
    }
}

/// Fills a path. An empty or relative part would name another route.
pub(crate) fn path(parts: &[&str]) -> Result<String> {
    let mut path = String::new();
    for part in parts {
        if matches!(*part, "" | "." | "..") {
            return Err(Error::Invalid(format!("{part:?} is not an id")));
        }
        path.push('/');
        path.push_str(&encode(part, b":"));
    }
    Ok(path)
}

/// Encodes all characters that are not unreserved or kept.
fn encode(text: &str, kept: &[u8]) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Returns a random idempotency key.
pub(crate) fn new_key() -> String {
    http::hex(&http::random_bytes::<16>())
}
