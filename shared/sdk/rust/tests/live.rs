//! Worker, client and webhooks against a real local system. test.sh runs it: SORTIE_BIN is the
//! program, and SORTIE_EXAMPLES the folder of the built examples.
#![cfg(all(feature = "client", feature = "webhooks"))]

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use sortie_worker::client::{Client, Error, EventQuery, Method, RunQuery};
use sortie_worker::models::{RunDefinition, RunDefinitionCompletion, State};

const PATIENCE: Duration = Duration::from_secs(180);

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run test.sh"))
}

fn example(name: &str) -> String {
    let path = PathBuf::from(variable("SORTIE_EXAMPLES")).join(name);
    assert!(path.exists(), "{}", path.display());
    path.display().to_string()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// A server that can be killed and started again, in a folder of its own.
struct System {
    folder: PathBuf,
    address: String,
    token: String,
    process: Option<Child>,
}

impl System {
    fn start() -> Self {
        let port = free_port();
        let folder =
            std::env::temp_dir().join(format!("sortie-rust-{}-{port}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let address = format!("127.0.0.1:{port}");
        let mut system = Self {
            folder,
            address,
            token: String::new(),
            process: None,
        };
        system.serve();
        system
    }

    fn serve(&mut self) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("log.txt"))
            .unwrap();
        let mut process = Command::new(variable("SORTIE_BIN"))
            .args(["dev", "--addr", &self.address, "--json", "--data"])
            .arg(self.folder.join("data"))
            .env("SORTIE_HOOK_ALLOW", "127.0.0.1")
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let line = first_line(process.stdout.take().unwrap()).0;
        self.process = Some(process);
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            panic!(
                "{}",
                std::fs::read_to_string(self.folder.join("log.txt")).unwrap()
            )
        });
        let token = std::fs::read_to_string(said["tokenFile"].as_str().unwrap()).unwrap();
        self.token = token.trim().to_owned();
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    fn client(&self) -> Client {
        Client::builder()
            .url(format!("http://{}", self.address))
            .token(&self.token)
            .build()
            .unwrap()
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // SIGTERM lets it end its workers.
            let _ = Command::new("kill").arg(process.id().to_string()).status();
            let _ = process.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns the first line that a process prints. Its pipe stays open.
fn first_line(stdout: ChildStdout) -> (String, BufReader<ChildStdout>) {
    let mut reader = BufReader::new(stdout);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    (line, reader)
}

fn table(rows: usize) -> String {
    let products = ["apple", "pear"];
    (0..rows)
        .map(|n| format!("2026-01-02,{},{n}\n", products[n % 2]))
        .collect()
}

fn import(rows: usize, env: &[(&str, String)]) -> RunDefinition {
    let env = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    let definition = RunDefinition {
        image: Some(format!("exec:{}", example("worker_csv"))),
        completion: Some(RunDefinitionCompletion::Callback),
        env: Some(env),
        ..Default::default()
    };
    definition.with_input(table(rows))
}

fn pause(ms: u32) -> (&'static str, String) {
    ("PAUSE_MS", ms.to_string())
}

async fn within<T>(what: &str, calling: impl std::future::Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, calling)
        .await
        .unwrap_or_else(|_| panic!("{what} takes too long"))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server: test.sh"]
async fn live() {
    let mut system = System::start();
    let client = system.client();
    example_submits_follows_and_fetches(&system);
    output_is_stored(&client).await;
    cancel_leaves_a_checkpoint_and_a_later_run_continues(&system, &client).await;
    failure_has_its_category(&client).await;
    errors_of_a_real_server(&client).await;
    reads(&client).await;
    webhook_is_verified(&client).await;
    events_resume_over_a_kill(&mut system, &client).await;
}

fn example_submits_follows_and_fetches(system: &System) {
    let path = system.folder.join("table.csv");
    std::fs::write(&path, table(60)).unwrap();
    let done = Command::new(example("client"))
        .args([example("worker_csv"), path.display().to_string()])
        .env("SORTIE_URL", format!("http://{}", system.address))
        .env("SORTIE_TOKEN", &system.token)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() && said.contains("stored 60 rows\n"),
        "{said}"
    );
    let sums: i64 = (0..60).sum();
    let text = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["product,rows,amount", "apple,30,870"]);
    assert_eq!(lines[2], format!("pear,30,{}", sums - 870));
}

