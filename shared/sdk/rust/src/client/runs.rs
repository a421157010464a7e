//! Runs.

use std::time::Duration;

use serde_json::{json, Value};

use super::download::Download;
use super::logs::LogStream;
use super::pages::Items;
use super::transport::{new_key, path, Call};
use super::{Client, Result};
use crate::models::{
    BulkAnswer, BulkCancelRequest, BulkLabelRequest, BulkRequest, CancelAnswer, ChildState,
    Explanation, LabelRequest, Plan, PlanJobRequest, RedeliverActionRequest, RetryAccepted,
    RetryRequest, RunAccepted, RunChild, RunChildren, RunDefinition, RunFilterKind,
    RunFilterTrigger, RunUpdate, RunUpdates, State, Task, TaskList, Time,
};

/// How long the server waits for a change of a run.
const POLL: Duration = Duration::from_secs(20);

/// Runs programs, and lists, explains, cancels and retries runs.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    pub(crate) client: &'a Client,
}

/// Which runs to list. An absent field selects all.
#[derive(Clone, Debug, Default)]
pub struct RunQuery {
    /// Runs in this state.
    pub state: Option<State>,
    /// Runs of this kind.
    pub kind: Option<RunFilterKind>,
    /// Runs of this job.
    pub job_id: Option<String>,
    /// Runs of this pool.
    pub pool: Option<String>,
    /// Runs of programs with this trigger.
    pub trigger: Option<RunFilterTrigger>,
    /// True for runs that were skipped, false for the others.
    pub skipped: Option<bool>,
    /// Runs with this failure.
    pub fault_code: Option<String>,
    /// Runs whose failure has this text in its message, in any case.
    pub error: Option<String>,
    /// Runs whose labels this selector selects, such as `team=data,env!=dev`.
    pub label: Option<String>,
    /// Runs created after this time.
    pub created_after: Option<Time>,
    /// Runs created before this time.
    pub created_before: Option<Time>,
    /// The number of runs on a page.
    pub limit: Option<u32>,
}

