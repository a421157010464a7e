//! The digests of the generated files and of their sources.

use std::fmt::Write as _;

/// Returns the digests of the sources and of the files, as sha256sum prints them. A test in Go
/// compares them without cargo. "sha256sum -c tests/generated/generated.sum" does the same.
pub fn digests(files: &[(&str, String)]) -> String {
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let mut lines: Vec<(&str, String)> = files
        .iter()
        .map(|(path, text)| (*path, digest(text.as_bytes())))
        .collect();
    lines.push((
        "../../wire/contract/openapi.yaml",
        digest(&std::fs::read(super::path()).unwrap()),
    ));
    for path in ["tests/generated/mod.rs", "tests/generated/sums.rs"] {
        lines.push((
            path,
            digest(&std::fs::read(format!("{here}/{path}")).unwrap()),
        ));
    }
    lines.sort();
    lines.iter().fold(String::new(), |mut text, (path, sum)| {
        let _ = writeln!(text, "{sum}  {path}");
        text
    })
}

fn digest(content: &[u8]) -> String {
    let sum = ring::digest::digest(&ring::digest::SHA256, content);
    sum.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
