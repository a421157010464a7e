//! The input and the output of a task, by presigned URLs.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{json, Value};
use tokio::io::AsyncReadExt as _;
use tokio::time::{sleep, Instant};

use super::attempt::Attempt;
use super::calls::{self, Answer};
use super::envelope::{Download, Upload};
use super::failure::{Category, Failure};
use crate::http;

const MOST_INPUT: usize = 8 << 20;
const MOST_UPLOAD: u64 = 5 << 30;
const INPUT_TIMEOUT: Duration = Duration::from_secs(120);
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(900);
const STALL: Duration = Duration::from_secs(60);
const MOST_FORBIDDEN: u32 = 3;
const PIECE: usize = 64 << 10;

/// What [`Task::output`](crate::Task::output) stores.
///
/// ```
/// use sortie_worker::Output;
///
/// let output = Output::bytes("a,b\n1,2\n").content_type("text/csv").file_name("table.csv");
/// ```
#[derive(Clone)]
#[must_use]
pub struct Output {
    content: Content,
    content_type: Option<String>,
    file_name: Option<String>,
}

#[derive(Clone)]
enum Content {
    Bytes(Arc<Vec<u8>>),
    File(PathBuf),
}

impl Output {
    /// Returns an output with this content.
    pub fn bytes(content: impl Into<Vec<u8>>) -> Self {
        Self {
            content: Content::Bytes(Arc::new(content.into())),
            content_type: None,
            file_name: None,
        }
    }

    /// Returns an output with the content of a file, which is not held in memory. It must not
    /// change before [`Task::output`](crate::Task::output) returns.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        Self {
            content: Content::File(path),
            content_type: None,
            file_name: name,
        }
    }

    /// Sets the media type. The default is that of the job, or else `application/octet-stream`.
    pub fn content_type(mut self, media_type: impl Into<String>) -> Self {
        self.content_type = Some(media_type.into());
        self
    }

    /// Sets the name of the file for downloads. The default is that of the file, or else of the job.
    pub fn file_name(mut self, name: impl Into<String>) -> Self {
        self.file_name = Some(name.into());
        self
    }

    async fn size(&self) -> Result<u64, Failure> {
        let path = match &self.content {
            Content::Bytes(content) => return Ok(content.len() as u64),
            Content::File(path) => path,
        };
        let described = tokio::fs::metadata(path).await?;
        if !described.is_file() {
            return Err(Failure::new(
                Category::UserCode,
                "the output is not a regular file",
            ));
        }
        Ok(described.len())
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let content = match &self.content {
            Content::Bytes(content) => format!("{} bytes", content.len()),
            Content::File(path) => path.display().to_string(),
        };
        write!(f, "Output({content})")
    }
}

fn stopped(attempt: &Attempt) -> Option<Failure> {
    let state = attempt.state();
    state
        .stop
        .as_ref()
        .map(|cause| Failure::stopped(cause.reason()))
}

/// Returns the standard input of the job.
pub(crate) async fn input(attempt: Arc<Attempt>) -> Result<Vec<u8>, Failure> {
    let Some(source) = attempt.envelope.input.clone() else {
        return Ok(Vec::new());
    };
    let until = Instant::now() + INPUT_TIMEOUT;
    let what = "the download of the input";
    let get = || get(&attempt, &source);
    let answer = calls::repeat(what, until, Some(&attempt.stopped), &*attempt.log, get).await;
    if answer.ok() {
        return Ok(answer.body);
    }
    Err(stopped(&attempt).unwrap_or_else(|| {
        Failure::new(
            Category::Infrastructure,
            format!("cannot read the input: {answer}"),
        )
        .retryable(true)
    }))
}

async fn get(attempt: &Attempt, source: &Download) -> Answer {
    let call = calls::send_at_most(attempt.http.get(&source.url), STALL, MOST_INPUT);
    let answer = tokio::select! {
        () = attempt.stopped.cancelled() => return Answer::failed("the work must stop"),
        answer = call => answer,
    };
    if answer.ok()
        && source
            .size
            .is_some_and(|size| size != answer.body.len() as u64)
    {
        return Answer::failed("it has another size than the envelope says");
    }
    answer
}

/// Stores the output of the task. The last one counts.
pub(crate) async fn output(attempt: Arc<Attempt>, output: Output) -> Result<(), Failure> {
    let no_retry = |category, message: String| Failure::new(category, message).retryable(false);
    let size = output.size().await?;
    if size > MOST_UPLOAD {
        let message = format!("the output has {size} bytes, want at most 5 GiB");
        return Err(no_retry(Category::UserCode, message));
    }
    let envelope = &attempt.envelope;
    if attempt.state().output.is_none() {
        let message = "the task has no place for an output".to_owned();
        return Err(no_retry(Category::Configuration, message));
    }
    let or = |given: &str, default: &str| if given.is_empty() { default } else { given }.to_owned();
    let kind = output
        .content_type
        .clone()
        .unwrap_or_else(|| or(&envelope.content_type, "application/octet-stream"));
    if reqwest::header::HeaderValue::from_str(&kind).is_err() {
        return Err(no_retry(
            Category::UserCode,
            "malformed content type".to_owned(),
        ));
    }
    let until = Instant::now() + UPLOAD_TIMEOUT;
    let stored = Mutex::new(Value::Null);
    let forbidden = AtomicU64::new(0);
    let what = "the upload";
    let answer = calls::repeat(what, until, Some(&attempt.stopped), &*attempt.log, || {
        put(&attempt, &output, (size, &kind), (&forbidden, &stored))
    })
    .await;
    if !answer.ok() {
        return Err(stopped(&attempt).unwrap_or_else(|| {
            let message = format!("cannot store the output: {answer}");
            Failure::new(Category::Infrastructure, message).retryable(true)
        }));
    }
    let mut stored = stored.into_inner().unwrap_or_default();
    let name = output
        .file_name
        .unwrap_or_else(|| envelope.file_name.clone());
    if !name.is_empty() {
        stored["fileName"] = json!(name);
    }
    attempt.state().uploaded = Some(stored);
    Ok(())
}

