//! The report of the result.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{json, Value};

use super::attempt::{Attempt, State};
use super::calls;
use super::cause::Cause;
use super::failure::{Category, Failure, Kind};
use super::{outbox, usage};
use crate::time;

/// The control plane cuts texts at the same lengths.
pub(crate) const MOST_MESSAGE: usize = 2 << 10;
const MOST_TRACE: usize = 16 << 10;
const CUT: &str = " [cut]";
const CANCEL_LOOKUP: Duration = Duration::from_secs(3);

/// How an attempt ended for the control plane.
pub(crate) enum End {
    /// The report was accepted, with this final state.
    Accepted(String),
    /// The attempt is lost, so nothing was reported.
    Aborted(&'static str),
    /// SIGTERM without a cancel request: the control plane sees the end of the machine.
    Terminated,
    /// The report was not accepted.
    Undelivered(String),
}

impl Attempt {
    /// Reports the result and ends the heartbeats. It does not return if the watch reports
    /// already: that ends the process.
    pub(crate) async fn finish(self: Arc<Self>, failure: Option<Failure>) -> End {
        if !self.claim() {
            std::future::pending::<()>().await;
        }
        let end = self.report(failure.as_ref()).await;
        self.close();
        end
    }

    /// Sends what is left of the output, and `completed` until it is answered.
    pub(crate) async fn report(&self, failure: Option<&Failure>) -> End {
        if failure.is_some() && self.state().stop == Some(Cause::Terminated) {
            let most = CANCEL_LOOKUP.min(self.envelope.grace / 10);
            let _ = tokio::time::timeout(most, self.looked_up.cancelled()).await;
            if self.state().cancel.is_none() && self.state().stop == Some(Cause::Terminated) {
                return End::Terminated;
            }
        }
        if let Some(Cause::Aborted(reason)) = self.state().stop {
            return End::Aborted(reason);
        }
        let lost = match &self.outbox {
            Some(outbox) => outbox::flush(self, outbox).await,
            None => 0,
        };
        let mut fields = result(&self.state(), failure);
        let mut metrics = usage::usage();
        metrics.extend(self.state().metrics.clone());
        if lost > 0 {
            metrics.insert("outputBytesLost".to_owned(), json!(lost));
        }
        fields["metrics"] = Value::Object(metrics);
        let until = self.retry_until();
        let answer = calls::repeat("completed", until, None, &*self.log, || {
            self.call("completed", fields.clone())
        })
        .await;
        if !answer.ok() {
            return End::Undelivered(format!("the result was not accepted: {answer}"));
        }
        let said = answer.object().unwrap_or_default();
        let state = said.get("finalState").and_then(Value::as_str);
        let outcome = fields["outcome"].as_str().unwrap_or_default();
        End::Accepted(state.unwrap_or(outcome).to_owned())
    }
}

fn result(state: &State, failure: Option<&Failure>) -> Value {
    let mut fields = json!({"completedAt": time::now()});
    let Some(failure) = failure else {
        fields["outcome"] = json!("SUCCEEDED");
        if let Some(output) = &state.uploaded {
            fields["output"] = output.clone();
        }
        return fields;
    };
    if state.cancel.is_none() {
        fields["outcome"] = json!("FAILED");
        fields["error"] = error(failure, state.stop.as_ref());
        return fields;
    }
    fields["outcome"] = json!("CANCELLED");
    let phase = if state.phase.is_empty() {
        "processing"
    } else {
        &state.phase
    };
    fields["cancelledDuringPhase"] = json!(phase);
    if let Some(partial) = &state.partial {
        fields["partialProgress"] = partial.clone();
    } else if let Some(percent) = state.progress.percent {
        let message = &state.progress.message;
        fields["partialProgress"] = json!({"progressPct": percent, "message": message});
    }
    fields
}

fn error(failure: &Failure, cause: Option<&Cause>) -> Value {
    let mut category = failure.category;
    let mut message = failure.message.as_str();
    if cause == Some(&Cause::Deadline) && failure.kind != Kind::Named {
        category = Category::Timeout;
        if failure.kind == Kind::Stopped {
            message = "the attempt reached its deadline";
        }
    }
    if message.is_empty() {
        message = "the work failed";
    }
    let mut error = json!({"category": category.as_str(), "message": cut(message, MOST_MESSAGE)});
    if !failure.trace.is_empty() {
        error["stackTrace"] = json!(cut_middle(&failure.trace, MOST_TRACE));
    }
    if let Some(retryable) = failure.retryable {
        error["retryable"] = json!(retryable);
    }
    error
}

/// Shortens a text to at most `most` bytes, and marks it.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}{CUT}", &text[..floor(text, most - CUT.len())])
}

/// Shortens a trace: its end and its beginning name the error.
fn cut_middle(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let half = (most - 16) / 2;
    let end = text.len() - half;
    let end = (end..text.len()).find(|at| text.is_char_boundary(*at));
    format!(
        "{}\n[cut]\n{}",
        &text[..floor(text, half)],
        &text[end.unwrap_or(text.len())..]
    )
}

/// Returns the last character boundary at or before a place.
fn floor(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        let text = "\u{20ac}".repeat(2000);
        let short = cut(&text, MOST_MESSAGE);
        assert!(short.len() <= MOST_MESSAGE && short.ends_with("\u{20ac} [cut]"));
        let middle = cut_middle(&text, 100);
        assert!(
            middle.len() <= 100 && middle.contains("\n[cut]\n") && middle.ends_with('\u{20ac}')
        );
        assert_eq!(cut("short", 2048), "short");
    }

    #[test]
    fn deadlines_are_timeouts_unless_the_work_names_a_category() {
        let of = |failure: Failure| error(&failure, Some(&Cause::Deadline))["category"].clone();
        assert_eq!(of(Failure::stopped("deadline")), "TIMEOUT");
        assert_eq!(of(Failure::from(std::fmt::Error)), "TIMEOUT");
        assert_eq!(of(Failure::new(Category::DataQuality, "x")), "DATA_QUALITY");
    }
}
