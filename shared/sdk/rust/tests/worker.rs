//! Workers against a control plane of this process. Each worker is a process: this program
//! again, with the name of its work.

mod support;

use std::io::Write as _;
use std::process::{Command, ExitCode, Output as Done, Stdio};
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use sortie_worker::{Category, Failure, Output, Task, Worker};
use support::{Reply, Request, Server, PATIENCE};

const WORK: &str = "SORTIE_TEST_WORK";
const TOKEN: &str = "secret-token-of-the-attempt";
const SIGNATURE: &str = "signature=secret-of-the-bucket";

/// The process of a worker. It is a test, so that this program can start itself.
#[test]
fn child() {
    let Ok(name) = std::env::var(WORK) else {
        return;
    };
    let send = name == "writes";
    let code = Worker::new().send_output(send).run(|task| work(name, task));
    let codes = [0, 1, 2, 143];
    let code = codes
        .into_iter()
        .find(|n| ExitCode::from(*n) == code)
        .expect("exit code");
    std::process::exit(i32::from(code));
}

async fn work(name: String, task: Task) -> Result<(), Failure> {
    match name.as_str() {
        "returns" => Ok(()),
        "stores" => {
            let input = task.input().await?;
            task.output(
                Output::bytes(input)
                    .content_type("text/csv")
                    .file_name("a.csv"),
            )
            .await
        }
        "stores a file" => {
            let path = std::env::temp_dir().join(format!("sortie-{}.bin", task.worker_id()));
            std::fs::write(&path, vec![7; 300_000])?;
            let stored = task.output(Output::file(&path)).await;
            std::fs::remove_file(&path)?;
            stored
        }
        "fails" => Err(Failure::new(Category::DataQuality, "x".repeat(5000)).retryable(true)),
        "errs" => {
            let _: u8 = "x".parse()?;
            Ok(())
        }
        "panics" => panic!("boom"),
        "blocks" => {
            std::thread::sleep(Duration::from_millis(2500));
            Ok(())
        }
        "waits" => {
            task.phase("waiting");
            task.partial(json!({"rows": 3}));
            task.cancelled().cancelled().await;
            task.check()
        }
        "waits and cleans up" => {
            task.progress(250.0, "all");
            task.cancelled().cancelled().await;
            Err(Failure::new(Category::UserCode, "killed the child"))
        }
        "never ends" => loop {
            std::thread::sleep(Duration::from_millis(50));
        },
        "shows" => {
            let mut shell = Command::new("sh");
            let child = shell.args(["-c", "echo CHILD; env; echo END"]).output()?;
            println!("{}", String::from_utf8_lossy(&child.stdout));
            println!(
                "{task:?} {:?} {:?} {:?}",
                task.envelope(),
                task.stdout(),
                task.deadline()
            );
            Ok(())
        }
        "writes" => {
            for n in 0..3 {
                writeln!(task.stdout(), "line {n}")?;
            }
            writeln!(task.stderr(), "end")?;
            Ok(())
        }
        "cancels the token" => {
            task.cancelled().cancel();
            task.check()
        }
        other => panic!("no work {other}"),
    }
}

fn envelope(server: &Server, more: Value) -> Value {
    let mut envelope = json!({
        "taskId": "task.1~a:b",
        "runId": "job:2026",
        "attempt": 2,
        "callbackBaseUrl": format!("{}/edge/", server.url),
        "taskToken": TOKEN,
        "heartbeatIntervalMs": 200,
        "heartbeatTimeoutMs": 30_000,
        "cancelGracePeriodMs": 10_000,
        "output": {"url": format!("{}/put?{SIGNATURE}", server.url), "key": "o/1", "headers": {"X-A": "b"}},
        "unknown": {"nested": true},
    });
    for (name, value) in more.as_object().unwrap() {
        envelope[name] = value.clone();
    }
    envelope
}

/// Returns the usual answer to a call.
fn usual(request: &Request) -> Reply {
    let mut answer = json!({"acknowledged": true, "serverTime": "2026-01-02T03:04:05Z"});
    match request.name() {
        "heartbeat" | "logs" => answer["shouldCancel"] = json!(false),
        "completed" => answer["finalState"] = request.json()["outcome"].clone(),
        _ => {}
    }
    Reply::json(answer)
}

