//! The program as a user calls it: its output, its messages and its exit codes.

mod scratch;

use std::fs;
use std::path::Path;

use resident::{Device, SmartArray, audit};
use serde_json::{Value, json};

use scratch::{Scratch, assert_refused, run, run_with, stdout};

const SAMPLE: &str = include_str!("sample.json");

#[test]
fn a_report_is_shown_the_largest_first() {
    let sample = Scratch::new("show.json", SAMPLE);
    insta::assert_snapshot!(stdout(&run(&["show", sample.path()])));
}

#[test]
fn a_report_is_shown_by_array() {
    let sample = Scratch::new("array.json", SAMPLE);
    insta::assert_snapshot!(stdout(&run(&["show", "--by", "array", sample.path()])));
}

#[test]
fn a_report_is_shown_by_stream() {
    let sample = Scratch::new("stream.json", SAMPLE);
    insta::assert_snapshot!(stdout(&run(&["show", "--by", "stream", sample.path()])));
}

/// The sample with a change.
fn edited(edit: impl FnOnce(&mut Value)) -> String {
    let mut report = serde_json::from_str(SAMPLE).expect("JSON");
    edit(&mut report);
    report.to_string()
}

/// The sample with messages to and from rank 1.
fn with_messages() -> String {
    let site = |direction: &str, bytes: u64| {
        json!({
            "site": "src/main.rs:20:5", "array": "edge", "direction": direction, "device": "host",
            "source": null, "cause": "mpi", "count": 2, "bytes": bytes, "stale_since": null,
            "never_there": false, "peer": 1,
        })
    };
    edited(|report| {
        let sites = report["sites"].as_array_mut().expect("a list");
        sites.splice(..0, [site("sent", 1600), site("received", 800)]);
        report["sent"] = json!({"count": 2, "bytes": 1600});
        report["received"] = json!({"count": 2, "bytes": 800});
        report["peer_waits"] = json!({"count": 3, "nanoseconds": 45000});
    })
}

#[test]
fn messages_between_processes_are_shown_beside_the_copies() {
    let sample = Scratch::new("messages.json", &with_messages());
    insta::assert_snapshot!(stdout(&run(&["show", sample.path()])));
    let before = Scratch::new("no_messages.json", SAMPLE);
    let worse = run(&["diff", before.path(), sample.path()]);
    assert_eq!(worse.status.code(), Some(1));
    let text = String::from_utf8_lossy(&worse.stdout);
    assert!(text.contains("sent to ranks    0 bytes in 0 copies -> 1_600 bytes"), "{text}");
}

#[test]
fn a_report_of_an_earlier_library_is_read_and_has_no_streams() {
    let without_streams = |report: &mut Value| {
        report.as_object_mut().expect("an object").remove("streams").expect("it is there");
    };
    let earlier = Scratch::new("earlier.json", &edited(without_streams));
    assert_eq!(
        stdout(&run(&["show", earlier.path()])),
        stdout(&run(&["show", Scratch::new("later.json", SAMPLE).path()]))
    );
    let refused = run(&["show", "--by", "stream", earlier.path()]);
    assert_refused(&refused, "earlier.json: the report does not have its copies by stream");
    let empty = edited(|report| {
        without_streams(report);
        report["sites"] = json!([]);
    });
    let empty = Scratch::new("empty_earlier.json", &empty);
    assert!(stdout(&run(&["show", "--by", "stream", empty.path()])).contains("to devices"));
}

#[test]
fn more_copies_than_before_are_an_exit_code_and_a_line() {
    let before = Scratch::new("before.json", SAMPLE);
    let more = edited(|report| {
        report["to_host"]["bytes"] = json!(4840);
        let sites = report["sites"].as_array_mut().expect("a list").iter_mut();
        let downloads = sites.filter(|site| site["bytes"] == 4400);
        downloads.for_each(|site| site["bytes"] = json!(4840));
    });
    let after = Scratch::new("after.json", &more);
    let worse = run(&["diff", before.path(), after.path()]);
    assert_eq!(worse.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8_lossy(&worse.stdout));
    for tolerated in [
        ["diff", before.path(), after.path(), "--tolerance=10"],
        ["diff", after.path(), before.path(), "--tolerance=0"],
    ] {
        assert_eq!(run(&tolerated).status.code(), Some(0), "{tolerated:?}");
    }
}

