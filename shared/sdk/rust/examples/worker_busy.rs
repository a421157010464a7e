//! A worker that never yields: a busy loop on the thread of its runtime. It asks whether it
//! must stop, and heartbeats continue all the same.
//!
//! The first argument is how many seconds it takes. With a second one, `deaf`, it never asks.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use sortie_worker::{run, Task};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(5);
    let deaf = arguments.next().is_some_and(|word| word == "deaf");
    run(|task: Task| async move {
        let begun = Instant::now();
        let mut sum = 0_u64;
        while begun.elapsed() < Duration::from_secs(seconds) {
            sum = (0..100_000_u64).fold(sum, |sum, n| sum.wrapping_mul(31).wrapping_add(n));
            if !deaf {
                task.check()?;
            }
            task.progress(
                begun.elapsed().as_secs_f64() * 100.0 / seconds as f64,
                "busy",
            );
        }
        task.metric("sum", sum);
        Ok(())
    })
}
