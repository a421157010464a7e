//! The errors of the client.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::models::StreamGap;

/// An error of the client.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An answer of the API with a status from 300.
    Api(Box<ApiError>),
    /// A request had no complete answer. The text has no secrets.
    Connection(String),
    /// A setting or an argument is invalid, and nothing was sent.
    Invalid(String),
    /// The stream no longer has the events behind the cursor. Continue behind `oldest`.
    Gap(Box<StreamGap>),
    /// A message of the server is not what the API defines.
    Malformed(String),
}

impl Error {
    /// Returns the code of an answer of the API, such as `NOT_FOUND`.
    pub fn code(&self) -> Option<&str> {
        self.api().map(|error| error.code.as_str())
    }

    /// Returns the error of an answer of the API.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api(error) => error.fmt(f),
            Self::Connection(text) | Self::Invalid(text) | Self::Malformed(text) => {
                f.write_str(text)
            }
            Self::Gap(gap) => write!(
                f,
                "events were deleted; the oldest cursor is {}",
                gap.oldest
            ),
        }
    }
}

impl std::error::Error for Error {}

/// An answer of the API with a status from 300.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ApiError {
    /// The status of HTTP.
    pub status: u16,
    /// Stable across versions, such as `NOT_FOUND`; empty without a problem document.
    pub code: String,
    /// An explanation for a person.
    pub message: String,
    /// Names the request in the logs of the server.
    pub correlation_id: String,
    /// How long to wait before the next request.
    pub retry_after: Option<Duration>,
    /// The problem document.
    pub problem: Map<String, Value>,
}

/// What kind of error an answer of the API is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// 400, 413, 415, 422 and others.
    InvalidRequest,
    /// 401.
    Unauthenticated,
    /// 403.
    Forbidden,
    /// 404 and 410.
    NotFound,
    /// 409.
    Conflict,
    /// 412 and 428.
    PreconditionFailed,
    /// 429.
    RateLimited,
    /// 5xx.
    Server,
    /// A redirect: the URL of the client is wrong.
    Redirect,
}

impl ApiError {
    /// Returns the kind, which the status decides.
    pub fn kind(&self) -> ErrorKind {
        match self.status {
            0..=399 => ErrorKind::Redirect,
            401 => ErrorKind::Unauthenticated,
            403 => ErrorKind::Forbidden,
            404 | 410 => ErrorKind::NotFound,
            409 => ErrorKind::Conflict,
            412 | 428 => ErrorKind::PreconditionFailed,
            429 => ErrorKind::RateLimited,
            500.. => ErrorKind::Server,
            _ => ErrorKind::InvalidRequest,
        }
    }

    pub(crate) fn of(status: u16, body: &[u8], headers: &reqwest::header::HeaderMap) -> Self {
        let problem: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
        let shown = problem
            .get("error")
            .and_then(Value::as_object)
            .unwrap_or(&problem);
        let text = |name: &str| {
            shown
                .get(name)
                .and_then(Value::as_str)
                .filter(|t| !t.is_empty())
        };
        let redirect = (300..400)
            .contains(&status)
            .then_some("the server redirects: check the url");
        let message = redirect
            .or(text("detail"))
            .or(text("message"))
            .or(text("title"));
        Self {
            status,
            code: text("code").unwrap_or_default().to_owned(),
            message: message.unwrap_or_default().to_owned(),
            correlation_id: headers
                .get("x-correlation-id")
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned(),
            retry_after: crate::http::retry_after(headers),
            problem,
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        if !self.code.is_empty() {
            write!(f, " {}", self.code)?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for ApiError {}