fn cancel() -> Reply {
    Reply::json(json!({"acknowledged": true, "shouldCancel": true, "cancelReason": "not needed"}))
}

fn plane(special: impl Fn(&Request, usize) -> Option<Reply> + Send + Sync + 'static) -> Server {
    Server::new(move |request, before| special(request, before).unwrap_or_else(|| usual(request)))
}

fn command(work: &str, envelope: &Value) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["child", "--exact", "--nocapture"])
        .env(WORK, work)
        .env("TASK_ENVELOPE", envelope.to_string())
        .env(
            "CALLBACK_URL",
            format!("http://127.0.0.1:1/callback?token={TOKEN}"),
        )
        .stdin(Stdio::null());
    command
}

fn run(server: &Server, work: &str, more: Value) -> Done {
    let done = command(work, &envelope(server, more)).output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(!said.contains(TOKEN) && !said.contains(SIGNATURE), "{said}");
    done
}

fn completed(server: &Server) -> Value {
    let calls = server.named("completed");
    assert_eq!(calls.len(), 1);
    calls[0].json()
}

#[test]
fn a_result_is_reported_with_the_calls_of_the_contract() {
    let server = plane(|_, _| None);
    let done = run(&server, "returns", json!({}));
    assert_eq!(done.status.code(), Some(0));
    let requests = server.requests();
    let started = requests[0].json();
    assert_eq!(requests[0].target, "/edge/v1/tasks/task.1~a:b/started");
    assert_eq!(started["handlesSigterm"], cfg!(unix));
    for request in &requests {
        assert_eq!(
            request.header("authorization"),
            Some(format!("Bearer {TOKEN}").as_str())
        );
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.json()["attempt"], 2);
        assert_eq!(request.json()["workerId"], started["workerId"]);
    }
    let report = completed(&server);
    assert_eq!(report["outcome"], "SUCCEEDED");
    assert!(report["metrics"]["peakMemoryBytes"].as_u64() > Some(0) || !cfg!(target_os = "linux"));
}

#[test]
fn failures_have_their_category() {
    for (work, category, message, retryable) in [
        ("fails", "DATA_QUALITY", "xxx", json!(true)),
        (
            "errs",
            "USER_CODE",
            "invalid digit found in string",
            Value::Null,
        ),
        ("panics", "USER_CODE", "panicked: boom", Value::Null),
    ] {
        let server = plane(|_, _| None);
        assert_eq!(
            run(&server, work, json!({})).status.code(),
            Some(1),
            "{work}"
        );
        let report = completed(&server);
        let error = &report["error"];
        assert_eq!(
            (&report["outcome"], &error["category"]),
            (&json!("FAILED"), &json!(category))
        );
        let text = error["message"].as_str().unwrap();
        assert!(text.starts_with(message) && text.len() <= 2048, "{text}");
        assert_eq!(error["retryable"], retryable, "{work}");
    }
}

#[test]
fn heartbeats_continue_while_the_work_blocks() {
    let server = plane(|_, _| None);
    run(&server, "blocks", json!({}));
    let times: Vec<Instant> = server.named("heartbeat").iter().map(|r| r.at).collect();
    assert!(times.len() >= 6, "{} heartbeats", times.len());
}

#[test]
fn a_cancel_is_reported_with_its_phase_and_progress() {
    let server = plane(|r, before| (r.name() == "heartbeat" && before > 0).then(cancel));
    assert_eq!(run(&server, "waits", json!({})).status.code(), Some(1));
    let report = completed(&server);
    assert_eq!(report["outcome"], "CANCELLED");
    assert_eq!(report["cancelledDuringPhase"], "waiting");
    assert_eq!(report["partialProgress"], json!({"rows": 3}));

    let server = plane(|r, before| (r.name() == "heartbeat" && before > 0).then(cancel));
    run(&server, "waits and cleans up", json!({}));
    let report = completed(&server);
    assert_eq!(
        (&report["outcome"], &report["cancelledDuringPhase"]),
        (&json!("CANCELLED"), &json!("processing"))
    );
    assert_eq!(
        report["partialProgress"],
        json!({"progressPct": 100, "message": "all"})
    );
}

