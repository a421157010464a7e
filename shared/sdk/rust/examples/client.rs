//! A client: runs the example worker_csv, follows its output, and prints the file that it wrote.
//!
//! It needs a local system that runs programs of this host: `sortie dev` in another terminal, and
//! SORTIE_TOKEN, which is in the file .sortie/token of its folder. SORTIE_URL is the address of
//! another system.
//!
//! ```sh
//! cargo build --example worker_csv
//! cargo run --features client --example client -- target/debug/examples/worker_csv table.csv
//! ```

use std::io::Write as _;
use std::process::ExitCode;

use sortie_worker::client::{Client, Error};
use sortie_worker::models::{RunDefinition, RunDefinitionCompletion, State};

const MOST_BYTES: usize = 8 << 20;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [worker, table] = &arguments[..] else {
        eprintln!("usage: client WORKER TABLE.csv");
        return ExitCode::from(2);
    };
    match import(worker, table).await {
        Ok(State::Completed) => ExitCode::SUCCESS,
        Ok(state) => {
            eprintln!("the run ended as {state}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn import(worker: &str, table: &str) -> Result<State, Box<dyn std::error::Error>> {
    let worker = std::path::absolute(worker)?;
    let client = Client::from_env()?;
    let definition = RunDefinition {
        image: Some(format!("exec:{}", worker.display())),
        completion: Some(RunDefinitionCompletion::Callback), // the worker reports its end
        ..Default::default()
    };
    let definition = definition.with_input(std::fs::read(table)?);
    let run = client.runs().create(&definition).await?;
    eprintln!("run {}", run.run_id);
    if let Err(error) = follow(&client, &run.task_id).await {
        eprintln!("cannot follow the output: {error}");
    }
    let ended = client.runs().wait(&run.run_id).await?;
    if ended.succeeded() {
        let output = client.runs().output(&run.task_id).await?;
        std::io::stdout().write_all(&output.bytes(MOST_BYTES).await?)?;
    }
    Ok(ended.state)
}

async fn follow(client: &Client, task_id: &str) -> Result<(), Error> {
    let mut lines = client.runs().follow_logs(task_id);
    while let Some(line) = lines.next().await {
        eprint!("{}", String::from_utf8_lossy(&line?.bytes()));
    }
    Ok(())
}
