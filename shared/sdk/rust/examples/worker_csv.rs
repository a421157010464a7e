//! A worker: imports a CSV file into a store, with checkpoints, and can be cancelled.
//!
//! Each row of the input is `day,product,amount`. The store is a folder with a file for each
//! product, and a checkpoint: the number of rows that are stored. A later attempt, also of
//! another process, continues behind the checkpoint. The output is a CSV file with the sum of
//! each product.
//!
//! STORE is the folder; without it the import begins at the first row. PAUSE_MS is how long a batch takes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use sortie_worker::{Category, Failure, Output, Task, Worker};

const BATCH: usize = 20;

fn main() -> ExitCode {
    Worker::new().send_output(true).run(import)
}

async fn import(task: Task) -> Result<(), Failure> {
    task.phase("read");
    let input = String::from_utf8(task.input().await?)?;
    let input = if input.is_empty() { sample() } else { input };
    let rows = parse(&input)?;

    task.phase("import");
    let mut store = Store::open(&task)?;
    let first = store.checkpoint;
    if first > 0 {
        writeln!(task.stdout(), "continue behind row {first}")?;
    }
    let pause = variable("PAUSE_MS")
        .and_then(|ms| ms.parse().ok())
        .unwrap_or(100);
    for batch in rows[first.min(rows.len())..].chunks(BATCH) {
        // A select ends the pause at once; check is for work without a place to wait.
        tokio::select! {
            () = task.cancelled().cancelled_owned() => {}
            () = tokio::time::sleep(Duration::from_millis(pause)) => {}
        }
        task.partial(serde_json::json!({"recordsProcessed": store.checkpoint, "lastCheckpoint": store.checkpoint}));
        task.check()?;
        store.add(batch)?;
        let done = store.checkpoint;
        task.progress(
            100.0 * done as f64 / rows.len() as f64,
            &format!("row {done} of {}", rows.len()),
        );
        writeln!(task.stdout(), "stored {done} rows")?;
    }

    task.phase("sum up");
    let mut table = String::from("product,rows,amount\n");
    for (product, (count, amount)) in store.sums()? {
        table.push_str(&format!("{product},{count},{amount}\n"));
    }
    task.metric("rows", rows.len());
    task.metric("rowsOfThisAttempt", rows.len().saturating_sub(first));
    let output = Output::bytes(table)
        .content_type("text/csv")
        .file_name("sums.csv");
    task.output(output).await?;
    store.close()
}

struct Row<'a> {
    day: &'a str,
    product: &'a str,
    amount: i64,
}

fn parse(input: &str) -> Result<Vec<Row<'_>>, Failure> {
    let mut rows = Vec::new();
    for (number, line) in input
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
    {
        let bad = |what: &str| {
            Failure::new(
                Category::DataQuality,
                format!("line {}: {what}", number + 1),
            )
        };
        let fields: Vec<&str> = line.split(',').collect();
        let [day, product, amount] = fields[..] else {
            return Err(bad("want three columns"));
        };
        let amount = amount
            .parse()
            .map_err(|_| bad("the amount is not a whole number"))?;
        if product.is_empty()
            || !product
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        {
            return Err(bad("malformed product"));
        }
        rows.push(Row {
            day,
            product,
            amount,
        });
    }
    Ok(rows)
}

/// Files of rows. The checkpoint is replaced after the rows of its batch are stored; rows
/// behind it are of a batch that was interrupted, and are dropped.
struct Store {
    folder: PathBuf,
    temporary: bool,
    checkpoint: usize,
}

impl Store {
    fn open(task: &Task) -> Result<Self, Failure> {
        let given = variable("STORE");
        let folder = match &given {
            Some(folder) => PathBuf::from(folder),
            None => std::env::temp_dir().join(format!("import-{}", task.worker_id())),
        };
        fs::create_dir_all(&folder)?;
        let mut store = Self {
            folder,
            temporary: given.is_none(),
            checkpoint: 0,
        };
        let path = store.folder.join("checkpoint");
        if path.exists() {
            store.checkpoint = fs::read_to_string(path)?.trim().parse()?;
        }
        store.drop_interrupted()?;
        Ok(store)
    }

    fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "csv") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    fn drop_interrupted(&self) -> Result<(), Failure> {
        for path in self.files()? {
            let text = fs::read_to_string(&path)?;
            let kept: String = text
                .split_inclusive('\n')
                .filter(|line| number_of(line).is_some_and(|number| number <= self.checkpoint))
                .collect();
            if kept.len() < text.len() {
                fs::write(&path, kept)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, rows: &[Row<'_>]) -> Result<(), Failure> {
        let mut texts: BTreeMap<&str, String> = BTreeMap::new();
        for (row, number) in rows.iter().zip(self.checkpoint + 1..) {
            let line = format!("{number},{},{}\n", row.day, row.amount);
            texts.entry(row.product).or_default().push_str(&line);
        }
        for (product, text) in texts {
            let path = self.folder.join(format!("{product}.csv"));
            let mut file = fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)?;
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
        }
        self.checkpoint += rows.len();
        let (new, path) = (
            self.folder.join("checkpoint.new"),
            self.folder.join("checkpoint"),
        );
        fs::write(&new, format!("{}\n", self.checkpoint))?;
        fs::File::open(&new)?.sync_data()?;
        fs::rename(new, path)?;
        Ok(())
    }

    fn sums(&self) -> Result<BTreeMap<String, (usize, i64)>, Failure> {
        let mut sums = BTreeMap::new();
        for path in self.files()? {
            let product = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let sum: &mut (usize, i64) = sums.entry(product).or_default();
            for line in fs::read_to_string(&path)?.lines() {
                sum.0 += 1;
                sum.1 += line.rsplit(',').next().unwrap_or_default().parse::<i64>()?;
            }
        }
        Ok(sums)
    }

    fn close(self) -> Result<(), Failure> {
        if self.temporary {
            fs::remove_dir_all(&self.folder)?;
        }
        Ok(())
    }
}

fn number_of(line: &str) -> Option<usize> {
    // A line without its end was cut by a crash.
    line.strip_suffix('\n')?.split(',').next()?.parse().ok()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn sample() -> String {
    let products = ["apple", "pear", "plum"];
    (0..800)
        .map(|n| format!("2026-01-{:02},{},{}\n", n / 30 + 1, products[n % 3], n))
        .collect()
}