async fn put(
    attempt: &Arc<Attempt>,
    output: &Output,
    (size, kind): (u64, &str),
    (forbidden, stored): (&AtomicU64, &Mutex<Value>),
) -> Answer {
    let Some(target) = attempt.state().output.clone() else {
        return Answer::failed("no target");
    };
    let sent = Arc::new(Sent::new());
    let body = body(output, size, attempt, &sent);
    let request = request(&attempt.http, &target, kind)
        .header("content-length", size)
        .body(body);
    let answer = tokio::select! {
        () = attempt.stopped.cancelled() => return Answer::failed("the work must stop"),
        () = sent.stalls() => return Answer::failed("timed out"),
        answer = calls::send(request, UPLOAD_TIMEOUT) => answer,
    };
    let tries = forbidden.load(Ordering::Relaxed);
    if answer.status == 403 && tries < u64::from(MOST_FORBIDDEN) {
        forbidden.store(tries + 1, Ordering::Relaxed);
        attempt.request_heartbeat(); // the URL may have expired; a heartbeat renews it
        return Answer::failed("the URL was refused");
    }
    if answer.ok() {
        let mut fields = json!({"outputPath": target.key, "byteSize": size});
        if let Some(digest) = sent.digest(size) {
            fields["digest"] = json!(digest);
        }
        if let Ok(mut stored) = stored.lock() {
            *stored = fields;
        }
    }
    answer
}

fn request(http: &reqwest::Client, target: &Upload, kind: &str) -> reqwest::RequestBuilder {
    let mut headers = reqwest::header::HeaderMap::new();
    if let Ok(kind) = kind.parse() {
        headers.insert("content-type", kind);
    }
    for (name, value) in &target.headers {
        let name = reqwest::header::HeaderName::try_from(name);
        if let (Ok(name), Ok(value)) = (name, value.parse()) {
            headers.insert(name, value);
        }
    }
    http.put(&target.url).headers(headers)
}

/// What was sent of a body, with its digest.
struct Sent {
    pieces: AtomicU64,
    sum: Mutex<(u64, ring::digest::Context)>,
}

impl Sent {
    fn new() -> Self {
        let context = ring::digest::Context::new(&ring::digest::SHA256);
        Self {
            pieces: AtomicU64::new(0),
            sum: Mutex::new((0, context)),
        }
    }

    fn add(&self, piece: &[u8]) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut sum) = self.sum.lock() {
            sum.0 += piece.len() as u64;
            sum.1.update(piece);
        }
    }

    /// Returns the digest if the whole body was read.
    fn digest(&self, size: u64) -> Option<String> {
        let sum = self.sum.lock().ok().filter(|sum| sum.0 == size)?;
        Some(format!(
            "sha256:{}",
            http::hex(sum.1.clone().finish().as_ref())
        ))
    }

    /// Returns once nothing was sent for a while.
    async fn stalls(&self) {
        loop {
            let before = self.pieces.load(Ordering::Relaxed);
            sleep(STALL).await;
            if self.pieces.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

/// Where the pieces of a body come from.
enum Source {
    Bytes(Arc<Vec<u8>>),
    Closed(PathBuf),
    File(tokio::fs::File),
}

impl Source {
    /// Returns the piece at a place, of at most `most` bytes.
    async fn piece(&mut self, at: u64, most: usize) -> io::Result<Vec<u8>> {
        if let Self::Closed(path) = self {
            *self = Self::File(tokio::fs::File::open(path).await?);
        }
        match self {
            Self::Bytes(content) => {
                let at = usize::try_from(at).map_err(io::Error::other)?;
                Ok(content[at..at + most].to_vec())
            }
            Self::File(file) => {
                let mut piece = vec![0; most];
                let read = file.read(&mut piece).await?;
                if read == 0 {
                    return Err(io::Error::other("the file became shorter"));
                }
                piece.truncate(read);
                Ok(piece)
            }
            Self::Closed(_) => Err(io::Error::other("the file is not open")),
        }
    }
}

/// Returns a body that ends when the work must stop.
fn body(output: &Output, size: u64, attempt: &Arc<Attempt>, sent: &Arc<Sent>) -> reqwest::Body {
    let source = match &output.content {
        Content::Bytes(content) => Source::Bytes(content.clone()),
        Content::File(path) => Source::Closed(path.clone()),
    };
    let (attempt, sent) = (attempt.clone(), sent.clone());
    let stream = futures_util::stream::try_unfold((source, 0), move |(mut source, at)| {
        let (attempt, sent) = (attempt.clone(), sent.clone());
        async move {
            if at == size {
                return Ok(None);
            }
            if attempt.stopped.is_cancelled() {
                return Err(io::Error::other("the work must stop"));
            }
            let left = usize::try_from(size - at).unwrap_or(PIECE);
            let piece = source.piece(at, left.min(PIECE)).await?;
            sent.add(&piece);
            let after = at + piece.len() as u64;
            Ok(Some((piece, (source, after))))
        }
    });
    reqwest::Body::wrap_stream(stream)
}
