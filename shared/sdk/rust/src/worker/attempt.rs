//! One attempt: its state, which the work and the heartbeats share.
//!
//! All calls are made on a thread with a runtime of its own, so that work that blocks its
//! own runtime stops none of them.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use serde_json::{json, Map, Value};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::calls::{self, Answer, Log};
use super::cause::Cause;
use super::envelope::{Envelope, Upload};
use super::outbox::Outbox;
use super::report::{cut, MOST_MESSAGE};
use crate::{http, time};

const REPORT_TIMEOUT: Duration = Duration::from_secs(3600); // without a deadline
const LEAST_RETRY: Duration = Duration::from_secs(60);
const MOST_RETRY: Duration = Duration::from_secs(30 * 86_400);

/// What the work last reported of itself.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Progress {
    pub(crate) percent: Option<u8>,
    pub(crate) message: String,
}

/// What changes during an attempt.
pub(crate) struct State {
    pub(crate) token: String,
    pub(crate) output: Option<Upload>,
    pub(crate) stop: Option<Cause>,
    /// The reason of the cancel request.
    pub(crate) cancel: Option<String>,
    pub(crate) uploaded: Option<Value>,
    pub(crate) progress: Progress,
    pub(crate) delivered: Progress,
    pub(crate) beat_now: bool,
    pub(crate) phase: String,
    pub(crate) partial: Option<Value>,
    pub(crate) metrics: Map<String, Value>,
    /// The result is being reported.
    pub(crate) claimed: bool,
}

/// One attempt.
pub(crate) struct Attempt {
    pub(crate) envelope: Envelope,
    pub(crate) worker_id: String,
    pub(crate) handles_sigterm: bool,
    pub(crate) log: Arc<Log>,
    pub(crate) http: reqwest::Client,
    /// The runtime of the calls.
    pub(crate) handle: Handle,
    pub(crate) outbox: Option<Arc<Outbox>>,
    pub(crate) call_timeout: Duration,
    /// Is cancelled when the work must stop.
    pub(crate) stopped: CancellationToken,
    /// Is cancelled when no more calls are made.
    pub(crate) ended: CancellationToken,
    /// Is cancelled when a heartbeat after SIGTERM was answered.
    pub(crate) looked_up: CancellationToken,
    /// Wakes the heartbeats.
    pub(crate) beat: Notify,
    /// Wakes the watch.
    pub(crate) changed: Notify,
    state: Mutex<State>,
}

impl Attempt {
    pub(crate) fn new(
        envelope: Envelope,
        worker_id: String,
        log: Arc<Log>,
        http: reqwest::Client,
        handle: Handle,
        settings: (bool, bool),
    ) -> Self {
        let (handles_sigterm, send_output) = settings;
        let third = envelope.timeout / 3;
        let state = State {
            token: envelope.token.clone(),
            output: envelope.output.clone(),
            stop: None,
            cancel: None,
            uploaded: None,
            progress: Progress::default(),
            delivered: Progress::default(),
            beat_now: true, // early, so that a cancel does not wait for an interval
            phase: String::new(),
            partial: None,
            metrics: Map::new(),
            claimed: false,
        };
        Self {
            worker_id,
            handles_sigterm,
            log,
            http,
            handle,
            outbox: send_output.then(|| Arc::new(Outbox::new())),
            call_timeout: third.clamp(Duration::from_millis(500), Duration::from_secs(30)),
            stopped: CancellationToken::new(),
            ended: CancellationToken::new(),
            looked_up: CancellationToken::new(),
            beat: Notify::new(),
            changed: Notify::new(),
            state: Mutex::new(state),
            envelope,
        }
    }

    /// Returns the state. A panic elsewhere leaves it usable.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Makes one call with the newest token.
    pub(crate) async fn call(&self, name: &str, mut fields: Value) -> Answer {
        let envelope = &self.envelope;
        fields["attempt"] = json!(envelope.attempt);
        fields["workerId"] = json!(self.worker_id);
        let url = format!("{}/v1/tasks/{}/{name}", envelope.base, envelope.task_id);
        let token = self.state().token.clone();
        let request = self
            .http
            .post(url)
            .bearer_auth(token)
            .header("content-type", "application/json")
            .body(fields.to_string());
        calls::send(request, self.call_timeout).await
    }

