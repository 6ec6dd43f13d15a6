//! `RESIDENT_AUDIT`: reports of any program when it ends. Each test runs a program, which is an
//! ignored test, in a process of its own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};

use resident::{Result, SmartArray};
use support::lab::lab;
use support::own_process;
use support::test_name;

/// A new folder.
fn folder() -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("resident-at-exit-{}-{number}", std::process::id());
    let folder = env::temp_dir().join(name);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
#[ignore = "moves an array: run in processes of its own by the tests below"]
fn moves() -> Result<()> {
    SmartArray::from(vec![1_u8; 1234]).named("moved").prefetch(&lab().stream())
}

#[test]
#[ignore = "changes nothing: run in processes of its own by the test below"]
fn changes_nothing() -> Result<()> {
    let mut array = SmartArray::from(vec![1_u8; 1234]).named("as it was");
    let stream = lab().stream();
    array.prefetch(&stream)?;
    drop(array.host_mut()?);
    array.prefetch(&stream)
}

#[test]
#[ignore = "panics: run in processes of its own by the test below"]
fn panics() {
    moves().expect("enough memory");
    panic!("the program is wrong");
}

#[test]
fn any_program_writes_the_reports_that_are_asked_for() {
    let folder = folder();
    let path = |name: &str| folder.join(name).to_str().expect("an ASCII path").to_owned();
    let value = format!(
        "summary,json:{},html:{},perfetto:{}",
        path("a.json"),
        path("a.html"),
        path("a.pftrace")
    );
    let output = own_process::run(test_name!(moves), &[("RESIDENT_AUDIT", &value)]);
    own_process::assert_success(&output, "moves");
    let summary = String::from_utf8_lossy(&output.stderr);
    assert!(summary.contains("moved") && summary.contains("1_234 bytes in    1 copy"), "{summary}");
    assert!(summary.lines().all(|line| line.chars().count() <= 100), "{summary}");
    let json = fs::read_to_string(path("a.json")).expect("it was written");
    assert!(json.starts_with(r#"{"version": 1, "to_device": {"count": 1, "bytes": 1234}"#));
    assert!(fs::read_to_string(path("a.html")).expect("it was written").contains("moved"));
    assert!(fs::metadata(path("a.pftrace")).expect("it was written").len() > 100);
    fs::remove_dir_all(folder).expect("a folder");
}

#[test]
#[ignore = "says its rank: run in processes of its own by the test below"]
fn says_its_rank() -> Result<()> {
    moves()?;
    resident::internal::set_rank(6, 8);
    Ok(())
}

/// The reports in a folder, by the names of their files, of a program that asks for `json:NAME`.
fn named_reports(name: &str, test: &str, variables: &[(&str, &str)]) -> (Vec<String>, String) {
    let folder = folder();
    let value = format!("summary,json:{}", folder.join(name).display());
    let variables: Vec<_> =
        [("RESIDENT_AUDIT", &*value)].into_iter().chain(variables.iter().copied()).collect();
    let output = own_process::run(test, &variables);
    own_process::assert_success(&output, test);
    let files = fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("it is readable").file_name().into_string().expect("UTF-8"));
    let files: Vec<String> = files.collect();
    let json = fs::read_to_string(folder.join(&files[0])).expect("it was written");
    fs::remove_dir_all(folder).expect("a folder");
    (files, json + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_files_and_reports_of_a_job_name_their_ranks() {
    let none = [("OMPI_COMM_WORLD_RANK", ""), ("PMI_RANK", ""), ("SLURM_PROCID", "")];
    let launcher = [none[0], ("PMI_RANK", "3"), ("PMI_SIZE", "4")];
    let (files, text) = named_reports("a-%r-100%%.json", test_name!(moves), &launcher);
    assert_eq!(files, ["a-3-100%.json"]);
    assert!(text.contains(r#""rank": 3, "ranks": 4, "host": ""#), "{text}");
    assert!(text.contains("rank 3 of 4 on "), "{text}");
    let (files, text) = named_reports("a-%r.json", test_name!(says_its_rank), &launcher);
    assert_eq!(files, ["a-6.json"], "the program knows better than its launcher");
    assert!(text.contains(r#""rank": 6, "ranks": 8"#), "{text}");
    let (files, text) = named_reports("a-%r.json", test_name!(moves), &none);
    assert_eq!(files, ["a-0.json"], "the only process is the first");
    assert!(text.contains(r#""rank": null, "ranks": null"#) && !text.contains("\nrank "), "{text}");
}

#[test]
fn the_files_of_a_host_and_its_processes_differ() {
    let (files, text) = named_reports("%h.%p.json", test_name!(moves), &[]);
    let (host, process) = files[0].trim_end_matches(".json").rsplit_once('.').expect("a point");
    assert!(text.contains(&format!(r#""host": "{host}""#)), "{files:?} {text}");
    assert!(process.parse::<u32>().is_ok_and(|number| number > 1), "{files:?}");
}

/// What a program reports as JSON, if these words are asked for too.
fn json_with(words: &str, test: &str) -> String {
    let folder = folder();
    let path = folder.join("a.json");
    let value = format!("{words}json:{}", path.display());
    let output = own_process::run(test, &[("RESIDENT_AUDIT", &value)]);
    own_process::assert_success(&output, test);
    let json = fs::read_to_string(path).expect("it was written");
    fs::remove_dir_all(folder).expect("a folder");
    json
}

#[test]
fn contents_are_compared_if_that_is_asked_for() {
    let (without, with) = ("", "contents,");
    assert!(!json_with(without, test_name!(changes_nothing)).contains("round_trip"));
    let json = json_with(with, test_name!(changes_nothing));
    assert!(json.contains(r#""kind": "round_trip""#), "{json}");
}

#[test]
fn a_program_that_panics_writes_its_report() {
    let folder = folder();
    let path = folder.join("a.json");
    let value = format!("json:{}", path.display());
    let output = own_process::run(test_name!(panics), &[("RESIDENT_AUDIT", &value)]);
    assert!(!output.status.success());
    assert!(fs::read_to_string(&path).expect("it was written").contains(r#""bytes": 1234"#));
    fs::remove_dir_all(folder).expect("a folder");
}

/// The names of files are bytes, not text: a report must not have another name than was asked for.
#[cfg(unix)]
#[test]
fn a_path_that_is_not_utf_8_is_said_and_names_no_other_file() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = folder();
    let path = folder.join(OsStr::from_bytes(b"caf\xe9.json"));
    let mut value = std::ffi::OsString::from("json:");
    value.push(path);
    let output = std::process::Command::new(env::current_exe().expect("it has a path"))
        .args(["--exact", test_name!(moves), "--nocapture", "--include-ignored"])
        .env(own_process::VARIABLE, "1")
        .env("RESIDENT_AUDIT", &value)
        .output()
        .expect("it runs");
    own_process::assert_success(&output, "moves");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("is ignored: it is not UTF-8; name files by paths that are"), "{text}");
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);
    fs::remove_dir_all(folder).expect("a folder");
}

#[test]
fn what_cannot_be_written_is_said_and_stops_nothing() {
    for (value, message) in [
        ("xml:a", "\"xml:a\" is none of `summary`"),
        ("json:a,b.json", "\"b.json\" is none of `summary`"),
        ("json:a,html:./a", "`json:a` and `html:./a` write one file; give each its own path"),
        ("contents,gpu-times", "is ignored: it asks for no report; add `summary`"),
        ("json:/no/such/folder/a.json", "/no/such/folder/a.json: "),
    ] {
        let output = own_process::run(test_name!(moves), &[("RESIDENT_AUDIT", value)]);
        own_process::assert_success(&output, "moves");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("resident: RESIDENT_AUDIT") && text.contains(message), "{text}");
    }
}

/// The file that this process's `RESIDENT_AUDIT` names after `json:`.
fn own_json() -> PathBuf {
    let value = env::var("RESIDENT_AUDIT").expect("the test above sets it");
    value.split(',').find_map(|word| word.strip_prefix("json:")).expect("it names a file").into()
}

#[test]
#[ignore = "asks for its report: run in processes of its own by the test below"]
fn asks_for_its_report() -> Result<()> {
    let read = || fs::read_to_string(own_json()).expect("it was written");
    resident::audit::write_reports().expect("a file");
    assert!(!read().contains("1234"), "nothing was copied yet");
    moves()?;
    resident::audit::write_reports().expect("a file");
    assert!(read().contains(r#""bytes": 1234"#));
    SmartArray::from(vec![1_u8; 4321]).prefetch(&lab().stream())
}

#[test]
fn a_program_writes_reports_when_it_asks_for_them_and_at_its_end() {
    let json = json_with("", test_name!(asks_for_its_report));
    assert!(json.contains(r#""bytes": 1234"#) && json.contains(r#""bytes": 4321"#), "{json}");
}

#[test]
#[ignore = "ends without its destructors: run in processes of its own by the tests below"]
#[cfg(unix)]
fn waits_for_a_report_and_is_killed() {
    moves().expect("enough memory");
    if env::var("RESIDENT_AUDIT").is_ok_and(|value| value.contains("signal:USR1")) {
        // SAFETY: it only sends a signal to this process.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
    }
    support::eventually::eventually(true, "a report", || own_json().exists());
    // SAFETY: it takes no pointer. Nothing of this process runs after it.
    unsafe { libc::_exit(0) }
}

#[test]
#[cfg(unix)]
fn reports_are_written_at_signals_and_now_and_then() {
    for words in ["signal:HUP,signal:USR1,", "every:1,"] {
        let folder = folder();
        let value = format!("{words}json:{}", folder.join("a.json").display());
        let test = test_name!(waits_for_a_report_and_is_killed);
        // The harness does not tell that the test has passed: the process ends before.
        let output = own_process::run(test, &[("RESIDENT_AUDIT", &value)]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let json = fs::read_to_string(folder.join("a.json")).expect("it was written");
        fs::remove_dir_all(folder).expect("a folder");
        assert!(json.contains(r#""bytes": 1234"#) && json.ends_with("}\n"), "{words}: {json}");
    }
}

#[test]
fn reports_say_which_program_made_them_and_may_leave_its_arguments_out() {
    let json = json_with("", test_name!(moves));
    for part in [
        "\"process\": {\"program\": \"/",
        "\"arguments\": [\"--exact\", \"at_exit::moves\"",
        "\"library_version\": \"0.",
        "\"written_unix_ns\": 1",
    ] {
        assert!(json.contains(part), "{part} in {json}");
    }
    let json = json_with("no-arguments,", test_name!(moves));
    assert!(json.contains(r#""arguments": null, "id": "#), "{json}");
    assert!(!json.contains("--exact"), "{json}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_began_before_its_report_was_written() {
    let ((), report) = resident::audit::capture(|| ());
    let document = report.to_document();
    let process = document.process.expect("every report has one");
    assert_eq!(process.id, std::process::id());
    let began = process.started_unix_ns.expect("Linux tells");
    // The clock of processes is coarse.
    assert!(began <= document.started_unix_ns + 1_000_000_000, "{began}");
    assert!(document.started_unix_ns <= document.written_unix_ns);
    assert!(document.written_unix_ns - began < 3_600_000_000_000, "{began}");
}