#[test]
fn work_that_does_not_stop_is_reported_and_ended() {
    let server = plane(|r, before| (r.name() == "heartbeat" && before > 0).then(cancel));
    let done = run(&server, "never ends", json!({"cancelGracePeriodMs": 1000}));
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(completed(&server)["outcome"], "CANCELLED");
}

#[test]
fn a_lost_attempt_ends_without_a_report() {
    for (work, status, body) in [
        ("waits", 410, json!({"error": "task_expired"})),
        ("never ends", 409, json!({"error": "worker_mismatch"})),
    ] {
        let body = body.to_string();
        let server =
            plane(move |r, _| (r.name() == "heartbeat").then(|| Reply::new(status, body.clone())));
        assert_eq!(run(&server, work, json!({})).status.code(), Some(1));
        assert!(server.named("completed").is_empty(), "{work}");
        assert_eq!(server.named("heartbeat").len(), 1, "{work}");
    }
}

#[test]
fn a_refused_start_prevents_the_work() {
    let server = plane(|_, _| {
        Some(Reply::new(
            409,
            r#"{"error": "task_already_terminal", "state": "CANCELLED"}"#,
        ))
    });
    let done = run(&server, "panics", json!({}));
    assert_eq!((done.status.code(), server.requests().len()), (Some(1), 1));
    let done = command("returns", &json!({"taskId": "x"}))
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(2));
    let done = command("returns", &json!({}))
        .env_remove("TASK_ENVELOPE")
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn the_deadline_is_a_timeout() {
    let server = plane(|_, _| None);
    run(&server, "waits", json!({"resources": {"timeoutMs": 700}}));
    assert_eq!(completed(&server)["error"]["category"], "TIMEOUT");
}

#[cfg(unix)]
#[test]
fn sigterm_without_a_cancel_request_is_not_reported() {
    let terminate = |server: &Server, work| {
        let mut child = command(work, &envelope(server, json!({}))).spawn().unwrap();
        server.wait_for("heartbeat", 1);
        let id = child.id().to_string();
        assert!(Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success());
        child.wait().unwrap().code()
    };
    let server = plane(|_, _| None);
    assert_eq!(terminate(&server, "waits"), Some(143));
    assert!(server.named("completed").is_empty());

    // The heartbeat after the signal brings the cancel request.
    let server = plane(|r, before| (r.name() == "heartbeat" && before > 0).then(cancel));
    let code = terminate(&server, "waits");
    assert_eq!(
        (code, &completed(&server)["outcome"]),
        (Some(1), &json!("CANCELLED"))
    );
}

