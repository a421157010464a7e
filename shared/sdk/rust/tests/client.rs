//! The client against a server of this process.
#![cfg(feature = "client")]

#[path = "generated/mod.rs"]
#[allow(dead_code)]
mod generate;
mod support;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use serde_json::{json, Value};
use sortie_worker::client::{Client, Error, ErrorKind, EventQuery, Method, RunQuery};
use sortie_worker::models::{self, RunDefinition, State};
use support::{Reply, Server};

fn client(server: &Server) -> Client {
    Client::builder()
        .url(&server.url)
        .token("secret-token")
        .build()
        .unwrap()
}

fn always(value: Value) -> Server {
    Server::new(move |_, _| Reply::json(value.clone()))
}

type Calling = Pin<Box<dyn Future<Output = Result<(), Error>>>>;
type Method_ = fn(Client) -> Calling;

/// The method of each covered operation. None has its reason in the README.
fn methods() -> BTreeMap<&'static str, Option<Method_>> {
    fn of<F: Future<Output = Result<(), Error>> + 'static>(calling: F) -> Calling {
        Box::pin(calling)
    }
    let rows: [(&str, Option<Method_>); 23] = [
        (
            "listRuns",
            Some(|c| {
                of(async move {
                    c.runs()
                        .list(&RunQuery::default())
                        .next()
                        .await
                        .transpose()
                        .map(drop)
                })
            }),
        ),
        (
            "createRun",
            Some(|c| of(async move { c.runs().create(&RunDefinition::default()).await.map(drop) })),
        ),
        (
            "cancelRuns",
            Some(|c| of(async move { c.runs().cancel_many(&Default::default()).await.map(drop) })),
        ),
        (
            "retryRuns",
            Some(|c| {
                of(async move {
                    c.runs()
                        .retry_many(&Default::default(), "k")
                        .await
                        .map(drop)
                })
            }),
        ),
        (
            "pinRun",
            Some(|c| of(async move { c.runs().pin("r:1").await.map(drop) })),
        ),
        (
            "unpinRun",
            Some(|c| of(async move { c.runs().unpin("r:1").await.map(drop) })),
        ),
        (
            "redeliverActions",
            Some(|c| {
                of(async move {
                    c.runs()
                        .redeliver("r:1", &Default::default())
                        .await
                        .map(drop)
                })
            }),
        ),
        (
            "labelRuns",
            Some(|c| of(async move { c.runs().label_many(&Default::default()).await.map(drop) })),
        ),
        (
            "labelRun",
            Some(|c| of(async move { c.runs().label("r:1", &Default::default()).await.map(drop) })),
        ),
        (
            "getRun",
            Some(|c| of(async move { c.runs().get("r:1").await.map(drop) })),
        ),
        (
            "explainRun",
            Some(|c| of(async move { c.runs().explain("r:1").await.map(drop) })),
        ),
        (
            "planRun",
            Some(|c| of(async move { c.runs().plan(&RunDefinition::default()).await.map(drop) })),
        ),
        (
            "listChildren",
            Some(|c| {
                of(async move {
                    c.runs()
                        .children("r:1", None)
                        .next()
                        .await
                        .transpose()
                        .map(drop)
                })
            }),
        ),
        (
            "runUpdates",
            Some(|c| {
                of(async move {
                    c.runs()
                        .updates("r:1", 0)
                        .next()
                        .await
                        .transpose()
                        .map(drop)
                })
            }),
        ),
        (
            "cancelRun",
            Some(|c| of(async move { c.runs().cancel("r:1", Some("why")).await.map(drop) })),
        ),
        (
            "retryRun",
            Some(|c| of(async move { c.runs().retry("r:1").await.map(drop) })),
        ),
        (
            "runJob",
            Some(|c| of(async move { c.jobs().run("j", &Default::default()).await.map(drop) })),
        ),
        ("listJobRuns", None), // listRuns has a filter for the job
        (
            "sendJobEvents",
            Some(|c| of(async move { c.jobs().send_events("j", &[]).await.map(drop) })),
        ),
        (
            "listEvents",
            Some(|c| {
                of(async move {
                    c.events()
                        .list(&EventQuery::default())
                        .next()
                        .await
                        .transpose()
                        .map(drop)
                })
            }),
        ),
        (
            "createEventTicket",
            Some(|c| of(async move { c.events().ticket(&Default::default()).await.map(drop) })),
        ),
        (
            "replayEvents",
            Some(|c| of(async move { c.events().replay(&Default::default()).await.map(drop) })),
        ),
        (
            "streamEvents",
            Some(|c| {
                of(async move {
                    c.events()
                        .stream(&EventQuery::default())
                        .next()
                        .await
                        .transpose()
                        .map(drop)
                })
            }),
        ),
        ("connectEvents", None), // the same as streamEvents over WebSockets
    ];
    rows.into_iter().collect()
}

