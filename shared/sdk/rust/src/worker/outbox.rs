//! The output of the work, which clients read while it runs.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{json, Value};
use tokio::sync::{Mutex as Turn, Notify};
use tokio::time::{sleep, timeout, Instant};
use tokio_util::sync::CancellationToken;

use super::attempt::Attempt;
use super::calls::{Answer, FIRST_DELAY, MOST_DELAY};
use crate::http;

const CHUNK: usize = 24_000; // less than 32 KiB in base64
const MOST_HELD: usize = 768 << 10;
/// The beginning of the output is sent early.
const EARLY: usize = 256 << 10;
const EARLY_TOTAL: usize = 1 << 20;
const FOLLOWED: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(30);
const GATHER: Duration = Duration::from_millis(100);
const FLUSH: Duration = Duration::from_secs(30);
/// In each interval, once much was sent and no client follows.
const IDLE_CHUNKS: usize = 4;

/// One of the two streams of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

struct Chunk {
    stream: Stream,
    data: Vec<u8>,
    since: Instant,
}

#[derive(Default)]
struct Held {
    pending: VecDeque<Chunk>,
    size: usize,
    taken: usize,
    /// Bytes that were dropped from stdout and stderr.
    missing: [usize; 2],
    closed: bool,
}

/// Holds output until it is sent.
///
/// Its memory is bounded: output that does not fit replaces the oldest, and a line says how
/// many bytes are missing. A write never waits for a call.
pub(crate) struct Outbox {
    held: Mutex<Held>,
    added: Notify,
    /// Is cancelled when the rest is flushed.
    stopped: CancellationToken,
    sending: Turn<Sending>,
}

