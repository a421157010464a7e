//! The output of a task.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::error::{ApiError, Error};
use super::transport::{path, Call};
use super::{Client, Result};
use crate::http;

const STALL: Duration = Duration::from_secs(60);

/// The output of a task, which is read in pieces. A break is resumed.
pub struct Download {
    client: Client,
    task_id: String,
    response: Option<Response>,
    size: Option<u64>,
    media_type: String,
    file_name: String,
    etag: String,
    read: u64,
    failures: u32,
}

impl Download {
    pub(crate) async fn open(client: Client, task_id: &str) -> Result<Self> {
        let mut download = Self {
            client,
            task_id: task_id.to_owned(),
            response: None,
            size: None,
            media_type: String::new(),
            file_name: String::new(),
            etag: String::new(),
            read: 0,
            failures: 0,
        };
        let response = loop {
            match download.request().await {
                Ok(response) => break response,
                Err(error) => download.failed(error).await?,
            }
        };
        download.size = response.content_length();
        let headers = response.headers();
        download.media_type = text(headers, "content-type");
        download.etag = text(headers, "etag");
        let disposition = text(headers, "content-disposition");
        let name = disposition
            .split_once("filename=\"")
            .and_then(|(_, rest)| rest.split_once('"'));
        download.file_name = name.map(|(name, _)| name.to_owned()).unwrap_or_default();
        download.response = Some(response);
        Ok(download)
    }

    /// Returns the number of bytes, if the server says it.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Returns the media type.
    pub fn media_type(&self) -> &str {
        &self.media_type
    }

    /// Returns the name of the file as the worker gave it. It may be any text: do not use it as a
    /// path.
    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Returns the next bytes; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`Error::Connection`] if the rest cannot be read.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            match self.piece().await {
                Ok(piece) => return Ok(piece),
                Err(error) => {
                    self.response = None;
                    self.failed(error).await?;
                }
            }
        }
    }

    /// Returns all bytes, at most `most`.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if there are more, and those of [`Download::chunk`].
    pub async fn bytes(mut self, most: usize) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if content.len() + chunk.len() > most {
                return Err(Error::Invalid(format!(
                    "the output has more than {most} bytes"
                )));
            }
            content.extend_from_slice(&chunk);
        }
        Ok(content)
    }

    /// Stores all bytes in a file, and returns their number.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the file cannot be written, and those of [`Download::chunk`].
    pub async fn save(mut self, to: impl AsRef<Path>) -> Result<u64> {
        let failed =
            |error: std::io::Error| Error::Invalid(format!("cannot write the file: {error}"));
        let mut file = tokio::fs::File::create(to).await.map_err(failed)?;
        while let Some(chunk) = self.chunk().await? {
            file.write_all(&chunk).await.map_err(failed)?;
        }
        file.sync_all().await.map_err(failed)?;
        Ok(self.read)
    }

    async fn piece(&mut self) -> Result<Option<Vec<u8>>> {
        let mut response = match self.response.take() {
            Some(response) => response,
            None => self.request().await?,
        };
        let broken = |problem: &str| Err(Error::Connection(format!("download: {problem}")));
        let chunk = match timeout(STALL, response.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return broken(&http::reason(&error)),
            Err(_) => return broken("timed out"),
        };
        if let Some(chunk) = &chunk {
            self.read += chunk.len() as u64;
            self.failures = 0;
            self.response = Some(response);
        } else if self.size.is_some_and(|size| self.read < size) {
            return broken("the body ended early");
        }
        Ok(chunk.map(|chunk| chunk.to_vec()))
    }

    /// Requests what is not read yet.
    async fn request(&self) -> Result<Response> {
        let range = (self.read > 0).then(|| format!("bytes={}-", self.read));
        let condition = range.as_ref().map(|_| self.etag.as_str());
        let call = Call::get(path(&["download", &self.task_id])?)
            .header("accept-encoding", Some("identity"))
            .header("range", range.as_deref())
            .header("if-range", condition)
            .accept("*/*")
            .passes(StatusCode::FOUND);
        let transport = &self.client.transport;
        let opened = timeout(STALL, transport.open(&call)).await;
        let timed_out = |_| Error::Connection("download: timed out".to_owned());
        let mut response = opened
            .map_err(timed_out)?
            .map_err(|failure| failure.error)?;
        if response.status() == StatusCode::FOUND {
            response = self.follow(&response, range.as_deref(), condition).await?;
        }
        if self.read > 0 && response.status() != StatusCode::PARTIAL_CONTENT {
            return Err(Error::Malformed(
                "the output changed during the download".to_owned(),
            ));
        }
        Ok(response)
    }

    /// Follows the redirect to a presigned URL, without the token.
    async fn follow(
        &self,
        from: &Response,
        range: Option<&str>,
        condition: Option<&str>,
    ) -> Result<Response> {
        let location = text(from.headers(), "location");
        let url = from.url().join(&location).ok().filter(|url| {
            let downgrade = from.url().scheme() == "https" && url.scheme() != "https";
            matches!(url.scheme(), "http" | "https") && !location.is_empty() && !downgrade
        });
        let url =
            url.ok_or_else(|| Error::Malformed("malformed Location of a download".to_owned()))?;
        let mut request = self
            .client
            .transport
            .http
            .get(url)
            .header("accept-encoding", "identity");
        for (name, value) in [("range", range), ("if-range", condition)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let broken = |problem: &str| Error::Connection(format!("download: {problem}"));
        let response = timeout(STALL, request.send())
            .await
            .map_err(|_| broken("timed out"))?
            .map_err(|error| broken(&http::reason(&error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        Err(Error::Api(Box::new(ApiError::of(
            status,
            b"",
            response.headers(),
        ))))
    }

    /// Waits before the next try, or returns the error if none may help.
    async fn failed(&mut self, error: Error) -> Result<()> {
        let again = match &error {
            Error::Connection(_) => self.read == 0 || !self.etag.is_empty(),
            Error::Api(api) => matches!(api.status, 429 | 502..=504),
            _ => false,
        };
        let after = error
            .api()
            .and_then(|api| api.retry_after)
            .unwrap_or_default();
        if !again || after > STALL || self.failures >= self.client.transport.retries {
            return Err(error);
        }
        let delay = http::backoff(
            self.failures,
            Duration::from_millis(250),
            Duration::from_secs(8),
        );
        self.failures += 1;
        tokio::time::sleep(delay.max(after)).await;
        Ok(())
    }
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("size", &self.size)
            .field("media_type", &self.media_type)
            .field("file_name", &self.file_name)
            .finish_non_exhaustive()
    }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}
