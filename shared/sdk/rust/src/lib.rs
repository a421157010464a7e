//! The Rust SDK of Sortie.
//!
//! # A worker
//!
//! Sortie starts a worker for one attempt at one task. [`run`] does the task and returns the
//! exit code of the process:
//!
//! ```no_run
//! use std::process::ExitCode;
//! use sortie_worker::{run, Output, Task};
//!
//! fn main() -> ExitCode {
//!     run(|task: Task| async move {
//!         for page in 1..=10 {
//!             task.check()?; // an error if the work must stop
//!             // the real work
//!             task.progress(f64::from(10 * page), &format!("page {page} of 10"));
//!         }
//!         task.output(Output::bytes("ten pages\n").content_type("text/plain")).await
//!     })
//! }
//! ```
//!
//! Heartbeats come from a thread with a runtime of its own, so work may block. Work that has
//! no place to ask whether it must stop belongs under `sortie-exec` instead.
//!
//! # Features
//!
#![cfg_attr(
    feature = "client",
    doc = "- `client`: [`client`], for runs and events."
)]
#![cfg_attr(
    not(feature = "client"),
    doc = "- `client`: the client for runs and events."
)]
#![cfg_attr(
    feature = "webhooks",
    doc = "- `webhooks`: [`webhooks`], their verification."
)]
#![cfg_attr(
    not(feature = "webhooks"),
    doc = "- `webhooks`: the verification of webhooks."
)]

#[cfg(feature = "client")]
pub mod client;
mod http;
#[cfg(any(feature = "client", feature = "webhooks"))]
pub mod models;
mod time;
#[cfg(feature = "webhooks")]
pub mod webhooks;
mod worker;

pub use tokio_util::sync::CancellationToken;
pub use worker::{run, Category, Failure, Output, Task, Worker, Writer};

/// The blocks of the README.
#[cfg(all(doctest, feature = "client", feature = "webhooks"))]
#[doc = include_str!("../README.md")]
struct Readme;
