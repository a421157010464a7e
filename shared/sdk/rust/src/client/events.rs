//! The events of the tenant.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use reqwest::StatusCode;
use serde_json::Value;

use super::error::Error;
use super::pages::Items;
use super::resume::{Body, Resumption, MOST_OUTAGE};
use super::sse::{Decoder, Message};
use super::transport::{new_key, Call};
use super::{Client, Result};
use crate::models::{Event, EventFilter, EventPage, EventTicket, Replay, ReplayRequest};

/// Reads and follows the events of the tenant.
#[derive(Clone, Copy, Debug)]
pub struct Events<'a> {
    pub(crate) client: &'a Client,
}

/// Which events to read. An absent field selects all.
#[derive(Clone, Debug, Default)]
pub struct EventQuery {
    /// The cursor behind which the events are: `earliest`, `latest`, or one of a stream. The
    /// default is `earliest` for a list and `latest` for a stream.
    pub after: Option<String>,
    /// Patterns of types, such as `job.*`.
    pub types: Vec<String>,
    /// Events of this project.
    pub project_id: Option<String>,
    /// Events of this stored job.
    pub job_id: Option<String>,
    /// Events of the run with this task id or run id.
    pub task_id: Option<String>,
    /// Events of the runs of this batch.
    pub batch_id: Option<String>,
    /// Events of the children of the run with this run id, or `none`: no events of children.
    pub parent_run_id: Option<String>,
    /// Events of runs whose labels this selector selects, such as `team=data,env!=dev`.
    pub label: Option<String>,
    /// The number of events on a page of a list.
    pub limit: Option<u32>,
    /// Whether a stream continues behind events that were deleted. Otherwise it ends with
    /// [`Error::Gap`].
    pub skip_gaps: bool,
    /// How long the server of a stream may be away; 10 minutes by default.
    pub most_outage: Option<Duration>,
}

impl EventQuery {
    fn call(&self, path: &str, after: Option<&str>) -> Call {
        let types = (!self.types.is_empty()).then(|| self.types.join(","));
        Call::get(path.to_owned())
            .query("after", after)
            .query("types", types)
            .query("projectId", self.project_id.as_deref())
            .query("jobId", self.job_id.as_deref())
            .query("taskId", self.task_id.as_deref())
            .query("batchId", self.batch_id.as_deref())
            .query("parentRunId", self.parent_run_id.as_deref())
            .query("label", self.label.as_deref())
    }
}

impl Events<'_> {
    /// Lists the stored events, oldest first.
    pub fn list(&self, query: &EventQuery) -> Items<Event> {
        let (client, query) = (self.client.clone(), query.clone());
        Items::new(move |place| {
            let (client, query) = (client.clone(), query.clone());
            async move {
                let after = place.or(query.after.clone());
                let call = query
                    .call("/v1/events", after.as_deref())
                    .query("limit", query.limit);
                let page: EventPage = client.transport.request(&call).await?.json()?;
                let next = Some(page.next).filter(|next| after.as_ref() != Some(next));
                Ok((page.events, next))
            }
        })
    }

    /// Follows the events behind a cursor as they come, each once and in order. The stream
    /// connects again after a break.
    pub fn stream(&self, query: &EventQuery) -> EventStream {
        let most_outage = query.most_outage.unwrap_or(MOST_OUTAGE);
        let reader = Reader {
            client: self.client.clone(),
            query: query.clone(),
            cursor: None,
            resumption: Resumption::new(self.client.transport.retries, most_outage),
            open: None,
            waiting: VecDeque::new(),
        };
        let events = futures_util::stream::unfold(Some(reader), |reader| async move {
            let mut reader = reader?;
            match reader.next().await {
                Ok(Some(item)) => Some((Ok(item), Some(reader))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        EventStream {
            events: Box::pin(events),
            cursor: query.after.clone(),
        }
    }

    /// Creates a ticket: the streams of events take it in place of a token for an hour.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn ticket(&self, filter: &EventFilter) -> Result<EventTicket> {
        self.client.post("/v1/events/tickets", filter, None).await
    }

    /// Sends stored events again, to a webhook or to the bus.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn replay(&self, request: &ReplayRequest) -> Result<Replay> {
        self.replay_keyed(request, &new_key()).await
    }

    /// Does the same with an idempotency key of the caller: a repeated call returns the same replay
    /// with its progress.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn replay_keyed(&self, request: &ReplayRequest, key: &str) -> Result<Replay> {
        self.client
            .post("/v1/events:replay", request, Some(key))
            .await
    }
}

