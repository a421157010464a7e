//! The heartbeats, and the watch over signals, the deadline and the grace period.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{json, Value};
use tokio::time::{sleep_until, Instant};

use super::attempt::Attempt;
use super::calls::{Answer, FIRST_DELAY};
use super::cause::Cause;
use super::envelope;
use super::failure::Failure;
use super::report::End;
use crate::{http, time};

const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
const MOST_MARGIN: Duration = Duration::from_secs(5);

/// Sends a heartbeat at every interval until the attempt ends. No failure ends it.
pub(crate) async fn send_heartbeats(attempt: Arc<Attempt>) {
    let interval = attempt.envelope.interval;
    let mut failures = 0;
    let mut sent = Instant::now();
    let mut due = sent + interval;
    loop {
        if !wait_for_turn(&attempt, failures == 0, sent, due).await {
            return;
        }
        sent = Instant::now();
        let answer = tokio::select! {
            () = attempt.ended.cancelled() => return,
            answer = heartbeat(&attempt) => answer,
        };
        if matches!(answer.status, 409 | 410) {
            attempt.refused(&answer);
            return;
        }
        if answer.ok() {
            failures = 0;
            due = sent + interval;
            continue;
        }
        let first = FIRST_DELAY.min(interval / 8);
        let mut delay = http::backoff(failures, first, interval);
        delay = delay.max(answer.retry_after).min(interval);
        if !answer.retryable() {
            delay = interval;
        }
        failures += 1;
        due = Instant::now() + delay;
        (attempt.log)(&format!(
            "a heartbeat failed ({answer}), retrying in {:.1} s",
            delay.as_secs_f64()
        ));
    }
}

/// Waits until a heartbeat is due; false if none is needed any more.
async fn wait_for_turn(attempt: &Attempt, healthy: bool, sent: Instant, due: Instant) -> bool {
    loop {
        let at = {
            let mut state = attempt.state();
            if std::mem::take(&mut state.beat_now) {
                return !attempt.ended.is_cancelled();
            }
            if healthy && state.progress != state.delivered {
                due.min(sent + PROGRESS_INTERVAL)
            } else {
                due
            }
        };
        tokio::select! {
            () = attempt.ended.cancelled() => return false,
            () = attempt.beat.notified() => {}
            () = sleep_until(at) => return true,
        }
    }
}

async fn heartbeat(attempt: &Attempt) -> Answer {
    let (progress, terminated) = {
        let state = attempt.state();
        (
            state.progress.clone(),
            state.stop == Some(Cause::Terminated),
        )
    };
    let mut fields = json!({"heartbeatAt": time::now()});
    if let Some(percent) = progress.percent {
        fields["progressPct"] = json!(percent);
    }
    if !progress.message.is_empty() {
        fields["message"] = json!(progress.message);
    }
    let answer = attempt.call("heartbeat", fields).await;
    if !answer.ok() {
        return answer;
    }
    let Some(said) = answer.object() else {
        return Answer::failed("malformed answer");
    };
    {
        let mut state = attempt.state();
        state.delivered = progress;
        let token = said.get("taskToken").and_then(Value::as_str);
        if let Some(token) = token.filter(|token| http::is_token(token)) {
            state.token = token.to_owned();
        }
        if let Some(target) = envelope::upload(said.get("output")) {
            state.output = Some(target);
        }
    }
    if said.get("shouldCancel") == Some(&Value::Bool(true)) {
        attempt.cancel(said.get("cancelReason"));
    }
    if terminated {
        attempt.looked_up.cancel();
    }
    answer
}

/// SIGTERM. Systems without signals have an empty one.
pub(crate) struct Terminations(
    #[cfg(unix)] Option<tokio::signal::unix::Signal>,
    #[cfg(not(unix))] (),
);

impl Terminations {
    /// Installs a handler if it is wanted. The caller is in a runtime.
    pub(crate) fn install(wanted: bool) -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{signal, SignalKind};
            Self(
                wanted
                    .then(|| signal(SignalKind::terminate()).ok())
                    .flatten(),
            )
        }
        #[cfg(not(unix))]
        {
            let _ = wanted;
            Self(())
        }
    }

    pub(crate) fn installed(&self) -> bool {
        #[cfg(unix)]
        return self.0.is_some();
        #[cfg(not(unix))]
        return false;
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.0 {
            if signal.recv().await.is_some() {
                return;
            }
        }
        std::future::pending::<()>().await;
    }
}

/// Stops the work at SIGTERM and at the deadline, and ends the process if the work does not
/// stop within the grace period.
pub(crate) async fn watch(attempt: Arc<Attempt>, mut terminations: Terminations) {
    let mut at = deadline(&attempt);
    let mut seen: Option<Cause> = None;
    loop {
        let expires = async {
            match at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = attempt.ended.cancelled() => return,
            () = terminations.next() => attempt.terminated(),
            () = attempt.changed.notified() => {}
            () = expires => match &seen {
                None => attempt.stop(Cause::Deadline),
                Some(cause) => return expire(attempt, cause.clone()).await,
            },
        }
        let cause = attempt.state().stop.clone();
        if cause != seen {
            at = cause
                .as_ref()
                .map(|cause| Instant::now() + cause.grace(attempt.envelope.grace));
            seen = cause;
        }
    }
}

/// Returns when the work must stop: a little before the attempt is killed.
fn deadline(attempt: &Attempt) -> Option<Instant> {
    let limits = [attempt.until_deadline(), attempt.envelope.time_limit];
    let left = limits.into_iter().flatten().min()?;
    Instant::now().checked_add(left - MOST_MARGIN.min(left / 10))
}

async fn expire(attempt: Arc<Attempt>, cause: Cause) {
    if !attempt.claim() {
        return;
    }
    (attempt.log)("the work did not stop within the grace period; the process ends");
    let failure = Failure::stopped(cause.reason());
    let end = attempt.report(Some(&failure)).await;
    if let End::Undelivered(error) = &end {
        (attempt.log)(error);
    }
    let code = if matches!(end, End::Terminated) {
        super::EXIT_TERMINATED
    } else {
        super::EXIT_FAILED
    };
    std::process::exit(i32::from(code));
}
