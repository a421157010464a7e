//! The whole process of a worker.

mod attempt;
mod beats;
mod calls;
mod cause;
mod envelope;
mod failure;
mod outbox;
mod report;
mod task;
mod transfer;
mod usage;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{mpsc, Arc};
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Runtime};

use attempt::{Attempt, Start};
use beats::Terminations;
use calls::Log;
use envelope::Envelope;
use report::End;

pub use failure::{Category, Failure};
pub use outbox::Writer;
pub use task::Task;
pub use transfer::Output;

const EXIT_FAILED: u8 = 1;
const EXIT_NO_TASK: u8 = 2;
const EXIT_TERMINATED: u8 = 128 + 15;

/// Does the task of this process and reports how it ended. The same as
/// [`Worker::run`] of [`Worker::new`].
pub fn run<W, F>(work: W) -> ExitCode
where
    W: FnOnce(Task) -> F,
    F: Future<Output = Result<(), Failure>>,
{
    Worker::new().run(work)
}

/// A worker with settings.
#[must_use]
pub struct Worker {
    worker_id: Option<String>,
    send_output: bool,
    sigterm: bool,
    log: Arc<Log>,
}

impl Default for Worker {
    fn default() -> Self {
        Self::new()
    }
}

impl Worker {
    /// Returns a worker with the default settings.
    pub fn new() -> Self {
        Self {
            worker_id: None,
            send_output: false,
            sigterm: true,
            log: Arc::new(|line| say(&format!("sortie: {line}"))),
        }
    }

    /// Sets the name of this process in its calls. It must differ between processes. The
    /// default is the host and a random part.
    pub fn worker_id(mut self, id: impl Into<String>) -> Self {
        self.worker_id = Some(id.into());
        self
    }

    /// Sends what the work writes to [`Task::stdout`] and [`Task::stderr`] while it runs.
    pub fn send_output(mut self, send: bool) -> Self {
        self.send_output = send;
        self
    }

    /// Sets whether SIGTERM stops the work; by default it does. The handler stays installed.
    pub fn handle_sigterm(mut self, handle: bool) -> Self {
        self.sigterm = handle;
        self
    }

    /// Sets where lines about failed calls go; by default to the standard error.
    pub fn log(mut self, log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.log = Arc::new(move |line| {
            // A panic must not end the heartbeats.
            let _ = std::panic::catch_unwind(AssertUnwindSafe(|| log(line)));
        });
        self
    }