type Item = (Event, String);

/// The events behind a cursor, as they come: call [`EventStream::next`], or use it as a `Stream`.
///
/// Store [`EventStream::cursor`] together with what was done with an event: then no event is lost
/// or handled twice, also after a crash.
#[must_use]
pub struct EventStream {
    events: Pin<Box<dyn Stream<Item = Result<Item>> + Send>>,
    cursor: Option<String>,
}

impl EventStream {
    /// Returns the next event. `None` after an error, and if the server wants no more streams.
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Event>> {
        futures_util::future::poll_fn(|context| self.poll_next_unpin(context)).await
    }

    /// Returns where a stream continues behind the last event that was returned.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }
}

impl Stream for EventStream {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.events.as_mut().poll_next(context);
        polled.map(|item| {
            item.map(|item| {
                item.map(|(event, cursor)| {
                    self.cursor = Some(cursor);
                    event
                })
            })
        })
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("cursor", &self.cursor)
            .finish_non_exhaustive()
    }
}

/// Reads one stream after another.
struct Reader {
    client: Client,
    query: EventQuery,
    /// Where the next stream continues.
    cursor: Option<String>,
    resumption: Resumption,
    open: Option<(Body, Decoder)>,
    waiting: VecDeque<Message>,
}

impl Reader {
    /// Returns the next event and its cursor.
    async fn next(&mut self) -> Result<Option<Item>> {
        loop {
            while let Some(message) = self.waiting.pop_front() {
                let event = event(&message, self.query.skip_gaps)?;
                if !message.id.is_empty() {
                    self.cursor = Some(message.id.clone());
                }
                if let Some(event) = event {
                    return Ok(Some((event, self.cursor.clone().unwrap_or_default())));
                }
            }
            match self.read().await {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) => {
                    self.open = None;
                    self.resumption.failed(error).await?;
                }
            }
        }
    }

    /// Reads a piece of the stream; false if the server wants no more streams.
    async fn read(&mut self) -> Result<bool> {
        if self.open.is_none() {
            let call = self
                .query
                .call("/v1/events/stream", self.query.after.as_deref())
                .header("last-event-id", self.cursor.as_deref())
                .accept("text/event-stream");
            let body = self.resumption.open(&self.client.transport, &call).await?;
            if body.response.status() == StatusCode::NO_CONTENT {
                return Ok(false);
            }
            self.open = Some((body, Decoder::new()));
        }
        let Some((body, decoder)) = &mut self.open else {
            return Ok(true);
        };
        match body.chunk().await? {
            Some(content) => {
                self.resumption.works();
                self.waiting.extend(decoder.feed(&content)?);
                if self.waiting.is_empty() && !decoder.last_event_id().is_empty() {
                    // A message without data moves the cursor, too.
                    self.cursor = Some(decoder.last_event_id().to_owned());
                }
            }
            None => {
                let retry = decoder.retry();
                self.open = None;
                self.resumption.ended(retry).await;
            }
        }
        Ok(true)
    }
}

/// Returns the event of a message; `None` if it is a gap to skip.
fn event(message: &Message, skip_gaps: bool) -> Result<Option<Event>> {
    let malformed = |error| Error::Malformed(format!("event {}: {error}", message.id));
    let value: Value = serde_json::from_str(&message.data).map_err(malformed)?;
    if value["eventType"] == "stream.gap" {
        if skip_gaps {
            return Ok(None);
        }
        let gap = serde_json::from_value(value).map_err(malformed)?;
        return Err(Error::Gap(Box::new(gap)));
    }
    serde_json::from_value(value).map(Some).map_err(malformed)
}
