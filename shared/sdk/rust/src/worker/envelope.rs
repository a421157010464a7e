//! The task envelope: what a worker is started with.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use crate::http::{is_token, is_url};
use crate::time;

const VARIABLE: &str = "TASK_ENVELOPE";
const MOST_BYTES: usize = 1 << 20;
const MOST_MS: f64 = 24.0 * 3600.0 * 1000.0;

/// Where to put one object. The URL is a secret, so there is no `Debug`.
#[derive(Clone, PartialEq)]
pub(crate) struct Upload {
    pub(crate) url: String,
    pub(crate) key: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// Where to get one object.
#[derive(Clone)]
pub(crate) struct Download {
    pub(crate) url: String,
    pub(crate) size: Option<u64>,
}

/// A valid envelope, with the defaults of the contract.
pub(crate) struct Envelope {
    pub(crate) task_id: String,
    pub(crate) run_id: String,
    pub(crate) attempt: u64,
    pub(crate) base: String,
    pub(crate) token: String,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) deadline: Option<SystemTime>,
    pub(crate) output: Option<Upload>,
    pub(crate) input: Option<Download>,
    pub(crate) file_name: String,
    pub(crate) content_type: String,
    pub(crate) traceparent: String,
    /// The members without secrets.
    pub(crate) members: Value,
}

/// Reads the envelope and removes it from the environment, so that no child has the token.
pub(crate) fn take() -> Result<Envelope, String> {
    let text = std::env::var_os(VARIABLE).unwrap_or_default();
    std::env::remove_var(VARIABLE);
    std::env::remove_var("CALLBACK_URL"); // has a token, too
    if text.is_empty() {
        return Err(format!("no task: {VARIABLE} is not set"));
    }
    let text = text
        .into_string()
        .map_err(|_| format!("invalid {VARIABLE}: not UTF-8"))?;
    parse(&text)
}

/// Returns a target of uploads; `None` if the value is not a usable one.
pub(crate) fn upload(value: Option<&Value>) -> Option<Upload> {
    let object = value?.as_object()?;
    let url = object.get("url")?.as_str().filter(|url| is_url(url))?;
    let headers = object.get("headers").and_then(Value::as_object);
    Some(Upload {
        url: url.to_owned(),
        key: text(object, "key"),
        headers: headers
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect(),
    })
}

/// Reads an envelope. The error names each problem and contains no value.
pub(crate) fn parse(source: &str) -> Result<Envelope, String> {
    let invalid = |problem: &str| format!("invalid {VARIABLE}: {problem}");
    if source.len() > MOST_BYTES {
        return Err(invalid("larger than 1 MiB"));
    }
    let value: Value = serde_json::from_str(source).map_err(|error| {
        invalid(&format!(
            "not JSON at line {} column {}",
            error.line(),
            error.column()
        ))
    })?;
    let Value::Object(mut members) = value else {
        return Err(invalid("want an object"));
    };
    let mut reader = Reader {
        members: &members,
        problems: Vec::new(),
    };
    let envelope = reader.envelope();
    let problems = reader.problems;
    let Some(mut envelope) = envelope.filter(|_| problems.is_empty()) else {
        return Err(invalid(&problems.join("; ")));
    };
    for secret in ["taskToken", "output", "log", "program"] {
        members.remove(secret);
    }
    envelope.members = Value::Object(members);
    Ok(envelope)
}

struct Reader<'a> {
    members: &'a Map<String, Value>,
    problems: Vec<String>,
}

