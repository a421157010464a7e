//! The resource figures of this process, for the metrics of the report.

use serde_json::{Map, Value};

/// The unit of times in `/proc`, on every Linux.
const TICKS_PER_SECOND: u64 = 100;

/// Returns the figures that the system reports: on Linux. Children count once they were
/// waited for.
pub(crate) fn usage() -> Map<String, Value> {
    let mut figures = Map::new();
    let mut set = |name: &str, value: Option<u64>| {
        if let Some(value) = value {
            figures.insert(name.to_owned(), Value::from(value));
        }
    };
    set("cpuTimeMs", cpu());
    set(
        "peakMemoryBytes",
        field("status", "VmHWM:").map(|kb| kb << 10),
    );
    set("ioReadBytes", field("io", "rchar:"));
    set("ioWriteBytes", field("io", "wchar:"));
    figures
}

fn cpu() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may have spaces; its parenthesis is the last one.
    let (_, rest) = text.rsplit_once(") ")?;
    let ticks: u64 = rest
        .split_ascii_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|word| word.parse::<u64>().ok())
        .sum();
    Some(ticks * 1000 / TICKS_PER_SECOND)
}

fn field(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn figures_are_those_of_this_process() {
        let figures = super::usage();
        assert!(
            figures["peakMemoryBytes"].as_u64() > Some(1 << 20),
            "{figures:?}"
        );
        assert!(figures["ioReadBytes"].as_u64() > Some(100), "{figures:?}");
        assert!(figures.contains_key("cpuTimeMs"), "{figures:?}");
    }
}