    /// Does the task of this process in a multi-threaded runtime of its own, and reports how
    /// it ended. Call it from `main`, before other threads start: it changes the environment.
    ///
    /// `Ok` is SUCCEEDED. After a cancel request every error is CANCELLED. Other errors, and
    /// panics, are FAILED with their [`Category`].
    ///
    /// Heartbeats come from a thread of their own, also while the work blocks its runtime. If
    /// the work does not end within the grace period after it must stop, the result is
    /// reported without it, and the process ends.
    ///
    /// The exit code is 0 for success, 1 for a failure or a cancel, 2 without a task and 143
    /// after SIGTERM.
    pub fn run<W, F>(self, work: W) -> ExitCode
    where
        W: FnOnce(Task) -> F,
        F: Future<Output = Result<(), Failure>>,
    {
        let envelope = match take() {
            Ok(envelope) => envelope,
            Err(code) => return code,
        };
        match Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => {
                let code = self.work(envelope, &runtime, work);
                runtime.shutdown_background(); // work that blocks a thread does not delay the end
                code
            }
            Err(error) => {
                say(&format!("cannot start a runtime: {error}"));
                ExitCode::from(EXIT_FAILED)
            }
        }
    }

    /// Does the same as [`Worker::run`] in a runtime of the caller. It must not be called
    /// within a runtime.
    pub fn run_on<W, F>(self, runtime: &Runtime, work: W) -> ExitCode
    where
        W: FnOnce(Task) -> F,
        F: Future<Output = Result<(), Failure>>,
    {
        match take() {
            Ok(envelope) => self.work(envelope, runtime, work),
            Err(code) => code,
        }
    }

    fn work<W, F>(self, envelope: Envelope, runtime: &Runtime, work: W) -> ExitCode
    where
        W: FnOnce(Task) -> F,
        F: Future<Output = Result<(), Failure>>,
    {
        let attempt = match self.start(envelope) {
            Ok(attempt) => attempt,
            Err((line, code)) => {
                say(&line);
                return ExitCode::from(code);
            }
        };
        let task = Task {
            attempt: attempt.clone(),
        };
        let work = CatchUnwind(Box::pin(async move { work(task).await }));
        let failure = runtime.block_on(work).err();
        if let Some(failure) = failure.as_ref().filter(|failure| !failure.is_stop()) {
            (attempt.log)(&format!("the work failed: {failure}"));
        }
        finish(&attempt, failure)
    }

    /// Starts the thread of the calls, and the attempt.
    fn start(self, envelope: Envelope) -> Result<Arc<Attempt>, (String, u8)> {
        let (started, answer) = mpsc::sync_channel(1);
        let spawned = std::thread::Builder::new()
            .name("sortie-heartbeats".to_owned())
            .spawn(move || {
                match Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime.block_on(self.serve(envelope, &started)),
                    Err(error) => {
                        let line = format!("cannot start a runtime: {error}");
                        let _ = started.send(Err((line, EXIT_FAILED)));
                    }
                };
            });
        if let Err(error) = spawned {
            return Err((format!("cannot start a thread: {error}"), EXIT_FAILED));
        }
        let gone = |_| ("the thread of the heartbeats ended".to_owned(), EXIT_FAILED);
        answer.recv().map_err(gone)?
    }

    /// Makes all calls until the attempt ends.
    async fn serve(
        self,
        envelope: Envelope,
        started: &mpsc::SyncSender<Result<Arc<Attempt>, (String, u8)>>,
    ) {
        let http = match crate::http::client() {
            Ok(http) => http,
            Err(error) => {
                let _ = started.send(Err((error, EXIT_FAILED)));
                return;
            }
        };
        let terminations = Terminations::install(self.sigterm);
        let attempt = Arc::new(Attempt::new(
            envelope,
            self.worker_id.unwrap_or_else(attempt::new_worker_id),
            self.log,
            http,
            tokio::runtime::Handle::current(),
            (terminations.installed(), self.send_output),
        ));
        tokio::spawn(beats::watch(attempt.clone(), terminations));
        match attempt.start().await {
            Ok(()) => {}
            Err(Start::Refused(answer)) => {
                let line = format!("started was not accepted: {answer}");
                let _ = started.send(Err((line, EXIT_FAILED)));
                return;
            }
            Err(Start::Stopped(cause)) => {
                let terminated = cause == cause::Cause::Terminated;
                let code = if terminated {
                    EXIT_TERMINATED
                } else {
                    EXIT_FAILED
                };
                let line = format!("the task was stopped: {}", cause.reason());
                let _ = started.send(Err((line, code)));
                return;
            }
        }
        tokio::spawn(beats::send_heartbeats(attempt.clone()));
        if let Some(outbox) = attempt.outbox.clone() {
            tokio::spawn(outbox::send(attempt.clone(), outbox));
        }
        let _ = started.send(Ok(attempt.clone()));
        attempt.ended.cancelled().await;
    }
}

/// Writes a line to the standard error, which may be closed.
fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Reads the envelope, or returns the exit code.
fn take() -> Result<Envelope, ExitCode> {
    let envelope = if tokio::runtime::Handle::try_current().is_ok() {
        Err("a worker must not run within another runtime".to_owned())
    } else {
        envelope::take()
    };
    envelope.map_err(|error| {
        say(&error);
        ExitCode::from(EXIT_NO_TASK)
    })
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("worker_id", &self.worker_id)
            .field("send_output", &self.send_output)
            .field("handle_sigterm", &self.sigterm)
            .finish_non_exhaustive()
    }
}

/// Reports on the thread of the calls.
fn finish(attempt: &Arc<Attempt>, failure: Option<Failure>) -> ExitCode {
    let failed = failure.is_some();
    let (report, end) = mpsc::sync_channel(1);
    let reporting = attempt.clone();
    attempt.handle.spawn(async move {
        let _ = report.send(reporting.finish(failure).await);
    });
    let code = match end.recv() {
        Ok(End::Accepted(state)) => {
            (attempt.log)(&format!("the task ended: {state}"));
            if failed {
                EXIT_FAILED
            } else {
                0
            }
        }
        Ok(End::Terminated) => EXIT_TERMINATED,
        Ok(End::Aborted(reason)) => {
            (attempt.log)(&format!(
                "nothing was reported, the attempt is lost: {reason}"
            ));
            EXIT_FAILED
        }
        Ok(End::Undelivered(error)) => {
            (attempt.log)(&error);
            EXIT_FAILED
        }
        Err(_) => EXIT_FAILED,
    };
    ExitCode::from(code)
}

/// Makes a failure of a panic.
struct CatchUnwind<F>(Pin<Box<F>>);

impl<F: Future<Output = Result<(), Failure>>> Future for CatchUnwind<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let work = self.0.as_mut();
        std::panic::catch_unwind(AssertUnwindSafe(|| work.poll(context)))
            .unwrap_or_else(|payload| Poll::Ready(Err(Failure::panicked(&*payload))))
    }
}