/// What the sender knows. One task sends at a time.
#[derive(Default)]
struct Sending {
    /// May have been received.
    unsent: Option<Chunk>,
    sent: u64,
    followed: bool,
    answered: bool,
    off: bool,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self {
            held: Mutex::default(),
            added: Notify::new(),
            stopped: CancellationToken::new(),
            sending: Turn::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Appends output. It is dropped after close.
    pub(crate) fn add(&self, stream: Stream, mut data: &[u8]) {
        let mut held = self.held();
        if held.closed {
            return;
        }
        while !data.is_empty() {
            let room = match held.pending.back() {
                Some(last) if last.stream == stream => CHUNK.saturating_sub(last.data.len()),
                _ => 0,
            };
            if room == 0 {
                let (data, since) = (Vec::new(), Instant::now());
                held.pending.push_back(Chunk {
                    stream,
                    data,
                    since,
                });
                continue;
            }
            let (now, rest) = data.split_at(room.min(data.len()));
            if let Some(last) = held.pending.back_mut() {
                last.data.extend_from_slice(now);
            }
            held.size += now.len();
            data = rest;
            while held.size > MOST_HELD {
                let Some(oldest) = held.pending.pop_front() else {
                    break;
                };
                held.size -= oldest.data.len();
                held.missing[oldest.stream as usize] += oldest.data.len();
            }
        }
        drop(held);
        self.added.notify_one();
    }

    /// Removes the oldest output.
    fn take(&self) -> Option<Chunk> {
        let mut held = self.held();
        let mut chunk = match held.pending.pop_front() {
            Some(chunk) => chunk,
            None => {
                let streams = [Stream::Stdout, Stream::Stderr];
                let stream = streams
                    .into_iter()
                    .find(|s| held.missing[*s as usize] > 0)?;
                Chunk {
                    stream,
                    data: Vec::new(),
                    since: Instant::now(),
                }
            }
        };
        held.size -= chunk.data.len();
        held.taken += chunk.data.len();
        let missing = std::mem::take(&mut held.missing[chunk.stream as usize]);
        if missing > 0 {
            let line = format!("\n[{missing} bytes are cut out here]\n");
            chunk.data.splice(0..0, line.into_bytes());
        }
        Some(chunk)
    }

    fn is_empty(&self) -> bool {
        let held = self.held();
        held.pending.is_empty() && held.missing == [0, 0]
    }

    /// Returns whether there is so much of the early output that it is sent at once.
    fn hurries(&self) -> bool {
        let held = self.held();
        held.size >= EARLY && held.taken < EARLY_TOTAL
    }

    fn sent_much(&self) -> bool {
        self.held().taken >= EARLY_TOTAL
    }

    /// Drops the remaining output, accepts no more, and returns the number of dropped bytes.
    pub(crate) fn close(&self) -> usize {
        let mut held = self.held();
        let lost = held.size + held.missing.iter().sum::<usize>();
        *held = Held {
            closed: true,
            ..Held::default()
        };
        lost
    }

    /// Waits for output.
    async fn filled(&self) {
        while self.is_empty() {
            self.added.notified().await;
        }
    }

    /// Waits until a delay is over, or there is much early output.
    async fn gathered(&self, delay: Duration) {
        let _ = timeout(delay, async {
            while !self.hurries() {
                self.added.notified().await;
            }
        })
        .await;
    }
}

/// Sends the output in order until it is flushed.
pub(crate) async fn send(attempt: Arc<Attempt>, outbox: Arc<Outbox>) {
    let sending = async {
        let mut failures = 0;
        let mut sent_at = Instant::now() - IDLE;
        loop {
            let mut delay = FOLLOWED;
            {
                let state = outbox.sending.lock().await;
                if state.off {
                    return;
                }
                if state.unsent.is_none() {
                    outbox.filled().await;
                }
                let since = sent_at.elapsed();
                if state.followed {
                    delay = FOLLOWED.saturating_sub(since).max(GATHER);
                } else if state.answered {
                    delay = IDLE.saturating_sub(since).max(FOLLOWED);
                }
            }
            if failures > 0 {
                sleep(delay.max(http::backoff(failures, FIRST_DELAY, MOST_DELAY))).await;
            } else {
                outbox.gathered(delay).await;
            }
            sent_at = Instant::now();
            let again = send_all(&attempt, &outbox, false).await.is_some();
            failures = if again { failures + 1 } else { 0 };
        }
    };
    tokio::select! {
        () = outbox.stopped.cancelled() => {}
        () = sending => {}
    }
}

/// Sends what is left and accepts no more. Returns the number of lost bytes.
pub(crate) async fn flush(attempt: &Attempt, outbox: &Outbox) -> usize {
    outbox.stopped.cancel();
    let stopping = attempt.stopped.is_cancelled();
    let limit = if stopping {
        FLUSH.min(attempt.envelope.grace / 8)
    } else {
        FLUSH
    };
    let _ = timeout(limit, async {
        let mut failures = 0;
        while send_all(attempt, outbox, true).await.is_some() {
            sleep(http::backoff(failures, FIRST_DELAY, MOST_DELAY)).await;
            failures += 1;
        }
    })
    .await;
    let lost = outbox.close();
    let unsent = outbox.sending.lock().await.unsent.take();
    lost + unsent.map_or(0, |chunk| chunk.data.len())
}

/// Sends what there is. Returns the answer that asks for a repetition.
async fn send_all(attempt: &Attempt, outbox: &Outbox, all: bool) -> Option<Answer> {
    let mut state = outbox.sending.lock().await;
    let mut count = 0;
    while !state.off {
        if !all && count >= IDLE_CHUNKS && !state.followed && outbox.sent_much() {
            return None;
        }
        if state.unsent.is_none() {
            state.unsent = outbox.take();
        }
        let chunk = state.unsent.as_ref()?;
        let answer = send_chunk(attempt, chunk, state.sent + 1).await;
        if answer.ok() {
            let Some(said) = answer.object() else {
                return Some(Answer::failed("malformed answer"));
            };
            state.answered = true;
            state.followed = said.get("followed") == Some(&Value::Bool(true));
            state.unsent = None;
            state.sent += 1;
            count += 1;
            if said.get("shouldCancel") == Some(&Value::Bool(true)) {
                attempt.cancel(said.get("cancelReason"));
            }
        } else if answer.retryable() {
            return Some(answer);
        } else {
            state.off = true;
            refused(attempt, &answer);
        }
    }
    None
}

async fn send_chunk(attempt: &Attempt, chunk: &Chunk, sequence: u64) -> Answer {
    let age = u64::try_from(chunk.since.elapsed().as_millis()).unwrap_or(u64::MAX);
    let fields = json!({
        "stream": chunk.stream.name(),
        "sequence": sequence,
        "data": base64::engine::general_purpose::STANDARD.encode(&chunk.data),
        "ageMs": age.saturating_add(1),
    });
    attempt.call("logs", fields).await
}

fn refused(attempt: &Attempt, answer: &Answer) {
    let said = answer.object().unwrap_or_default();
    let error = said.get("error").and_then(Value::as_str);
    let of_sequence = matches!(error, Some("sequence_gap" | "sequence_conflict"));
    if matches!(answer.status, 409 | 410) && !of_sequence {
        attempt.refused(answer);
    } else {
        (attempt.log)(&format!("the control plane does not take output: {answer}"));
    }
}

/// Writes to one stream of the output of a task. A write never waits for the network.
///
/// Without [`Worker::send_output`](crate::Worker::send_output) it writes to the stream of
/// the process.
#[derive(Clone)]
pub struct Writer {
    pub(crate) outbox: Option<Arc<Outbox>>,
    pub(crate) stream: Stream,
}

impl io::Write for Writer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match (&self.outbox, self.stream) {
            (Some(outbox), stream) => outbox.add(stream, data),
            (None, Stream::Stdout) => return io::stdout().write(data),
            (None, Stream::Stderr) => return io::stderr().write(data),
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match (&self.outbox, self.stream) {
            (Some(_), _) => Ok(()),
            (None, Stream::Stdout) => io::stdout().flush(),
            (None, Stream::Stderr) => io::stderr().flush(),
        }
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writer({})", self.stream.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_the_loss_is_named() {
        let outbox = Outbox::new();
        let line = [b'x'; 1000];
        for _ in 0..3000 {
            outbox.add(Stream::Stdout, &line);
        }
        assert!(outbox.held().size <= MOST_HELD);
        let first = outbox.take().unwrap();
        let text = String::from_utf8(first.data).unwrap();
        assert!(text.starts_with("\n["), "{}", &text[..40]);
        let missing: usize = text[2..].split(' ').next().unwrap().parse().unwrap();
        let mut size = text.len() - format!("\n[{missing} bytes are cut out here]\n").len();
        while let Some(chunk) = outbox.take() {
            assert!(chunk.data.len() <= CHUNK);
            size += chunk.data.len();
        }
        assert_eq!(size + missing, 3_000_000);
    }

    #[test]
    fn streams_are_kept_apart_and_in_order() {
        let outbox = Outbox::new();
        outbox.add(Stream::Stdout, b"a");
        outbox.add(Stream::Stdout, b"b");
        outbox.add(Stream::Stderr, b"c");
        outbox.add(Stream::Stdout, b"d");
        let mut got = Vec::new();
        while let Some(chunk) = outbox.take() {
            got.push((chunk.stream.name(), chunk.data));
        }
        let want = [
            ("stdout", b"ab".to_vec()),
            ("stderr", b"c".to_vec()),
            ("stdout", b"d".to_vec()),
        ];
        assert_eq!(got, want);
        assert_eq!(outbox.close(), 0);
        outbox.add(Stream::Stdout, b"late");
        assert!(outbox.take().is_none());
    }
}
