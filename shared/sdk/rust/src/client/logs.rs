//! The output of workers, as it grows.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt as _};

use super::error::Error;
use super::resume::{Body, Resumption, MOST_OUTAGE};
use super::transport::{path, Call};
use super::{Client, Result};
use crate::models::LogLine;

const MOST_LINE: usize = 1 << 20;

/// The output of a run until it ends: call [`LogStream::next`], or use it as a `Stream`.
#[must_use]
pub struct LogStream {
    lines: Pin<Box<dyn Stream<Item = Result<LogLine>> + Send>>,
}

impl LogStream {
    pub(crate) fn new(client: Client, task_id: String) -> Self {
        let reader = Reader {
            resumption: Resumption::new(client.transport.retries, MOST_OUTAGE),
            client,
            task_id,
            place: None,
            ended: false,
            open: None,
            waiting: VecDeque::new(),
        };
        let lines = futures_util::stream::unfold(Some(reader), |reader| async move {
            let mut reader = reader?;
            match reader.next().await {
                Ok(Some(line)) => Some((Ok(line), Some(reader))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Self {
            lines: Box::pin(lines),
        }
    }

    /// Returns the next piece of output; `None` once the run has ended. Dropping the future
    /// loses nothing.
    pub async fn next(&mut self) -> Option<Result<LogLine>> {
        self.lines.next().await
    }
}

impl Stream for LogStream {
    type Item = Result<LogLine>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.lines.as_mut().poll_next(context)
    }
}

impl fmt::Debug for LogStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogStream")
    }
}

struct Reader {
    client: Client,
    task_id: String,
    resumption: Resumption,
    /// The attempt and the offset to continue from.
    place: Option<(i64, i64)>,
    ended: bool,
    open: Option<(Body, Vec<u8>)>,
    waiting: VecDeque<LogLine>,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<LogLine>> {
        loop {
            while let Some(line) = self.waiting.pop_front() {
                let attempt = line.attempt.or(self.place.map(|(attempt, _)| attempt));
                self.place = Some((attempt.unwrap_or(1), line.next));
                self.ended |= line.ended == Some(true);
                if line.data.is_some() || line.cut.is_some() {
                    return Ok(Some(line));
                }
            }
            if self.ended {
                return Ok(None);
            }
            if let Err(error) = self.read().await {
                self.open = None;
                self.resumption.failed(error).await?;
            }
        }
    }

    async fn read(&mut self) -> Result<()> {
        if self.open.is_none() {
            let call = Call::get(path(&["v1", "tasks", &self.task_id, "logs"])?)
                .query("follow", Some(true))
                .query("attempt", self.place.map(|(attempt, _)| attempt))
                .query("offset", self.place.map(|(_, offset)| offset))
                .accept("application/x-ndjson");
            let body = self.resumption.open(&self.client.transport, &call).await?;
            self.open = Some((body, Vec::new()));
        }
        let Some((body, rest)) = &mut self.open else {
            return Ok(());
        };
        let Some(content) = body.chunk().await? else {
            self.open = None;
            self.resumption.ended(None).await;
            return Ok(());
        };
        self.resumption.works();
        rest.extend_from_slice(&content);
        let complete = rest
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let tail = rest.split_off(complete);
        for line in rest
            .split(|b| *b == b'\n')
            .filter(|line| !line.trim_ascii().is_empty())
        {
            let malformed = |error| Error::Malformed(format!("line of a log: {error}"));
            self.waiting
                .push_back(serde_json::from_slice(line).map_err(malformed)?);
        }
        if tail.len() > MOST_LINE {
            return Err(Error::Malformed(
                "a line of the log is too large".to_owned(),
            ));
        }
        *rest = tail;
        Ok(())
    }
}