#[test]
fn reports_that_are_none_are_refused_with_their_name() {
    let cut = &SAMPLE[..SAMPLE.len() / 2];
    let newer = SAMPLE.replace("\"version\": 1", "\"version\": 2");
    let wrong = SAMPLE.replace("\"launches\": 12", "\"launches\": -1");
    for (name, contents, words) in [
        ("cut.json", cut, "the report is cut off"),
        ("text.json", "this is no report", "not JSON"),
        ("newer.json", &newer, "a report of version 2; this program reads version 1"),
        ("other.json", "{\"a\": 1}", "no audit report: it has no \"version\""),
        ("wrong.json", &wrong, "no audit report"),
        ("empty.json", "", "the report is cut off"),
    ] {
        let file = Scratch::new(name, contents);
        let output = run(&["show", file.path()]);
        assert_refused(&output, words);
        assert_refused(&output, name);
    }
    assert_refused(&run(&["show", "/no/such/report.json"]), "/no/such/report.json: ");
    let sample = Scratch::new("unwritten.json", SAMPLE);
    let output = run(&["html", sample.path(), "/no/such/folder/a.html"]);
    assert_refused(&output, "/no/such/folder/a.html: ");
}

#[test]
fn a_report_is_read_from_standard_input() {
    let sample = Scratch::new("stdin.json", SAMPLE);
    for arguments in [&["show"][..], &["show", "--by=array"]] {
        let piped = run_with(&[arguments, &["-"]].concat(), SAMPLE);
        assert_eq!(stdout(&piped), stdout(&run(&[arguments, &[sample.path()]].concat())));
    }
    let pages = ["piped", "named"].map(|name| Scratch::new(name, ""));
    assert_eq!(stdout(&run_with(&["html", "-", pages[0].path()], SAMPLE)), "");
    assert_eq!(stdout(&run(&["html", sample.path(), pages[1].path()])), "");
    let [piped, named] = pages.map(|page| fs::read_to_string(page.path()).expect("it was written"));
    assert_eq!(piped, named);
    assert_refused(&run_with(&["show", "-"], "{}"), "standard input: no audit report");
    assert_refused(
        &run_with(&["html", "-", "/tmp/none"], "{"),
        "standard input: the report is cut",
    );
}

/// What is written into a page is the report as it was, its keys of later libraries too.
#[test]
fn a_page_has_the_text_of_its_report() {
    let later = SAMPLE.replacen("\"version\": 1", "\"version\": 1, \"later\": [\"</script>\"]", 1);
    let (sample, output) = (Scratch::new("later.json", &later), Scratch::new("later.html", ""));
    assert_eq!(stdout(&run(&["html", sample.path(), output.path()])), "");
    let page = fs::read_to_string(output.path()).expect("it was written");
    assert!(page.contains("\"later\": [\"\\u003c/script>\"]") && page.contains("[31m"), "{page}");
    assert_eq!(page.matches("</script>").count(), 2, "of the document and of the script");
}

#[test]
fn a_table_without_rows_has_no_head() {
    let without_rows = |report: &mut Value| {
        ["sites", "streams", "findings"].into_iter().for_each(|key| report[key] = json!([]));
    };
    let empty = Scratch::new("no_rows.json", &edited(without_rows));
    for by in ["--by=site", "--by=array", "--by=device", "--by=stream"] {
        let text = stdout(&run(&["show", by, empty.path()]));
        assert!(!text.contains("direction") && text.contains("launches: 12"), "{text}");
    }
}

#[test]
fn hostile_names_are_escaped_and_shortened() {
    let hostile = "\u{1b}[31m\u{202e}\n\u{e0041}".to_owned() + &"x".repeat(5000);
    let report = edited(|report| {
        let keys = ["array", "device", "direction", "cause"];
        keys.into_iter().for_each(|key| report["sites"][0][key] = json!(hostile));
        report["streams"][0]["device"] = json!(hostile);
    });
    let file = Scratch::new("hostile.json", &report);
    for by in ["--by=site", "--by=array", "--by=device", "--by=stream"] {
        let text = stdout(&run(&["show", by, file.path()]));
        let is_hostile =
            |it: char| it != '\n' && (it.is_control() || "\u{202e}\u{e0041}".contains(it));
        assert!(!text.contains(is_hostile), "{text}");
        assert!(text.lines().count() < 60 && text.contains("u{1b}"), "{text}");
    }
}