#[tokio::test]
async fn each_operation_has_a_method() {
    let document = generate::document();
    let mut methods = methods();
    for (path, item) in document["paths"].as_object().unwrap() {
        if !generate::PATHS
            .iter()
            .any(|prefix| path.starts_with(prefix))
        {
            continue;
        }
        for (verb, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            let method = methods
                .remove(id)
                .unwrap_or_else(|| panic!("no method for {id}"));
            let Some(method) = method else { continue };
            let server = Server::new(|request, _| match request.name() {
                "stream" => Reply::new(204, ""),
                _ => Reply::json(json!({})),
            });
            method(client(&server))
                .await
                .unwrap_or_else(|error| panic!("{id}: {error}"));
            let request = &server.requests()[0];
            assert_eq!(request.method.to_ascii_lowercase(), *verb, "{id}");
            assert_eq!(
                request.path(),
                path.replace("{run_id}", "r:1").replace("{job_id}", "j"),
                "{id}"
            );
            assert_eq!(
                request.header("authorization"),
                Some("Bearer secret-token"),
                "{id}"
            );
            let keys = operation["parameters"].as_array().into_iter().flatten();
            let keyed = keys
                .into_iter()
                .any(|parameter| parameter["name"] == "Idempotency-Key");
            assert_eq!(request.header("idempotency-key").is_some(), keyed, "{id}");
        }
    }
    assert!(
        methods.is_empty(),
        "{:?} are not operations",
        methods.keys()
    );
}

#[test]
fn each_parameter_of_the_lists_is_sent() {
    let document = generate::document();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let server = Server::new(|request, _| match request.name() {
        "stream" => Reply::new(204, ""),
        _ => Reply::json(json!({"next": "c-1"})),
    });
    let text = || Some("x y&z".to_owned());
    let runs = RunQuery {
        state: Some(State::Failed),
        kind: Some(models::RunFilterKind::Job),
        job_id: text(),
        pool: text(),
        trigger: Some(models::RunFilterTrigger::Manual),
        skipped: Some(false),
        fault_code: text(),
        error: text(),
        label: text(),
        created_after: Some(models::Time("2026-01-02T03:04:05Z".into())),
        created_before: Some(std::time::SystemTime::UNIX_EPOCH.into()),
        limit: Some(7),
    };
    let events = EventQuery {
        after: Some("c-1".into()),
        types: vec!["job.*".into(), "pool.full".into()],
        project_id: text(),
        job_id: text(),
        task_id: text(),
        batch_id: text(),
        label: text(),
        limit: Some(7),
        ..Default::default()
    };
    runtime.block_on(async {
        let client = client(&server);
        assert!(client.runs().list(&runs).next().await.is_none());
        assert!(client.events().list(&events).next().await.is_none());
        assert!(client.events().stream(&events).next().await.is_none());
    });
    // cursor and Last-Event-ID are those of a later request; gap and as are the stream's own.
    let skipped = ["cursor", "gap", "as"];
    for (request, path) in
        server
            .requests()
            .iter()
            .zip(["/v1/runs", "/v1/events", "/v1/events/stream"])
    {
        for parameter in document["paths"][path]["get"]["parameters"]
            .as_array()
            .unwrap()
        {
            let parameter = match parameter["$ref"].as_str() {
                Some(reference) => {
                    &document["components"]["parameters"][reference.rsplit('/').next().unwrap()]
                }
                None => parameter,
            };
            let name = parameter["name"].as_str().unwrap();
            if parameter["in"] != "query" || skipped.contains(&name) {
                continue;
            }
            assert!(
                request.target.contains(&format!("{name}=")),
                "{name}: {}",
                request.target
            );
        }
        assert!(
            !request.target.contains(' ') && !request.target.contains("y&z"),
            "{}",
            request.target
        );
    }
}