#[cfg(unix)]
#[test]
fn sigterm_during_the_report_changes_nothing() {
    let server = plane(|r, before| {
        (r.name() == "completed" && before == 0)
            .then(|| Reply::new(503, "").with("retry-after", "1"))
    });
    let mut child = command("returns", &envelope(&server, json!({})))
        .spawn()
        .unwrap();
    server.wait_for("completed", 1);
    let id = child.id().to_string();
    assert!(Command::new("kill")
        .args(["-TERM", &id])
        .status()
        .unwrap()
        .success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(server.named("completed")[1].json()["outcome"], "SUCCEEDED");
}

#[test]
fn a_reason_is_one_line_of_the_log() {
    let reason = json!({"acknowledged": true, "shouldCancel": true, "cancelReason": "a\nsortie: b\u{1b}[2J"});
    let server = plane(move |r, _| (r.name() == "heartbeat").then(|| Reply::json(reason.clone())));
    let said = String::from_utf8(run(&server, "waits", json!({})).stderr).unwrap();
    assert!(said.contains("a\\nsortie: b\\u{1b}[2J"), "{said}");
}

#[test]
fn reports_are_repeated() {
    let server = plane(|r, before| match (r.name(), before) {
        ("started", 0) => Some(Reply::nothing()),
        ("completed", 0) => Some(Reply::nothing()),
        ("completed", 1) => Some(Reply::new(503, "")),
        _ => None,
    });
    assert_eq!(run(&server, "returns", json!({})).status.code(), Some(0));
    assert_eq!(
        (
            server.named("started").len(),
            server.named("completed").len()
        ),
        (2, 3)
    );
    // What was refused is not repeated.
    let server = plane(|r, _| (r.name() == "completed").then(|| Reply::new(409, "{}")));
    assert_eq!(run(&server, "returns", json!({})).status.code(), Some(1));
    assert_eq!(server.named("completed").len(), 1);
}

#[test]
fn failed_heartbeats_do_not_end() {
    let server = plane(|r, before| match (r.name(), before) {
        ("heartbeat", 0) => Some(Reply::nothing()),
        ("heartbeat", 1) => Some(Reply::new(500, "")),
        ("heartbeat", 2) => Some(Reply::new(200, "no JSON")),
        ("heartbeat", 3) => Some(Reply::new(400, "{}")),
        ("heartbeat", 4) => Some(Reply::new(200, vec![b'x'; 1 << 20])),
        ("heartbeat", 6) => Some(cancel()),
        _ => None,
    });
    run(&server, "waits", json!({}));
    assert_eq!(completed(&server)["outcome"], "CANCELLED");
}

#[test]
fn a_closed_standard_error_does_not_end_heartbeats() {
    let server = plane(|r, before| match (r.name(), before) {
        ("heartbeat", 0) => Some(Reply::new(500, "")),
        ("heartbeat", 2) => Some(cancel()),
        _ => None,
    });
    let mut command = command("waits", &envelope(&server, json!({})));
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(completed(&server)["outcome"], "CANCELLED");
}

#[test]
fn renewed_tokens_and_urls_are_used() {
    let server = plane(|r, before| match (r.name(), before) {
        ("put", 0) => Some(Reply::new(403, "")),
        ("heartbeat", _) => Some(Reply::json(json!({
            "acknowledged": true, "taskToken": "renewed", "output": {"url": format!("http://{}/put?new", r.header("host").unwrap()), "key": "o/2"},
        }))),
        _ => None,
    });
    assert_eq!(run(&server, "stores", json!({})).status.code(), Some(0));
    let last = server.named("put").last().unwrap().clone();
    assert_eq!(
        (last.target.as_str(), last.header("x-a")),
        ("/put?new", None)
    );
    assert_eq!(
        server.named("completed")[0].header("authorization"),
        Some("Bearer renewed")
    );
    assert_eq!(completed(&server)["output"]["outputPath"], "o/2");
}

#[test]
fn input_and_output_are_moved_without_the_token() {
    let server = plane(|r, before| match (r.name(), before) {
        ("input", 0) => Some(Reply::new(500, "")),
        ("input", _) => Some(Reply::new(200, "a,b\n")),
        _ => None,
    });
    let input = json!({"url": format!("{}/input?{SIGNATURE}", server.url), "size": 4});
    let done = run(&server, "stores", json!({"program": {"input": input}}));
    assert_eq!(done.status.code(), Some(0));
    for name in ["input", "put"] {
        let request = &server.named(name)[0];
        assert_eq!(request.header("authorization"), None, "{name}");
    }
    let put = &server.named("put")[0];
    assert_eq!(put.body, b"a,b\n");
    assert_eq!(
        (put.header("content-type"), put.header("x-a")),
        (Some("text/csv"), Some("b"))
    );
    let want = json!({
        "outputPath": "o/1",
        "byteSize": 4,
        "fileName": "a.csv",
        "digest": "sha256:5be08c9684a1d25efcee09318204824278b08bbfb4aef973ffefd0b9d7478313",
    });
    assert_eq!(completed(&server)["output"], want);

    let server = plane(|r, before| (r.name() == "put" && before == 0).then(|| Reply::new(500, "")));
    assert_eq!(
        run(&server, "stores a file", json!({})).status.code(),
        Some(0)
    );
    let put = &server.named("put")[1];
    assert_eq!(
        (put.body.len(), put.header("transfer-encoding")),
        (300_000, None)
    );
    assert_eq!(completed(&server)["output"]["byteSize"], 300_000);
}

#[test]
fn output_is_sent_before_the_report() {
    let server =
        plane(|r, before| (r.name() == "logs" && before == 0).then(|| Reply::new(503, "")));
    assert_eq!(run(&server, "writes", json!({})).status.code(), Some(0));
    assert_eq!(server.requests()[0].json()["sendsOutput"], true);
    let logs: Vec<Value> = server.named("logs").iter().map(Request::json).collect();
    let data: Vec<_> = logs
        .iter()
        .map(|log| (&log["sequence"], &log["stream"], &log["data"]))
        .collect();
    let (one, two) = ("bGluZSAwCmxpbmUgMQpsaW5lIDIK", "ZW5kCg==");
    let want = [(1, "stdout", one), (1, "stdout", one), (2, "stderr", two)];
    let want: Vec<_> = want
        .iter()
        .map(|(n, s, d)| (json!(n), json!(s), json!(d)))
        .collect();
    assert_eq!(
        data,
        want.iter().map(|(n, s, d)| (n, s, d)).collect::<Vec<_>>()
    );
    assert_eq!(server.requests().last().unwrap().name(), "completed");
}

#[test]
fn tokens_of_the_work_do_not_stop_the_task() {
    let server = plane(|_, _| None);
    assert_eq!(
        run(&server, "cancels the token", json!({})).status.code(),
        Some(0)
    );
}

#[test]
fn attacks_on_secrets_fail() {
    // run() checks that nothing printed contains the token or the signature.
    let server = plane(|_, _| None);
    let said = run(
        &server,
        "shows",
        json!({"log": {"url": format!("{}/log?{SIGNATURE}", server.url)}}),
    );
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.contains("CHILD") && said.contains("END") && said.contains("nested"),
        "{said}"
    );
    assert!(
        !said.contains("TASK_ENVELOPE") && !said.contains("CALLBACK_URL"),
        "{said}"
    );
    // An unreachable bucket is an error without its URL.
    let server = plane(|_, _| None);
    let output = json!({"url": format!("http://127.0.0.1:1/put?{SIGNATURE}"), "key": "o"});
    let resources = json!({"timeoutMs": 3000});
    run(
        &server,
        "stores",
        json!({"output": output, "resources": resources}),
    );
    let report = completed(&server).to_string();
    assert!(
        !report.contains(SIGNATURE) && report.contains("TIMEOUT"),
        "{report}"
    );
}

