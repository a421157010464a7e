//! The client for runs, stored jobs that they are of, and events.
//!
//! ```no_run
//! use sortie_worker::client::Client;
//! use sortie_worker::models::RunDefinition;
//!
//! # async fn example() -> Result<(), sortie_worker::client::Error> {
//! let client = Client::from_env()?; // SORTIE_URL and SORTIE_TOKEN
//! let definition = RunDefinition {
//!     image: Some("exec:/bin/echo".into()),
//!     command: Some(vec!["hello".into()]),
//!     ..Default::default()
//! };
//! let run = client.runs().create(&definition).await?;
//! let mut lines = client.runs().follow_logs(&run.task_id);
//! while let Some(line) = lines.next().await {
//!     print!("{}", String::from_utf8_lossy(&line?.bytes()));
//! }
//! println!("{}", client.runs().wait(&run.run_id).await?.state);
//! # Ok(())
//! # }
//! ```

mod download;
mod error;
mod events;
mod jobs;
mod logs;
mod pages;
mod resume;
mod runs;
pub mod sse;
mod transport;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

pub use download::Download;
pub use error::{ApiError, Error, ErrorKind};
pub use events::{EventQuery, EventStream, Events};
pub use jobs::Jobs;
pub use logs::LogStream;
pub use pages::Items;
pub use reqwest::Method;
pub use runs::{RunQuery, Runs};

use transport::{Call, Transport};

const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// What the calls of the client return.
pub type Result<T> = std::result::Result<T, Error>;

/// A client. Clones share their connections. It is used within a runtime of tokio.
#[derive(Clone)]
pub struct Client {
    transport: Arc<Transport>,
}

impl Client {
    /// Returns the settings of a client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            url: DEFAULT_URL.to_owned(),
            token: None,
            timeout: Duration::from_secs(30),
            retries: 2,
            http: None,
        }
    }

    /// Returns a client for `SORTIE_URL`, or else `http://127.0.0.1:8080`, with the token
    /// `SORTIE_TOKEN` if it is set.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a malformed URL or token.
    pub fn from_env() -> Result<Self> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mut builder = Self::builder();
        if let Some(url) = set("SORTIE_URL") {
            builder = builder.url(url);
        }
        if let Some(token) = set("SORTIE_TOKEN") {
            builder = builder.token(token);
        }
        builder.build()
    }

    /// Runs programs, and lists, explains, cancels and retries runs.
    pub fn runs(&self) -> Runs<'_> {
        Runs { client: self }
    }

    /// Returns the calls for runs of stored jobs.
    pub fn jobs(&self) -> Jobs<'_> {
        Jobs { client: self }
    }

    /// Reads and follows the events of the tenant.
    pub fn events(&self) -> Events<'_> {
        Events { client: self }
    }

    /// Makes any other call of the API, and returns its JSON; `null` for an empty answer.
    ///
    /// The path begins with a slash, and may have a query. A call with another method than GET
    /// is not repeated after it may have been received.
    ///
    /// # Errors
    ///
    /// [`Error::Api`] for an answer that is no success, [`Error::Connection`] without one.
    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        if !path.starts_with('/') {
            return Err(Error::Invalid(format!(
                "path: {path:?}, want a slash at its start"
            )));
        }
        let mut call = Call::new(method, path.to_owned());
        if let Some(body) = body {
            call = call.json(body)?;
        }
        let answer = self.transport.request(&call).await?;
        if answer.body.is_empty() {
            return Ok(Value::Null);
        }
        answer.json()
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: String) -> Result<T> {
        let call = Call::new(Method::GET, path);
        self.transport.request(&call).await?.json()
    }

    async fn patch<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T> {
        let call = Call::new(Method::PATCH, path.to_owned()).json(body)?;
        self.transport.request(&call).await?.json()
    }

    async fn post<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        key: Option<&str>,
    ) -> Result<T> {
        let mut call = Call::new(Method::POST, path.to_owned()).json(body)?;
        if let Some(key) = key {
            call = call.key(key)?;
        }
        self.transport.request(&call).await?.json()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("url", &self.transport.url)
            .finish_non_exhaustive()
    }
}

/// The settings of a client.
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    url: String,
    token: Option<String>,
    timeout: Duration,
    retries: u32,
    http: Option<reqwest::Client>,
}

impl ClientBuilder {
    /// Sets the address of the API.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = url.into();
        self
    }

    /// Sets the token.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Sets how long a request may take with its answer; by default 30 s. Streams have a limit
    /// between two messages instead.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how often a request is sent again that failed in the network, or with 429 or 5xx; by
    /// default 2. A request that has an effect is sent again only with an idempotency key, which
    /// creates and retries have, or if the server has not received it.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets the client of HTTP. It must not follow redirects: downloads follow theirs without the
    /// token.
    pub fn http(mut self, http: reqwest::Client) -> Self {
        self.http = Some(http);
        self
    }

    /// Returns the client.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a malformed URL or token, or if TLS cannot be set up.
    pub fn build(self) -> Result<Client> {
        let invalid = |problem: &str| Err(Error::Invalid(problem.to_owned()));
        let Ok(url) = reqwest::Url::parse(&self.url) else {
            return invalid("url: want an http or https URL");
        };
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return invalid("url: want an http or https URL");
        }
        if !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some()
        {
            return invalid("url: want no user, password, query and fragment");
        }
        if self
            .token
            .as_deref()
            .is_some_and(|token| !crate::http::is_token(token))
        {
            return invalid("token: want printable ASCII characters without spaces");
        }
        let http = match self.http {
            Some(http) => http,
            None => crate::http::client().map_err(Error::Invalid)?,
        };
        let transport = Transport {
            url: url.as_str().trim_end_matches('/').to_owned(),
            token: self.token,
            timeout: self.timeout,
            retries: self.retries,
            http,
        };
        Ok(Client {
            transport: Arc::new(transport),
        })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("timeout", &self.timeout)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}
