//! The task as the work sees it.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::attempt::Attempt;
use super::failure::{Category, Failure};
use super::outbox::{Stream, Writer};
use super::transfer::{self, Output};

/// One attempt at a task. Clones are the same task, and its methods are safe for concurrent use.
#[derive(Clone)]
pub struct Task {
    pub(crate) attempt: Arc<Attempt>,
}

impl Task {
    /// Returns the id of the task.
    pub fn id(&self) -> &str {
        &self.attempt.envelope.task_id
    }

    /// Returns the id of the run.
    pub fn run_id(&self) -> &str {
        &self.attempt.envelope.run_id
    }

    /// Returns the number of the attempt, from 1.
    pub fn attempt(&self) -> u64 {
        self.attempt.envelope.attempt
    }

    /// Returns when the attempt is killed; `None` without a time limit.
    pub fn deadline(&self) -> Option<SystemTime> {
        self.attempt.envelope.deadline
    }

    /// Returns the name of this process in its calls.
    pub fn worker_id(&self) -> &str {
        &self.attempt.worker_id
    }

    /// Returns the W3C trace context of the attempt; may be empty.
    pub fn traceparent(&self) -> &str {
        &self.attempt.envelope.traceparent
    }

    /// Returns the members of the envelope, without its secrets.
    pub fn envelope(&self) -> &Value {
        &self.attempt.envelope.members
    }

    /// Returns a token that is cancelled when the work must stop: for a cancel request,
    /// SIGTERM, the deadline, or because another attempt has the task.
    ///
    /// The token is a child: cancelling it does not stop the task.
    pub fn cancelled(&self) -> CancellationToken {
        self.attempt.stopped.child_token()
    }

    /// Returns whether the work must stop. It makes no call, so it fits into an inner loop.
    pub fn is_cancelled(&self) -> bool {
        self.attempt.stopped.is_cancelled()
    }

    /// Returns why the work must stop: the reason of the cancel request, `terminated`,
    /// `deadline`, or what happened to the attempt. `None` while it need not.
    pub fn cancel_reason(&self) -> Option<String> {
        let state = self.attempt.state();
        state.stop.as_ref().map(|cause| cause.reason().to_owned())
    }

    /// Returns an error if the work must stop.
    ///
    /// # Errors
    ///
    /// A [`Failure`] for which [`Failure::is_stop`] is true.
    pub fn check(&self) -> Result<(), Failure> {
        match self.cancel_reason() {
            Some(reason) => Err(Failure::stopped(reason)),
            None => Ok(()),
        }
    }

    /// Sets what heartbeats report: 0 to 100, NaN for unknown, and a message. It makes no call.
    pub fn progress(&self, percent: f64, message: &str) {
        self.attempt.set_progress(percent, message);
    }

    /// Names what the work does now. A cancelled task reports it.
    pub fn phase(&self, name: impl Into<String>) {
        self.attempt.state().phase = name.into();
    }

    /// Sets what a cancelled task reports of its work, such as its last checkpoint.
    pub fn partial(&self, progress: impl Into<Value>) {
        self.attempt.state().partial = Some(progress.into());
    }

    /// Sets a figure of the work, which the report has beside those of the process.
    pub fn metric(&self, name: impl Into<String>, value: impl Into<Value>) {
        self.attempt
            .state()
            .metrics
            .insert(name.into(), value.into());
    }

    /// Returns the standard input of the job, at most 8 MiB; empty without one.
    ///
    /// # Errors
    ///
    /// [`Category::Infrastructure`] if it cannot be read, and that of [`Task::check`].
    pub async fn input(&self) -> Result<Vec<u8>, Failure> {
        self.on_calls(transfer::input(self.attempt.clone())).await
    }

    /// Stores the output of the task. The last one counts.
    ///
    /// # Errors
    ///
    /// [`Category::Infrastructure`] if it cannot be stored, [`Category::Configuration`] if
    /// the task has no place for one, and that of [`Task::check`].
    pub async fn output(&self, output: Output) -> Result<(), Failure> {
        self.on_calls(transfer::output(self.attempt.clone(), output))
            .await
    }

    /// Returns the standard output of the task. With
    /// [`Worker::send_output`](crate::Worker::send_output), clients read it while the work runs.
    pub fn stdout(&self) -> Writer {
        self.writer(Stream::Stdout)
    }

    /// Returns the standard error of the task, like [`Task::stdout`].
    pub fn stderr(&self) -> Writer {
        self.writer(Stream::Stderr)
    }

    fn writer(&self, stream: Stream) -> Writer {
        let outbox = self.attempt.outbox.clone();
        Writer { outbox, stream }
    }

    /// Runs a transfer beside the heartbeats. Dropping the future ends the transfer.
    async fn on_calls<T: Send + 'static>(
        &self,
        transfer: impl std::future::Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let dropped = CancellationToken::new();
        let _guard = dropped.clone().drop_guard();
        let running = self.attempt.handle.spawn(async move {
            tokio::select! {
                () = dropped.cancelled() => None,
                done = transfer => Some(done),
            }
        });
        let gone = || Failure::new(Category::Infrastructure, "the attempt has ended");
        running.await.ok().flatten().unwrap_or_else(|| Err(gone()))
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("id", &self.id())
            .field("run_id", &self.run_id())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