#[test]
fn the_descriptions_of_the_schema_are_plain_text() {
    fn descriptions<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
        if let Some(members) = value.as_object() {
            let own = members.get("description").and_then(Value::as_str);
            found.extend(own);
            members.values().for_each(|member| descriptions(member, found));
        }
        value.as_array().into_iter().flatten().for_each(|item| descriptions(item, found));
    }
    let schema: Value = serde_json::from_str(&stdout(&run(&["schema"]))).expect("JSON");
    let mut found = Vec::new();
    descriptions(&schema, &mut found);
    assert!(found.len() > 50, "{found:?}");
    for text in found {
        let marks = ["`", "](", "html", "[crate", "::html"];
        assert!(marks.iter().all(|mark| !text.contains(mark)), "{text}");
    }
}

/// Records are read one after the other: a report of 30 MB is shown in 8 MB of memory.
#[cfg(target_os = "linux")]
#[test]
fn records_are_not_kept_in_memory() {
    let record = SAMPLE.lines().find(|line| line.contains("\"kind\": \"copy\"")).expect("a copy");
    let record = record.trim().trim_end_matches(',');
    let records = format!("\"records\": [{}", format!("{record}, ").repeat(100_000));
    let large = SAMPLE.replacen("\"records\": [", &records, 1);
    assert!(large.len() > 30_000_000, "{}", large.len());
    let (small, large) = (Scratch::new("small.json", SAMPLE), Scratch::new("large.json", &large));
    let page = Scratch::new("large.html", "");
    let program = env!("CARGO_BIN_EXE_resident-report");
    let limited = |arguments: &[&str]| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -d 8192 && exec \"$@\"", "sh", program]).args(arguments);
        command.output().expect("there is a shell")
    };
    let shown = limited(&["show", large.path()]);
    assert_eq!(stdout(&shown), stdout(&run(&["show", small.path()])));
    assert_eq!(limited(&["diff", small.path(), large.path()]).status.code(), Some(0));
    assert_eq!(stdout(&limited(&["html", large.path(), page.path()])), "");
    let kept = limited(&["perfetto", large.path(), page.path()]);
    assert!(!kept.status.success(), "the limit is one");
}

#[test]
fn help_says_what_each_task_does() {
    let help = stdout(&run(&["--help"]));
    for task in ["show", "html", "perfetto", "diff", "merge", "schema"] {
        assert!(help.contains(task) && !stdout(&run(&[task, "--help"])).is_empty());
    }
    assert_eq!(run(&["shows"]).status.code(), Some(2));
    assert_eq!(run(&["diff", "a", "b", "--tolerance=-1"]).status.code(), Some(2));
}

#[test]
fn what_the_library_writes_is_read_and_written_again_as_it_was() {
    let array = SmartArray::from(vec![1_u8; 100]).named("a \"name\" \u{1}");
    let stream = Device::cpu().stream();
    let (outcome, report) = audit::capture(|| {
        array.prefetch(&stream)?;
        stream.synchronize()
    });
    outcome.expect("enough memory");
    let document: audit::Document = serde_json::from_str(&report.to_json()).expect("JSON");
    assert_eq!(document, report.to_document());
    let sample: audit::Document = serde_json::from_str(SAMPLE).expect("JSON");
    let again: audit::Document = serde_json::from_str(&sample.to_json()).expect("JSON");
    assert_eq!(sample, again);
    assert!(document.process.is_some() && !document.memory.is_empty());
    for document in [sample, document] {
        let by_serde = serde_json::to_value(&document).expect("JSON");
        let by_hand: Value = serde_json::from_str(&document.to_json()).expect("JSON");
        assert_eq!(by_serde, by_hand, "the two writers agree");
    }
}

#[test]
fn pages_and_traces_are_written() {
    let sample = Scratch::new("formats.json", SAMPLE);
    for (task, start) in [("html", "<!DOCTYPE html>"), ("perfetto", "\n")] {
        let output = Scratch::new(task, "");
        assert_eq!(stdout(&run(&[task, sample.path(), output.path()])), "");
        let written = fs::read(Path::new(output.path())).expect("it was written");
        assert!(written.starts_with(start.as_bytes()));
    }
}

#[test]
fn the_schema_names_the_keys_of_a_report() {
    let schema: Value = serde_json::from_str(&stdout(&run(&["schema"]))).expect("JSON");
    let sample: Value = serde_json::from_str(SAMPLE).expect("JSON");
    let properties = schema["properties"].as_object().expect("an object");
    let keys = sample.as_object().expect("an object");
    assert!(keys.keys().all(|key| properties.contains_key(key)));
    // What the checker checked is in the reports that programs write at their end.
    let others: Vec<_> = properties.keys().filter(|key| !keys.contains_key(*key)).collect();
    // Reports of earlier libraries do not have the others.
    assert_eq!(others, ["checked", "memory", "process", "written_unix_ns"]);
}
