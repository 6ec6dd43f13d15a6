//! What the README shows of reports is what its programs do. Other words of a report may change.

#[path = "first_report.rs"]
mod first_report;
#[path = "mended/rounds.rs"]
mod rounds;

use std::path::Path;

use resident::audit::{self, Cause, Report, Traffic};
use resident::{Device, Result};

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it has one");
    std::fs::read_to_string(root.join(path)).expect("it is there")
}

#[track_caller]
fn readme_shows(words: &str) {
    assert!(text("README.md").contains(words), "README.md lacks:\n{words}");
}

#[test]
fn the_first_program_is_the_example() {
    let program = text("examples/first_report.rs");
    let (_, program) = program.split_once("use resident").expect("it uses the library");
    let program = format!("use resident{}", program.replace("pub fn main", "fn main"));
    readme_shows(&format!("```rust\n{program}```"));
    let file = text("examples/first_report.rs");
    let numbered = |(index, line): (usize, &str)| {
        let (_, number) = line.split_once("// line ")?;
        Some((index + 1, number.split(':').next()?.parse().ok()?))
    };
    let numbers: Vec<(usize, usize)> = file.lines().enumerate().filter_map(numbered).collect();
    assert!(numbers.len() == 4 && numbers.iter().all(|(line, said)| line == said), "{numbers:?}");
}

/// The lines of sites, and those of copies to devices and to the host.
fn is_shown(line: &str) -> bool {
    let words = ["    at ", "  launch  ", "  host  ", "copies  to devices", "copy    to the host"];
    words.iter().any(|word| line.contains(word))
}

/// The line with one space between words: columns may become wider.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_report_of_the_first_program_has_these_lines() -> Result<()> {
    let _here = Device::cpu().enter();
    let (outcome, report) = audit::capture(first_report::main);
    outcome?;
    let report = report.to_string();
    let (copies, _) = report.split_once("memory of ").expect("it was used");
    let shown: Vec<&str> = copies.lines().filter(|line| is_shown(line)).collect();
    assert_eq!(shown.len(), 8, "{report}");
    let printed: Vec<String> = text("README.md").lines().map(words).collect();
    let missing = shown.into_iter().filter(|line| !printed.contains(&words(line)));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&str>::new());
    Ok(())
}

/// `129.0 MB in 42 copies`, of both directions.
fn moved(report: &Report) -> String {
    let Traffic { to_device, to_host, .. } = report.traffic();
    let megabytes = (to_device.bytes + to_host.bytes) as f64 / 1e6;
    format!("{megabytes:.1} MB in {} copies", to_device.count + to_host.count)
}

#[test]
fn the_loop_has_a_finding_until_it_is_mended() -> Result<()> {
    let _here = Device::cpu().enter();
    let reports = [rounds::before, rounds::after].map(audit::capture);
    let [(before, found), (after, clean)] = reports;
    assert_eq!((before?, after?), (1.0, 1.0));
    assert_eq!(clean.findings(), []);
    let kinds: Vec<String> = found.findings().into_iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, ["bounce"]);
    readme_shows(&moved(&found));
    readme_shows(&moved(&clean));
    let guide = text("docs/guide/read_a_report.md");
    let bounced = found.sites().into_iter().filter(|site| site.cause != Cause::Explicit);
    let lines: Vec<String> = bounced.map(|site| site.location.to_string()).collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines.iter().take(3).all(|line| guide.contains(line)), "the guide lacks {lines:?}");
    Ok(())
}
