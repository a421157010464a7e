//! Runs of stored jobs.

use reqwest::Method;

use super::transport::{new_key, path, Call};
use super::{Client, Result};
use crate::models::{CloudEvent, EventReceipts, JobRunRequest, RunAccepted};

/// Starts runs of stored jobs.
#[derive(Clone, Copy, Debug)]
pub struct Jobs<'a> {
    pub(crate) client: &'a Client,
}

impl Jobs<'_> {
    /// Runs a job, under an idempotency key of its own. With `items` or `items_from` the run has a
    /// child for each item.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn run(&self, job_id: &str, request: &JobRunRequest) -> Result<RunAccepted> {
        self.run_keyed(job_id, request, &new_key()).await
    }

    /// Runs a job once for an idempotency key, also over a restart of the caller.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn run_keyed(
        &self,
        job_id: &str,
        request: &JobRunRequest,
        key: &str,
    ) -> Result<RunAccepted> {
        let path = path(&["v1", "jobs", job_id, "runs"])?;
        self.client.post(&path, request, Some(key)).await
    }

    /// Starts a run for each event, at most 100. A repeated event has its run, so the request is
    /// repeated after a failure.
    ///
    /// # Errors
    ///
    /// Those of [`Client::call`].
    pub async fn send_events(&self, job_id: &str, events: &[CloudEvent]) -> Result<EventReceipts> {
        let path = path(&["v1", "jobs", job_id, "events"])?;
        let call = Call::new(Method::POST, path)
            .json(&events)?
            .content_type("application/cloudevents-batch+json")
            .idempotent();
        self.client.transport.request(&call).await?.json()
    }
}