impl Runs<'_> {
    /// Runs a program, under an idempotency key of its own.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn create(&self, definition: &RunDefinition) -> Result<RunAccepted> {
        self.create_keyed(definition, &new_key()).await
    }

    /// Runs a program once for an idempotency key, also over a restart of the caller.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn create_keyed(&self, definition: &RunDefinition, key: &str) -> Result<RunAccepted> {
        self.client.post("/v1/runs", definition, Some(key)).await
    }

    /// Lists runs, newest first.
    pub fn list(&self, query: &RunQuery) -> Items<Task> {
        let (client, query) = (self.client.clone(), query.clone());
        Items::new(move |cursor| {
            let (client, query) = (client.clone(), query.clone());
            async move {
                let call = Call::get("/v1/runs".to_owned())
                    .query("state", query.state)
                    .query("kind", query.kind)
                    .query("jobId", query.job_id)
                    .query("pool", query.pool)
                    .query("trigger", query.trigger)
                    .query("skipped", query.skipped)
                    .query("faultCode", query.fault_code)
                    .query("error", query.error)
                    .query("label", query.label)
                    .query("createdAfter", query.created_after)
                    .query("createdBefore", query.created_before)
                    .query("limit", query.limit)
                    .query("cursor", cursor);
                let page: TaskList = client.transport.request(&call).await?.json()?;
                Ok((page.tasks, page.next_cursor))
            }
        })
    }

    /// Returns a run. The id is a run id or a task id.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn get(&self, run_id: &str) -> Result<Task> {
        self.client.get(path(&["v1", "runs", run_id])?).await
    }

    /// Explains why a run is in its state.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn explain(&self, run_id: &str) -> Result<Explanation> {
        self.client
            .get(path(&["v1", "runs", run_id, "explain"])?)
            .await
    }

    /// Explains a run without creating it.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn plan(&self, definition: &RunDefinition) -> Result<Plan> {
        self.client.post("/v1/runs:plan", definition, None).await
    }

    /// Explains a run of a stored job without creating it.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn plan_job(&self, request: &PlanJobRequest) -> Result<Plan> {
        self.client.post("/v1/runs:plan", request, None).await
    }

    /// Lists the updates of a run behind the one with the number `after`, oldest first.
    pub fn updates(&self, run_id: &str, after: i64) -> Items<RunUpdate> {
        let (client, run_id) = (self.client.clone(), run_id.to_owned());
        Items::new(move |place| {
            let (client, run_id) = (client.clone(), run_id.clone());
            async move {
                let after = place.unwrap_or_else(|| after.to_string());
                let call = Call::get(path(&["v1", "runs", &run_id, "updates"])?);
                let call = call.query("after", Some(after));
                let page: RunUpdates = client.transport.request(&call).await?.json()?;
                Ok((page.updates, page.next_after.map(|after| after.to_string())))
            }
        })
    }

    /// Lists the children of a run in the order of their items: all, or those in a state.
    pub fn children(&self, run_id: &str, state: Option<ChildState>) -> Items<RunChild> {
        let (client, run_id) = (self.client.clone(), run_id.to_owned());
        Items::new(move |place| {
            let (client, run_id, state) = (client.clone(), run_id.clone(), state.clone());
            async move {
                let call = Call::get(path(&["v1", "runs", &run_id, "children"])?);
                let call = call.query("state", state).query("cursor", place);
                let page: RunChildren = client.transport.request(&call).await?.json()?;
                Ok((page.children, page.next_cursor))
            }
        })
    }

    /// Requests the end of a run.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn cancel(&self, run_id: &str, reason: Option<&str>) -> Result<CancelAnswer> {
        let body = reason.map_or_else(|| json!({}), |reason| json!({"reason": reason}));
        let path = path(&["v1", "runs", run_id, "cancel"])?;
        self.client.post(&path, &body, None).await
    }

    /// Requests the end of a page of the runs that a filter selects.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn cancel_many(&self, request: &BulkCancelRequest) -> Result<BulkAnswer> {
        self.client.post("/v1/runs:cancel", request, None).await
    }

    /// Creates a new run of a run that has ended, under an idempotency key of its own.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn retry(&self, run_id: &str) -> Result<RetryAccepted> {
        self.retry_keyed(run_id, &new_key()).await
    }

    /// Creates a new run of a run that has ended once for an idempotency key.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn retry_keyed(&self, run_id: &str, key: &str) -> Result<RetryAccepted> {
        self.retry_with(run_id, &RetryRequest::default(), key).await
    }

    /// Creates a new run with changes once for an idempotency key: `only_failed` runs those children
    /// again that have not succeeded, `downstream` also the jobs that come after.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn retry_with(
        &self,
        run_id: &str,
        changes: &RetryRequest,
        key: &str,
    ) -> Result<RetryAccepted> {
        let path = path(&["v1", "runs", run_id, "retry"])?;
        self.client.post(&path, changes, Some(key)).await
    }

    /// Retries a page of the runs that a filter selects, each once for an idempotency key. Use the
    /// same key for all pages.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn retry_many(&self, request: &BulkRequest, key: &str) -> Result<BulkAnswer> {
        self.client.post("/v1/runs:retry", request, Some(key)).await
    }

    /// Keeps a run with its output and its logs until it is unpinned.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn pin(&self, run_id: &str) -> Result<Task> {
        let path = path(&["v1", "runs", run_id, "pin"])?;
        self.client.post(&path, &json!({}), None).await
    }

    /// Lets a pinned run expire.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn unpin(&self, run_id: &str) -> Result<Task> {
        let path = path(&["v1", "runs", run_id, "unpin"])?;
        self.client.post(&path, &json!({}), None).await
    }

    /// Sends a failed notification of a run again, or all.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn redeliver(&self, run_id: &str, request: &RedeliverActionRequest) -> Result<Task> {
        let path = path(&["v1", "runs", run_id, "redeliver"])?;
        self.client.post(&path, request, None).await
    }

    /// Changes the labels of a run; `None` removes one.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn label(&self, run_id: &str, request: &LabelRequest) -> Result<Task> {
        let path = path(&["v1", "runs", run_id])?;
        self.client.patch(&path, request).await
    }

    /// Changes the labels of a page of the runs that a filter selects.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn label_many(&self, request: &BulkLabelRequest) -> Result<BulkAnswer> {
        self.client.patch("/v1/runs", request).await
    }

    /// Waits until a run has ended and returns it; see [`Task::succeeded`].
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn wait(&self, run_id: &str) -> Result<Task> {
        let limit = self
            .client
            .transport
            .timeout
            .max(POLL + Duration::from_secs(15));
        loop {
            let run = self.get(run_id).await?;
            if run.state.is_terminal() {
                return Ok(run);
            }
            let call = Call::get(path(&["status", &run.task_id])?)
                .query("wait", Some(POLL.as_secs()))
                .timeout(limit);
            let _: Value = self.client.transport.request(&call).await?.json()?;
        }
    }

    /// Returns the output of the worker of the latest attempt.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn logs(&self, task_id: &str) -> Result<Vec<u8>> {
        let call = Call::get(path(&["v1", "tasks", task_id, "logs"])?).accept("*/*");
        Ok(self.client.transport.request(&call).await?.body)
    }

    /// Follows the output of the worker, also of later attempts, until the run ends. It
    /// continues after a break.
    pub fn follow_logs(&self, task_id: &str) -> LogStream {
        LogStream::new(self.client.clone(), task_id.to_owned())
    }

    /// Opens the file that the worker has stored.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn output(&self, task_id: &str) -> Result<Download> {
        Download::open(self.client.clone(), task_id).await
    }
}
