//! `diff` pairs what two versions of a program move by array, cause and file, and then by line.

mod scratch;

use resident::audit::{Document, DocumentSite};
use resident_documents::Flow;

use scratch::{Scratch, run};

/// A download for `host()`: its line, its array, its copies and its bytes.
type Download<'t> = (u32, &'t str, u64, u64);

fn document(downloads: &[Download<'_>]) -> Document {
    let site = |(line, array, count, bytes): &Download<'_>| DocumentSite {
        site: format!("src/main.rs:{line}:7"),
        array: (*array).to_owned(),
        direction: "to_host".to_owned(),
        device: "cpu:0".to_owned(),
        source: None,
        peer: None,
        cause: "host".to_owned(),
        count: *count,
        bytes: *bytes,
        stale_since: None,
        never_there: true,
    };
    let mut document = Document::default();
    document.version = 1;
    document.sites = downloads.iter().map(site).collect();
    for (.., count, bytes) in downloads {
        document.to_host += Flow { count: *count, bytes: *bytes };
    }
    document
}

/// The lines that name a change.
fn changes(before: &[Download<'_>], after: &[Download<'_>]) -> Vec<String> {
    let file = |name: &str, downloads: &[Download<'_>]| {
        Scratch::new(&format!("diff-{name}.json"), &document(downloads).to_json())
    };
    let (before, after) = (file("before", before), file("after", after));
    let output = run(&["diff", before.path(), after.path()]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect()
}

const MB: u64 = 1_000_000;

#[test]
fn lines_that_only_move_are_no_change() {
    let before = [(10, "field", 1, 40 * MB), (20, "field", 1, 40 * MB), (30, "sum", 5, 20)];
    let after = [(20, "field", 1, 40 * MB), (30, "field", 1, 40 * MB), (37, "sum", 5, 20)];
    assert_eq!(changes(&before, &after), [""; 0]);
    let before = [(9, "f32[10] made at src/main.rs:3:17", 2, 80)];
    let after = [(12, "f32[10] made at src/main.rs:6:17", 2, 80)];
    assert_eq!(changes(&before, &after), [""; 0], "the names of unnamed arrays have lines too");
    let after = [(12, "f64[10] made at src/main.rs:6:17", 2, 80)];
    assert_eq!(changes(&before, &after).len(), 2, "another type is another array");
}

#[test]
fn what_really_changes_among_lines_that_move_is_named_with_both_lines() {
    let before = [(10, "field", 1, 40 * MB), (20, "field", 1, 10 * MB)];
    let after = [(20, "field", 1, 40 * MB), (30, "field", 3, 30 * MB)];
    let expected = "+20_000_000 bytes, +2 copies to_host of \"field\" for host at src/main.rs:30 \
                    (line 20 before)";
    assert_eq!(changes(&before, &after), [expected]);
    let expected = "-20_000_000 bytes, -2 copies to_host of \"field\" for host at src/main.rs:20 \
                    (line 30 before)";
    assert_eq!(changes(&after, &before), [expected]);
}

#[test]
fn lines_that_come_and_go_are_named_alone() {
    let before = [(10, "field", 1, 40), (20, "field", 1, 40)];
    let after = [(20, "field", 1, 40)];
    let gone = "-40 bytes, -1 copy to_host of \"field\" for host at src/main.rs:10";
    assert_eq!(changes(&before, &after), [gone]);
    let after = [(10, "field", 2, 60), (15, "field", 1, 1), (20, "field", 1, 40)];
    let grown = "+20 bytes, +1 copy to_host of \"field\" for host at src/main.rs:10";
    let come = "+1 byte, +1 copy to_host of \"field\" for host at src/main.rs:15";
    assert_eq!(changes(&before, &after), [grown, come]);
}

/// Reports may be of other programs: what names no line is paired too.
#[test]
fn hostile_names_and_sites_are_escaped() {
    let name = "\u{1b}[31m\u{202e}\n".to_owned() + &"x".repeat(5000);
    let mut hostile = document(&[(1, &name, 1, 40)]);
    hostile.sites[0].site = "no\u{7}where".to_owned();
    let before = Scratch::new("hostile-before.json", &document(&[]).to_json());
    let after = Scratch::new("hostile-after.json", &hostile.to_json());
    let output = run(&["diff", before.path(), after.path()]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains(" of \"\\u{1b}[31m\\u{202e}\\nxxx"), "{text}");
    assert!(text.ends_with("xxx\" for host at no\\u{7}where\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 200), "{text}");
}

#[test]
fn one_of_the_reports_may_be_standard_input() {
    let report = document(&[(1, "field", 1, 40)]).to_json();
    let same = Scratch::new("diff-stdin.json", &report);
    for arguments in [["diff", "-", same.path()], ["diff", same.path(), "-"]] {
        assert_eq!(scratch::run_with(&arguments, &report).status.code(), Some(0));
    }
    scratch::assert_refused(&scratch::run_with(&["diff", "-", "-"], &report), "only one of the");
}
