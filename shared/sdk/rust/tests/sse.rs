//! The table of byte splits that the SDKs of all languages share.
#![cfg(feature = "client")]

use base64::Engine as _;
use serde::Deserialize;
use sortie_worker::client::sse::{Decoder, Message};
use sortie_worker::client::Error;

#[derive(Deserialize)]
struct Case {
    name: String,
    chunks: Vec<String>,
    events: Vec<Want>,
    #[serde(rename = "lastEventId")]
    last_event_id: String,
    retry: Option<u64>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Want {
    id: String,
    event: String,
    data: String,
}

impl From<Message> for Want {
    fn from(m: Message) -> Self {
        Self {
            id: m.id,
            event: m.event,
            data: m.data,
        }
    }
}

impl Case {
    fn chunks(&self) -> Vec<Vec<u8>> {
        let decode = |chunk| {
            base64::engine::general_purpose::STANDARD
                .decode(chunk)
                .unwrap()
        };
        self.chunks.iter().map(decode).collect()
    }
}

fn cases() -> Vec<Case> {
    let folder = std::env::var("SORTIE_TESTDATA").unwrap_or_else(|_| "../testdata".to_owned());
    let text = std::fs::read_to_string(format!("{folder}/sse.json")).expect("sse.json");
    serde_json::from_str(&text).unwrap()
}

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Decoder, Vec<Want>) {
    let mut decoder = Decoder::new();
    let mut got = Vec::new();
    for chunk in chunks {
        got.extend(decoder.feed(chunk).unwrap().into_iter().map(Want::from));
    }
    (decoder, got)
}

#[test]
fn table() {
    let cases = cases();
    assert!(cases.len() > 10);
    for case in cases {
        let (decoder, got) = decode(case.chunks().iter().map(Vec::as_slice));
        assert_eq!(got, case.events, "{}", case.name);
        assert_eq!(decoder.last_event_id(), case.last_event_id, "{}", case.name);
        assert_eq!(decoder.retry(), case.retry, "{}", case.name);
    }
}

#[test]
fn each_split_gives_the_same() {
    for case in cases() {
        let content = case.chunks().concat();
        if content.len() > 1000 {
            continue;
        }
        for at in 0..content.len() {
            let (_, got) = decode([&content[..at], &content[at..]]);
            assert_eq!(got, case.events, "{} at {at}", case.name);
        }
    }
}

#[test]
fn memory_is_bounded() {
    let lines = format!("data: {}\n", "a".repeat(4000));
    let endless: [&[u8]; 2] = [&[b'x'; 1 << 20], lines.as_bytes()];
    for piece in endless {
        let mut decoder = Decoder::new();
        let pieces = (17 << 20) / piece.len();
        let error = (0..pieces).find_map(|_| decoder.feed(piece).err());
        assert!(
            matches!(error, Some(Error::Malformed(_))),
            "{:?}",
            &piece[..4]
        );
    }
}