#[tokio::test]
async fn errors_have_codes_and_kinds() {
    for (status, kind) in [
        (400, ErrorKind::InvalidRequest),
        (401, ErrorKind::Unauthenticated),
        (403, ErrorKind::Forbidden),
        (404, ErrorKind::NotFound),
        (409, ErrorKind::Conflict),
        (410, ErrorKind::NotFound),
        (412, ErrorKind::PreconditionFailed),
        (422, ErrorKind::InvalidRequest),
        (429, ErrorKind::RateLimited),
        (500, ErrorKind::Server),
    ] {
        let server = Server::new(move |_, _| {
            Reply::problem(status, "A_CODE").with("x-should-retry", "false")
        });
        let error = client(&server).runs().get("r").await.unwrap_err();
        assert_eq!(error.code(), Some("A_CODE"));
        let api = error.api().unwrap();
        assert_eq!((api.kind(), api.correlation_id.as_str()), (kind, "corr-1"));
        assert_eq!(error.to_string(), format!("{status} A_CODE: a test"));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn reads_are_repeated_and_creates_keep_their_key() {
    let server = Server::new(|_, before| match before {
        0 => Reply::nothing(),
        1 => Reply::problem(503, "UNAVAILABLE"),
        _ => Reply::json(json!({"runId": "r"})),
    });
    let run = client(&server)
        .runs()
        .create(&RunDefinition::default())
        .await
        .unwrap();
    assert_eq!(run.run_id, "r");
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let key = requests[0].header("idempotency-key").unwrap();
    assert!(
        key.len() == 32
            && requests
                .iter()
                .all(|r| r.header("idempotency-key") == Some(key))
    );
}

#[tokio::test]
async fn calls_with_an_effect_are_not_repeated() {
    for reply in [Reply::nothing(), Reply::problem(503, "UNAVAILABLE")] {
        let server = Server::new(move |_, _| reply.clone());
        let client = client(&server);
        assert!(client.runs().cancel("r", None).await.is_err());
        assert!(client
            .call(Method::POST, "/v1/webhooks/w/test", None)
            .await
            .is_err());
        assert_eq!(server.requests().len(), 2);
    }
    // 429 means that the server has not done it.
    let server = Server::new(|_, before| match before {
        0 => Reply::problem(429, "THROTTLED").with("x-backoff-ms", "10"),
        _ => Reply::json(json!({"state": "Running", "result": "requested"})),
    });
    let answer = client(&server).runs().cancel("r", None).await.unwrap();
    assert_eq!(answer.result, models::CancelAnswerResult::Requested);
}

#[tokio::test]
async fn lists_read_all_pages() {
    let server = Server::new(|request, _| match request.target.as_str() {
        "/v1/runs?limit=2" => {
            Reply::json(json!({"tasks": [{"taskId": "1"}, {"taskId": "2"}], "nextCursor": "a"}))
        }
        "/v1/runs?limit=2&cursor=a" => Reply::json(json!({"tasks": [], "nextCursor": "b"})),
        "/v1/runs?limit=2&cursor=b" => Reply::json(json!({"tasks": [{"taskId": "3"}]})),
        other => Reply::problem(404, other),
    });
    let query = RunQuery {
        limit: Some(2),
        ..Default::default()
    };
    let runs = client(&server)
        .runs()
        .list(&query)
        .collect(10)
        .await
        .unwrap();
    let ids: Vec<_> = runs.iter().map(|run| run.task_id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "3"]);

    let server = Server::new(|request, _| match request.target.as_str() {
        "/v1/events" => Reply::json(json!({"events": [{"eventId": "1"}], "next": "c-1"})),
        "/v1/events?after=c-1" => Reply::json(json!({"events": [{"eventId": "2"}], "next": "c-2"})),
        "/v1/events?after=c-2" => Reply::json(json!({"events": [], "next": "c-2"})),
        other => Reply::problem(404, other),
    });
    let events = client(&server)
        .events()
        .list(&EventQuery::default())
        .collect(10)
        .await
        .unwrap();
    assert_eq!(events.len(), 2);

    let server = Server::new(|_, before| match before {
        0 => Reply::json(json!({"tasks": [{"taskId": "1"}], "nextCursor": "a"})),
        _ => Reply::problem(400, "BAD"),
    });
    let mut list = client(&server).runs().list(&RunQuery::default());
    assert!(list.next().await.unwrap().is_ok());
    assert!(list.next().await.unwrap().is_err());
    assert!(list.next().await.is_none());
}

fn sse(id: u32) -> String {
    format!("id: c-{id}\nevent: job.x\ndata: {{\"eventId\":\"{id}\",\"eventType\":\"job.x\"}}\n\n")
}

#[tokio::test]
async fn streams_resume_behind_the_last_event() {
    let server = Server::new(|request, before| {
        let text = match before {
            0 => format!("retry: 1\nid: c-0\n\n{}{}", sse(1), sse(2)),
            1 => return Reply::problem(503, "UNAVAILABLE").with("x-backoff-ms", "1"),
            // Half of an event is read again.
            2 => {
                return Reply::new(200, format!("retry: 1\n\n{}{}", sse(3), &sse(4)[..30]))
                    .cut(5000)
            }
            3 => format!("retry: 1\nid: c-5\n\n{}", &sse(6)[..9]),
            _ if request.header("last-event-id") == Some("c-5") => sse(6),
            _ => return Reply::problem(400, "WRONG_CURSOR"),
        };
        Reply::new(200, text)
    });
    let query = EventQuery {
        after: Some("earliest".into()),
        ..Default::default()
    };
    let mut stream = client(&server).events().stream(&query);
    let mut got = Vec::new();
    while got.len() < 4 {
        let event = stream.next().await.unwrap().unwrap();
        got.push((event.event_id, stream.cursor().unwrap().to_owned()));
    }
    let want = [("1", "c-1"), ("2", "c-2"), ("3", "c-3"), ("6", "c-6")];
    assert!(
        got.iter()
            .zip(want)
            .all(|(a, b)| (a.0.as_str(), a.1.as_str()) == b),
        "{got:?}"
    );
    let asked: Vec<_> = server
        .requests()
        .iter()
        .map(|r| r.header("last-event-id").map(str::to_owned))
        .collect();
    let cursors = [None, Some("c-2"), Some("c-2"), Some("c-3"), Some("c-5")];
    assert_eq!(
        asked.iter().map(Option::as_deref).collect::<Vec<_>>(),
        cursors
    );
    assert!(server
        .requests()
        .iter()
        .all(|r| r.target == "/v1/events/stream?after=earliest"));
}

#[tokio::test]
async fn gaps_are_errors_unless_skipped() {
    let gap = "id: c-9\nevent: stream.gap\ndata: {\"eventType\":\"stream.gap\",\"asked\":\"c-1\",\"oldest\":\"c-10\",\"newest\":\"c-20\"}\n\n";
    let server = Server::new(move |_, _| Reply::new(200, format!("{gap}{}", sse(10))));
    let mut query = EventQuery {
        after: Some("c-1".into()),
        ..Default::default()
    };
    let mut stream = client(&server).events().stream(&query);
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(
        matches!(&error, Error::Gap(gap) if gap.oldest == "c-10"),
        "{error}"
    );
    assert_eq!(stream.cursor(), Some("c-1"));
    assert!(stream.next().await.is_none());
    query.skip_gaps = true;
    let event = client(&server)
        .events()
        .stream(&query)
        .next()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(event.event_id, "10");
}

#[tokio::test]
async fn streams_give_up() {
    let refused = Server::new(|_, _| Reply::problem(403, "FORBIDDEN"));
    let mut stream = client(&refused).events().stream(&EventQuery::default());
    assert_eq!(
        stream.next().await.unwrap().unwrap_err().code(),
        Some("FORBIDDEN")
    );
    let gone = Server::new(|_, before| match before {
        0 => Reply::new(200, format!("retry: 1\n\n{}", sse(1))),
        _ => Reply::problem(503, "UNAVAILABLE"),
    });
    let query = EventQuery {
        most_outage: Some(std::time::Duration::ZERO),
        ..Default::default()
    };
    let mut stream = client(&gone).events().stream(&query);
    assert!(stream.next().await.unwrap().is_ok());
    assert_eq!(
        stream.next().await.unwrap().unwrap_err().code(),
        Some("UNAVAILABLE")
    );
}

#[tokio::test]
async fn pages_are_no_streams() {
    let other = Server::new(|_, _| {
        Reply::new(200, "<html>").with("content-type", "text/html; charset=utf-8")
    });
    let mut stream = client(&other).events().stream(&EventQuery::default());
    let error = stream.next().await.unwrap().unwrap_err().to_string();
    assert!(error.contains("a page, not a stream"), "{error}");
    let mut lines = client(&other).runs().follow_logs("t-1");
    let error = lines.next().await.unwrap().unwrap_err().to_string();
    assert!(error.contains("a page, not a stream"), "{error}");
    assert_eq!(other.requests().len(), 2);
}

#[tokio::test]
async fn followed_logs_continue_with_the_next_attempt() {
    let server = Server::new(|request, before| {
        match before {
        0 => Reply::new(200, "{\"attempt\":1,\"data\":\"YQo=\",\"next\":2}\n{\"attempt\":1,\"data\":\"Yg").cut(500),
        _ if !request.target.contains("attempt=1&offset=2") => Reply::problem(400, "WRONG_PLACE"),
        _ => Reply::new(200, "{\"attempt\":1,\"data\":\"Ygo=\",\"next\":4}\n\n{\"attempt\":2,\"cut\":7,\"next\":7}\n{\"next\":7,\"ended\":true}\n"),
    }
    });
    let mut lines = client(&server).runs().follow_logs("t-1");
    let mut text = Vec::new();
    let mut cut = 0;
    while let Some(line) = lines.next().await {
        let line = line.unwrap();
        text.extend(line.bytes());
        cut += line.cut.unwrap_or(0);
    }
    assert_eq!((text.as_slice(), cut), (b"a\nb\n".as_slice(), 7));
}

#[tokio::test]
async fn downloads_resume() {
    let server = Server::new(|request, before| {
        let reply = match before {
            0 => Reply::new(200, "hello ").cut(11),
            _ if request.header("range") == Some("bytes=6-")
                && request.header("if-range") == Some("\"e\"") =>
            {
                Reply::new(206, "world")
            }
            _ => Reply::problem(400, "WRONG_RANGE"),
        };
        reply
            .with("etag", "\"e\"")
            .with("content-disposition", "attachment; filename=\"a.csv\"")
    });
    let download = client(&server).runs().output("t-1").await.unwrap();
    assert_eq!((download.size(), download.file_name()), (Some(11), "a.csv"));
    assert_eq!(download.bytes(100).await.unwrap(), b"hello world");
    let changed = Server::new(|_, before| match before {
        0 => Reply::new(200, "hello ").cut(11).with("etag", "\"e\""),
        _ => Reply::new(200, "other words"),
    });
    let error = client(&changed)
        .runs()
        .output("t-1")
        .await
        .unwrap()
        .bytes(100)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("changed"), "{error}");
}