async fn output_is_stored(client: &Client) {
    let run = client
        .runs()
        .create(&import(40, &[pause(1)]))
        .await
        .unwrap();
    let task = within("the run", client.runs().wait(&run.run_id))
        .await
        .unwrap();
    assert!(task.succeeded());
    assert_eq!(task.metrics.unwrap()["rows"], 40);
    let download = client.runs().output(&run.task_id).await.unwrap();
    assert_eq!(download.file_name(), "sums.csv");
    let size = download.size();
    let path = std::env::temp_dir().join(format!("sums-{}.csv", std::process::id()));
    assert_eq!(Some(download.save(&path).await.unwrap()), size);
    assert!(std::fs::read_to_string(&path)
        .unwrap()
        .starts_with("product,rows,amount\napple,20,"));
    std::fs::remove_file(path).unwrap();
    let log = client.runs().logs(&run.task_id).await.unwrap();
    assert!(String::from_utf8(log).unwrap().contains("stored 40 rows"));
}

async fn cancel_leaves_a_checkpoint_and_a_later_run_continues(system: &System, client: &Client) {
    let store = ("STORE", system.folder.join("store").display().to_string());
    let slow = import(400, &[pause(700), store.clone()]);
    let run = client.runs().create(&slow).await.unwrap();
    let mut lines = client.runs().follow_logs(&run.task_id);
    let line = within("the log", lines.next()).await.unwrap().unwrap();
    assert!(line.bytes().starts_with(b"stored 20 rows"), "{line:?}");
    let answer = client
        .runs()
        .cancel(&run.run_id, Some("a test"))
        .await
        .unwrap();
    assert_eq!(answer.result.as_str(), "requested");
    let task = within("the cancel", client.runs().wait(&run.run_id))
        .await
        .unwrap();
    assert_eq!(task.state, State::Cancelled);
    let report = task.worker.unwrap().report.unwrap();
    assert_eq!(report.cancelled_during_phase.as_deref(), Some("import"));
    let stored = report.partial_progress.unwrap()["lastCheckpoint"]
        .as_i64()
        .unwrap();
    assert!((20..400).contains(&stored), "{stored}");

    let run = client
        .runs()
        .create(&import(400, &[pause(1), store]))
        .await
        .unwrap();
    let task = within("the run", client.runs().wait(&run.run_id))
        .await
        .unwrap();
    assert!(task.succeeded());
    assert_eq!(
        task.metrics.unwrap()["rowsOfThisAttempt"].as_i64(),
        Some(400 - stored)
    );
    let output = client
        .runs()
        .output(&run.task_id)
        .await
        .unwrap()
        .bytes(1000)
        .await
        .unwrap();
    let amount: i64 = (0..400).filter(|n| n % 2 == 0).sum();
    assert!(String::from_utf8(output)
        .unwrap()
        .contains(&format!("apple,200,{amount}\n")));
}

async fn failure_has_its_category(client: &Client) {
    let definition = import(0, &[pause(1)]).with_input("2026-01-02,apple,many\n");
    let run = client.runs().create(&definition).await.unwrap();
    let task = within("the run", client.runs().wait(&run.run_id))
        .await
        .unwrap();
    assert_eq!((task.state, task.attempt), (State::Failed, 1));
    let error = task.worker.unwrap().report.unwrap().error.unwrap();
    assert_eq!(error.category.as_str(), "DATA_QUALITY");
    assert!(
        error.message.contains("line 1: the amount"),
        "{}",
        error.message
    );
    // A run without success can be explained and retried.
    assert!(
        client
            .runs()
            .explain(&run.run_id)
            .await
            .unwrap()
            .message
            .len()
            > 3
    );
    let retry = client.runs().retry(&run.run_id).await.unwrap();
    assert_eq!(retry.retry_of, run.task_id);
    assert_eq!(
        within("the retry", client.runs().wait(&retry.task_id))
            .await
            .unwrap()
            .state,
        State::Failed
    );
}