    /// Sends `started` until it is answered. Returns why the work must not begin.
    pub(crate) async fn start(&self) -> Result<(), Start> {
        let mut fields = json!({"startedAt": time::now(), "handlesSigterm": self.handles_sigterm});
        if self.outbox.is_some() {
            fields["sendsOutput"] = json!(true);
        }
        let until = self.retry_until();
        let answer = calls::repeat("started", until, Some(&self.stopped), &*self.log, || {
            self.call("started", fields.clone())
        })
        .await;
        if answer.ok() {
            return Ok(());
        }
        if let Some(cause) = self.state().stop.clone().or_else(|| Cause::of(&answer)) {
            return Err(Start::Stopped(cause));
        }
        Err(Start::Refused(answer.to_string()))
    }

    /// Returns how long a report is repeated: to the deadline.
    pub(crate) fn retry_until(&self) -> Instant {
        let left = self
            .until_deadline()
            .map(|left| left.clamp(LEAST_RETRY, MOST_RETRY));
        Instant::now() + left.unwrap_or(REPORT_TIMEOUT)
    }

    /// Returns the time that is left of the attempt.
    pub(crate) fn until_deadline(&self) -> Option<Duration> {
        let deadline = self.envelope.deadline?;
        Some(
            deadline
                .duration_since(SystemTime::now())
                .unwrap_or_default(),
        )
    }

    /// Sets what heartbeats report. A change is sent within a second.
    pub(crate) fn set_progress(&self, percent: f64, message: &str) {
        let progress = Progress {
            percent: (!percent.is_nan()).then(|| percent.clamp(0.0, 100.0) as u8),
            message: cut(message, MOST_MESSAGE),
        };
        let mut state = self.state();
        if state.progress != progress {
            state.progress = progress;
            self.beat.notify_one();
        }
    }

    /// Sends a heartbeat at once.
    pub(crate) fn request_heartbeat(&self) {
        self.state().beat_now = true;
        self.beat.notify_one();
    }

    /// Stops the work for a cancel request.
    pub(crate) fn cancel(&self, reason: Option<&Value>) {
        let reason = reason.and_then(Value::as_str).filter(|r| !r.is_empty());
        let reason = cut(reason.unwrap_or("user_requested"), MOST_MESSAGE);
        self.state().cancel.get_or_insert_with(|| reason.clone());
        self.stop(Cause::Cancelled(reason));
    }

    /// Stops the work after a 409 or 410.
    pub(crate) fn refused(&self, answer: &Answer) {
        match Cause::of(answer).unwrap_or(Cause::Aborted("refused")) {
            Cause::Cancelled(reason) => self.cancel(Some(&Value::String(reason))),
            cause => self.stop(cause),
        }
        self.looked_up.cancel();
    }

    /// Asks the work to stop. The first cause counts, unless that is SIGTERM.
    pub(crate) fn stop(&self, cause: Cause) {
        {
            let mut state = self.state();
            if !matches!(state.stop, None | Some(Cause::Terminated)) {
                return;
            }
            if state.stop.as_ref() != Some(&cause) {
                let reason = cause.reason().escape_debug(); // one line, whatever it has
                (self.log)(&format!("the work must stop: {reason}"));
            }
            state.stop = Some(cause);
        }
        self.stopped.cancel();
        self.changed.notify_one();
    }

    /// Handles SIGTERM: stops, and asks at once whether a cancel was requested.
    pub(crate) fn terminated(&self) {
        if self.state().claimed {
            return; // an accepted report stays as it is
        }
        self.stop(Cause::Terminated);
        self.request_heartbeat();
    }

    /// Returns whether the caller is the first one that wants to report.
    pub(crate) fn claim(&self) -> bool {
        !std::mem::replace(&mut self.state().claimed, true)
    }

    /// Ends the calls.
    pub(crate) fn close(&self) {
        self.ended.cancel();
        if let Some(outbox) = &self.outbox {
            outbox.close();
        }
    }
}

/// Why the work must not begin.
pub(crate) enum Start {
    Stopped(Cause),
    Refused(String),
}

/// Returns a name that differs between processes.
pub(crate) fn new_worker_id() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok())
        .unwrap_or_default();
    let host: String = host
        .chars()
        .filter(char::is_ascii_graphic)
        .take(63)
        .collect();
    let host = if host.is_empty() { "worker" } else { &host };
    format!("{host}-{}", http::hex(&http::random_bytes::<4>()))
}
