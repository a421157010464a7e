//! A decoder of Server-Sent Events that takes bytes in any pieces.

use std::mem::take;

use super::error::Error;
use super::Result;

const MOST_BYTES: usize = 16 << 20;

/// An event: the last event id at that time, its type and its data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The last event id.
    pub id: String,
    /// The type; `message` where the stream has none.
    pub event: String,
    /// The lines of data.
    pub data: String,
}

/// Decodes one stream, as the WHATWG standard defines it.
///
/// ```
/// use sortie_worker::client::sse::Decoder;
///
/// let mut decoder = Decoder::new();
/// assert!(decoder.feed(b"id: 7\ndata: hel").unwrap().is_empty());
/// let messages = decoder.feed(b"lo\n\n").unwrap();
/// assert_eq!((messages[0].id.as_str(), messages[0].data.as_str()), ("7", "hello"));
/// ```
#[derive(Debug, Default)]
pub struct Decoder {
    line: Vec<u8>,
    begun: bool,
    after_cr: bool,
    id: String,
    event: String,
    data: String,
    has_data: bool,
    last_event_id: String,
    retry: Option<u64>,
}

impl Decoder {
    /// Returns a decoder at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the id of the last complete event, also of one without data.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// Returns the last reconnection time of the stream in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Returns the events that the bytes complete.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for an event of more than 16 MiB.
    pub fn feed(&mut self, mut content: &[u8]) -> Result<Vec<Message>> {
        let mut messages = Vec::new();
        if self.after_cr && !content.is_empty() {
            self.after_cr = false;
            content = content.strip_prefix(b"\n").unwrap_or(content);
        }
        while let Some(at) = content.iter().position(|b| matches!(b, b'\r' | b'\n')) {
            self.append(&content[..at])?;
            let end = &content[at..];
            content = &end[1..];
            if end.starts_with(b"\r\n") {
                content = &end[2..];
            } else if end == b"\r" {
                self.after_cr = true;
            }
            let line = take(&mut self.line);
            messages.extend(self.end_line(&line));
        }
        self.append(content)?;
        Ok(messages)
    }

    fn append(&mut self, part: &[u8]) -> Result<()> {
        if self.line.len() + self.data.len() + part.len() > MOST_BYTES {
            let problem = "an event of the stream is too large";
            return Err(Error::Malformed(problem.to_owned()));
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self, mut line: &[u8]) -> Option<Message> {
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let line = String::from_utf8_lossy(line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            "event" => value.clone_into(&mut self.event),
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            "retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                self.retry = value.parse().ok().or(self.retry);
            }
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Message> {
        self.id.clone_into(&mut self.last_event_id);
        let event = take(&mut self.event);
        let data = take(&mut self.data);
        take(&mut self.has_data).then(|| Message {
            id: self.id.clone(),
            event: if event.is_empty() {
                "message".to_owned()
            } else {
                event
            },
            data,
        })
    }
}