#[test]
fn attacks_by_redirects_fail() {
    let other = plane(|_, _| None);
    let to = other.url.clone();
    let server = plane(move |r, before| match (r.name(), before) {
        ("started" | "put" | "input", 0) => {
            Some(Reply::new(307, "").with("location", &format!("{to}/{}", r.name())))
        }
        _ => None,
    });
    assert_eq!(run(&server, "returns", json!({})).status.code(), Some(1));
    let to = other.url.clone();
    let server = plane(move |r, _| {
        (r.name() == "put").then(|| Reply::new(307, "").with("location", &format!("{to}/put")))
    });
    run(&server, "stores", json!({}));
    assert_eq!(completed(&server)["error"]["category"], "INFRASTRUCTURE");
    assert!(other.requests().is_empty());
}

#[test]
fn attacks_by_size_fail() {
    // An endless answer to started, and an input that is larger than the limit.
    let server = plane(|r, before| match (r.name(), before) {
        ("started", 0) => Some(Reply::new(200, vec![b' '; 4 << 20])),
        ("input", _) => Some(Reply::new(200, vec![b'x'; 9 << 20])),
        _ => None,
    });
    let input = json!({"url": format!("{}/input", server.url)});
    let more = json!({"program": {"input": input}, "resources": {"timeoutMs": 6000}});
    let begun = Instant::now();
    run(&server, "stores", more);
    assert!(begun.elapsed() < PATIENCE);
    assert_eq!(server.named("started").len(), 2);
    let report = completed(&server);
    assert_eq!(report["outcome"], "FAILED");
    assert!(server.named("put").is_empty(), "nothing was stored");
}