#[tokio::test]
async fn wait_returns_the_ended_run() {
    let server = Server::new(|request, _| match request.path() {
        "/status/t-1" => Reply::json(json!({})),
        _ => Reply::json(json!({"taskId": "t-1", "state": "Running"})),
    });
    let waiting = tokio::time::timeout(std::time::Duration::from_millis(500), async {
        client(&server).runs().wait("r-1").await
    });
    assert!(waiting.await.is_err(), "it waits while the run is running");
    assert!(server
        .requests()
        .iter()
        .any(|r| r.target == "/status/t-1?wait=20"));
    let ended = always(json!({"taskId": "t-1", "state": "Completed", "skipped": true, "x": 1}));
    let run = client(&ended).runs().wait("r-1").await.unwrap();
    assert!(!run.succeeded() && run.extra["x"] == 1);
}

#[tokio::test]
async fn items_events_and_changes_of_a_retry_are_sent() {
    let server = Server::new(|request, n| match (request.name(), n) {
        ("events", 0) => Reply::problem(503, "UNAVAILABLE"),
        ("events", _) => Reply::json(json!({"events": [
            {"id": "4711", "source": "/shop", "result": "created", "runId": "r-1"},
        ]})),
        _ => Reply::json(json!({"taskId": "t", "runId": "r-1", "state": "Pending"})),
    });
    let client = client(&server);
    let request = models::JobRunRequest {
        items_from: Some("r-0".into()),
        ..Default::default()
    };
    assert_eq!(
        client.jobs().run("j", &request).await.unwrap().run_id,
        "r-1"
    );
    let event = models::CloudEvent {
        specversion: "1.0".into(),
        id: "4711".into(),
        source: "/shop".into(),
        r#type: "order".into(),
        ..Default::default()
    };
    let receipts = client.jobs().send_events("j", &[event]).await.unwrap();
    assert_eq!(receipts.events[0].run_id.as_deref(), Some("r-1"));
    let changes = models::RetryRequest {
        only_failed: Some(true),
        ..Default::default()
    };
    client
        .runs()
        .retry_with("r-1", &changes, "k")
        .await
        .unwrap();
    let sent: Vec<(String, Value)> = server
        .requests()
        .iter()
        .map(|r| {
            (
                r.path().to_owned(),
                serde_json::from_slice(&r.body).unwrap(),
            )
        })
        .collect();
    let event = json!([{"specversion": "1.0", "id": "4711", "source": "/shop", "type": "order"}]);
    let want = [
        ("/v1/jobs/j/runs", json!({"itemsFrom": "r-0"})),
        ("/v1/jobs/j/events", event.clone()),
        ("/v1/jobs/j/events", event), // repeated
        ("/v1/runs/r-1/retry", json!({"onlyFailed": true})),
    ];
    assert_eq!(sent, want.map(|(path, body)| (path.to_owned(), body)));
    let kind = server.requests()[1]
        .header("content-type")
        .map(str::to_owned);
    assert_eq!(kind.as_deref(), Some("application/cloudevents-batch+json"));
}