impl<'a> Reader<'a> {
    fn envelope(&mut self) -> Option<Envelope> {
        let task_id = self.required("taskId", is_task_id, "missing or malformed taskId");
        let attempt = self.number("attempt").filter(|n| *n >= 1.0);
        if attempt.is_none() {
            self.problems.push("attempt: want a number from 1".into());
        }
        let want = "callbackBaseUrl: want an http or https URL";
        let base = self.required("callbackBaseUrl", is_url, want);
        let token = self.required("taskToken", is_token, "missing or malformed taskToken");
        let interval = self.milliseconds("heartbeatIntervalMs", 30_000.0);
        let timeout = self.milliseconds("heartbeatTimeoutMs", 90_000.0);
        let grace = self.milliseconds("cancelGracePeriodMs", 30_000.0);
        let deadline = self.deadline();
        let output = self.part(Some(self.members), "output", "output");
        self.part_url(output, "output");
        let log = self.part(Some(self.members), "log", "log");
        self.part_url(log, "log");
        let program = self.part(Some(self.members), "program", "program");
        let input = self.part(program, "input", "program.input");
        self.part_url(input, "program.input");
        let result = self.part(program, "output", "program.output");
        let resources = self.part(Some(self.members), "resources", "resources");
        let limit = resources.and_then(|r| r.get("timeoutMs")?.as_f64());
        let task_id = task_id?;
        Some(Envelope {
            run_id: match text(self.members, "runId") {
                run_id if run_id.is_empty() => task_id.clone(),
                run_id => run_id,
            },
            task_id,
            attempt: attempt? as u64,
            base: base?.trim_end_matches('/').to_owned(),
            token: token?,
            interval,
            timeout,
            grace,
            time_limit: limit
                .filter(|ms| *ms > 0.0)
                .and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok()),
            deadline,
            output: upload(self.members.get("output")),
            input: input.and_then(|input| {
                Some(Download {
                    url: input.get("url")?.as_str()?.to_owned(),
                    size: input.get("size").and_then(Value::as_u64),
                })
            }),
            file_name: result.map(|r| text(r, "fileName")).unwrap_or_default(),
            content_type: result.map(|r| text(r, "contentType")).unwrap_or_default(),
            traceparent: text(self.members, "traceparent"),
            members: Value::Null,
        })
    }

    fn required(&mut self, name: &str, valid: fn(&str) -> bool, problem: &str) -> Option<String> {
        let value = self.members.get(name).and_then(Value::as_str);
        let value = value.filter(|value| valid(value));
        if value.is_none() {
            self.problems.push(problem.to_owned());
        }
        value.map(str::to_owned)
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.members.get(name)?.as_f64()
    }

    fn milliseconds(&mut self, name: &str, default: f64) -> Duration {
        let mut ms = default;
        match self.members.get(name) {
            None | Some(Value::Null) => {}
            Some(value) => match value.as_f64() {
                Some(0.0) => {}
                Some(given) if (1.0..=MOST_MS).contains(&given) => ms = given,
                _ => self
                    .problems
                    .push(format!("{name}: want 1 to {MOST_MS} milliseconds")),
            },
        }
        Duration::from_secs_f64(ms / 1000.0)
    }

    fn deadline(&mut self) -> Option<SystemTime> {
        let value = self.members.get("deadline").filter(|v| !v.is_null())?;
        let at = value.as_str().and_then(time::parse);
        if at.is_none() {
            self.problems.push("deadline: want an RFC 3339 time".into());
        }
        at
    }

    fn part(
        &mut self,
        of: Option<&'a Map<String, Value>>,
        name: &str,
        path: &str,
    ) -> Option<&'a Map<String, Value>> {
        match of?.get(name)? {
            Value::Null => None,
            Value::Object(object) => Some(object),
            _ => {
                self.problems.push(format!("{path}: want an object"));
                None
            }
        }
    }

    fn part_url(&mut self, part: Option<&Map<String, Value>>, path: &str) {
        let valid =
            |part: &Map<String, Value>| part.get("url").and_then(Value::as_str).is_some_and(is_url);
        if part.is_some_and(|part| !part.is_empty() && !valid(part)) {
            self.problems
                .push(format!("{path}.url: want an http or https URL"));
        }
    }
}

/// The id is a part of paths, so it has no characters that mean something there.
fn is_task_id(id: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.~:-".contains(&b);
    (1..=256).contains(&id.len())
        && id.bytes().all(plain)
        && id.as_bytes()[0].is_ascii_alphanumeric()
}

fn text(object: &Map<String, Value>, name: &str) -> String {
    object
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn minimal() -> Value {
        json!({"taskId": "t-1", "attempt": 1, "callbackBaseUrl": "http://127.0.0.1:1/x/", "taskToken": "secret"})
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let e = parse(&minimal().to_string())
            .map_err(|e| panic!("{e}"))
            .unwrap();
        assert_eq!(
            (e.run_id.as_str(), e.base.as_str()),
            ("t-1", "http://127.0.0.1:1/x")
        );
        assert_eq!(e.interval, Duration::from_secs(30));
        assert_eq!(e.timeout, Duration::from_secs(90));
        assert_eq!(e.grace, Duration::from_secs(30));
        assert!(e.deadline.is_none() && e.time_limit.is_none() && e.output.is_none());
        assert!(!e.members.to_string().contains("secret"));
    }

    #[test]
    fn each_problem_is_named_and_no_value() {
        let bad = json!({
            "taskId": "../SECRET", "attempt": 0, "callbackBaseUrl": "ftp://SECRET", "taskToken": "SEC RET",
            "heartbeatIntervalMs": "SECRET", "heartbeatTimeoutMs": -1, "cancelGracePeriodMs": 1e12,
            "deadline": "SECRET", "output": {"url": "SECRET"}, "log": "SECRET",
            "program": {"input": {"url": 7}, "output": "SECRET"}, "resources": 3,
        });
        let Err(error) = parse(&bad.to_string()) else {
            panic!("accepted")
        };
        assert!(!error.contains("SEC"), "{error}");
        for name in [
            "taskId",
            "attempt",
            "callbackBaseUrl",
            "taskToken",
            "heartbeatIntervalMs",
            "heartbeatTimeoutMs",
            "cancelGracePeriodMs",
            "deadline",
            "output.url",
            "log:",
            "program.input.url",
            "program.output",
            "resources",
        ] {
            assert!(error.contains(name), "{name}: {error}");
        }
    }

    #[test]
    fn ids_that_change_the_path_are_refused() {
        let long = "x".repeat(257);
        for id in [
            "", ".", "..", "a/b", "a?b", "a#b", "a%2fb", "a b", "\u{e9}", &long,
        ] {
            let mut envelope = minimal();
            envelope["taskId"] = json!(id);
            assert!(parse(&envelope.to_string()).is_err(), "{id}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "7",
            "[]",
            "{",
            "null",
            &"[".repeat(100_000),
            &" ".repeat(MOST_BYTES + 1),
        ] {
            assert!(parse(text).is_err());
        }
    }
}
