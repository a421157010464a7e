//! Why work must stop.

use std::time::Duration;

use super::calls::Answer;

const ABORT_GRACE: Duration = Duration::from_secs(1);
const DEADLINE_GRACE: Duration = Duration::from_secs(4);

/// Why work must stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A cancel was requested, with this reason.
    Cancelled(String),
    /// The process got SIGTERM, and no cancel request is known.
    Terminated,
    /// The control plane takes no more reports of the attempt.
    Aborted(&'static str),
    /// The time of the attempt is over.
    Deadline,
}

impl Cause {
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Cancelled(reason) => reason,
            Self::Terminated => "terminated",
            Self::Aborted(reason) => reason,
            Self::Deadline => "deadline",
        }
    }

    /// Returns how long the work has before the process ends. The rest of the grace period
    /// is for the report.
    pub(crate) fn grace(&self, grace: Duration) -> Duration {
        let work = grace.mul_f64(0.8);
        match self {
            Self::Aborted(_) => work.min(ABORT_GRACE),
            Self::Deadline => work.min(DEADLINE_GRACE),
            Self::Cancelled(_) | Self::Terminated => work,
        }
    }

    /// Returns why an answer ends the work; `None` if it does not.
    pub(crate) fn of(answer: &Answer) -> Option<Self> {
        match answer.status {
            410 => return Some(Self::Aborted("expired")),
            409 => {}
            _ => return None,
        }
        let said = answer.object().unwrap_or_default();
        let text = |name: &str| said.get(name).and_then(|value| value.as_str());
        if text("error") != Some("task_already_terminal") {
            return Some(Self::Aborted("mismatch"));
        }
        if text("state") == Some("CANCELLED") {
            return Some(Self::Cancelled("user_requested".to_owned()));
        }
        Some(Self::Aborted("ended"))
    }
}