async fn errors_of_a_real_server(client: &Client) {
    let error = client
        .runs()
        .get("job_01K9XVBAQZF9EHDRXGBEADTZYY")
        .await
        .unwrap_err();
    assert_eq!(error.api().unwrap().status, 404);
    assert!(!error.code().unwrap().is_empty() && !error.api().unwrap().correlation_id.is_empty());
    let error = client
        .runs()
        .create(&RunDefinition::default())
        .await
        .unwrap_err();
    assert!(matches!(error.api().unwrap().status, 400 | 422), "{error}");
}

async fn reads(client: &Client) {
    let query = RunQuery {
        limit: Some(2),
        ..Default::default()
    };
    let runs = client.runs().list(&query).collect(5).await.unwrap();
    assert_eq!(runs.len(), 5);
    assert!(runs.iter().all(|run| run.extra.is_empty()), "{runs:?}");
    let updates = client
        .runs()
        .updates(&runs[0].run_id, 0)
        .collect(100)
        .await
        .unwrap();
    assert!(updates.last().unwrap().status.is_terminal());
    let plan = client.runs().plan(&import(1, &[])).await.unwrap();
    assert!(plan.accepted, "{plan:?}");
    let ticket = client.events().ticket(&Default::default()).await.unwrap();
    assert!(!ticket.ticket.0.is_empty());
    let health = client.call(Method::GET, "/healthz", None).await.unwrap();
    assert!(health.is_object());
}

async fn webhook_is_verified(client: &Client) {
    let port = free_port();
    let body = json!({"url": format!("http://127.0.0.1:{port}/"), "eventTypes": ["job.completed"]});
    let webhook = client
        .call(Method::POST, "/v1/webhooks", Some(&body))
        .await
        .unwrap();
    let mut receiver = Command::new(example("webhook_receiver"))
        .env("WEBHOOK_SECRET", webhook["secret"].as_str().unwrap())
        .env("PORT", port.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (line, mut lines) = first_line(receiver.stdout.take().unwrap());
    assert!(line.starts_with("listening"), "{line}");
    let path = format!("/v1/webhooks/{}", webhook["id"].as_str().unwrap());
    client
        .call(Method::POST, &format!("{path}/test"), None)
        .await
        .unwrap();
    let run = client.runs().create(&import(1, &[pause(1)])).await.unwrap();
    let task = within("the run", client.runs().wait(&run.run_id))
        .await
        .unwrap();
    assert!(task.succeeded());
    let timer = Instant::now();
    let read = tokio::task::spawn_blocking(move || {
        let mut said = [String::new(), String::new()];
        for line in &mut said {
            lines.read_line(line).unwrap();
        }
        said
    });
    let said = within("the webhook", read).await.unwrap();
    assert!(
        said[0].starts_with("webhook.test ") && said[1].starts_with("job.completed "),
        "{said:?}"
    );
    assert!(timer.elapsed() < PATIENCE);
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    client.call(Method::DELETE, &path, None).await.unwrap();
}

async fn events_resume_over_a_kill(system: &mut System, client: &Client) {
    let query = EventQuery {
        after: Some("earliest".into()),
        types: vec!["job.accepted".into(), "job.completed".into()],
        ..Default::default()
    };
    let mut stream = client.events().stream(&query);
    let mut got = Vec::new();
    got.push(within("an event", stream.next()).await.unwrap().unwrap());
    let second = client
        .runs()
        .create(&import(40, &[pause(500)]))
        .await
        .unwrap();
    system.kill();
    system.serve();
    let third = client.runs().create(&import(1, &[pause(1)])).await.unwrap();
    let mut wanted = vec![second.task_id.clone(), third.task_id];
    let follow = async {
        while !wanted.is_empty() {
            let event = stream.next().await.expect("an event")?;
            if event.event_type == "job.completed" {
                let id = event.job.as_ref().and_then(|job| job["id"].as_str());
                wanted.retain(|task| Some(task.as_str()) != id);
            }
            got.push(event);
        }
        Ok::<(), Error>(())
    };
    within("the events", follow).await.unwrap();
    let run = within("the run", client.runs().wait(&second.run_id))
        .await
        .unwrap();
    assert!(run.succeeded());
    let listed = client.events().list(&query).collect(10_000).await.unwrap();
    let ids = |events: &[sortie_worker::models::Event]| -> Vec<String> {
        events.iter().map(|event| event.event_id.clone()).collect()
    };
    assert_eq!(ids(&got), ids(&listed)[..got.len()]);
    assert!(stream.cursor().is_some());
}
