//! Runs the program, with files that end with the test.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};

pub(crate) fn run(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_resident-report");
    Command::new(program).args(arguments).output().expect("it runs")
}

/// As [`run`], with a text as standard input.
#[allow(dead_code, reason = "not all test programs need it")]
pub(crate) fn run_with(arguments: &[&str], input: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_resident-report");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    // It may end before it has read all.
    let _ = pipe.write_all(input.as_bytes());
    drop(pipe);
    child.wait_with_output().expect("it ends")
}

/// A file of one test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str, contents: &str) -> Self {
        static FILES: AtomicUsize = AtomicUsize::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let file = format!("resident-report-{}-{number}-{name}", std::process::id());
        let path = env::temp_dir().join(file);
        fs::write(&path, contents).expect("a temporary file");
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("an ASCII path")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[allow(dead_code, reason = "not all test programs need it")]
pub(crate) fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// One line on standard error that holds the words, and exit code 2.
pub(crate) fn assert_refused(output: &Output, words: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains(words), "{text}");
    assert!(text.lines().count() == 1 && output.stdout.is_empty(), "{text}");
}
