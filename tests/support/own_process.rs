//! Runs tests in their own process, if they load a driver, set a subscriber, or lose a device.
//!
//! `cargo test` runs the tests of one program as threads of one process. A test that begins with
//! [`own_process!`](crate::own_process) is run in another process instead, by its name. Under
//! runners that start a process for each test, such as nextest, it runs directly.

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// Set in a process that runs one test, or several that may share the process.
pub const VARIABLE: &str = "RESIDENT_TEST_OWN_PROCESS";

/// If something takes longer than this, a test treats it as hanging. Generous, because a busy
/// machine may stop a process for seconds, and only a test that fails waits so long.
pub const HANG_LIMIT: Duration = Duration::from_secs(600);

/// The first line of a test that needs its own process, or one with these environment variables.
#[macro_export]
macro_rules! own_process {
    () => {
        $crate::own_process!([("", ""); 0])
    };
    ($variables:expr) => {
        if $crate::own_process::has_run_with($crate::test_name!(), &$variables) {
            return $crate::own_process::Passed::passed();
        }
    };
}

/// As [`own_process!`](crate::own_process), and then what the test begins with, which is its value.
#[macro_export]
macro_rules! in_own_process {
    ($beginning:expr) => {{
        $crate::own_process!();
        $beginning
    }};
}

/// The name of the enclosing function in the test harness.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        $crate::own_process::test_name_of(&here)
    }};
    ($test:ident) => {
        $crate::own_process::without_crate(concat!(module_path!(), "::", stringify!($test)))
    };
}

/// The return type of a test.
pub trait Passed {
    /// The value that a test returns when it passes.
    fn passed() -> Self;
}

impl Passed for () {
    fn passed() -> Self {}
}

impl<E> Passed for Result<(), E> {
    fn passed() -> Self {
        Ok(())
    }
}

/// The name of a test, given the type name of a function `here` that is defined inside the test.
#[must_use]
pub fn test_name_of<T>(here: &T) -> &'static str {
    let path = std::any::type_name_of_val(here).trim_end_matches("::here");
    without_crate(path.trim_end_matches("::{{closure}}"))
}

/// A module path without its first part.
#[must_use]
pub fn without_crate(path: &'static str) -> &'static str {
    path.split_once("::").map_or(path, |(_, name)| name)
}

/// Whether this process runs one test only.
#[must_use]
pub fn is_own() -> bool {
    std::env::var_os(VARIABLE).is_some()
        || std::env::var_os("NEXTEST_EXECUTION_MODE").is_some_and(|mode| mode == "process-per-test")
}

/// Returns `false` in a process that was started for this test: the caller must then run the test.
/// Otherwise starts such a process, waits for it, and returns `true`.
#[track_caller]
pub fn has_run(test: &str) -> bool {
    has_run_with(test, &[])
}

/// As [`has_run`], for a test that needs a process with these environment variables.
#[track_caller]
pub fn has_run_with(test: &str, variables: &[(&str, &str)]) -> bool {
    let is_set =
        |(name, value): &(&str, &str)| std::env::var_os(name).is_some_and(|known| known == *value);
    if is_own() && variables.iter().all(is_set) {
        return false;
    }
    let output = run(test, variables);
    assert_success(&output, test);
    print!("{}", String::from_utf8_lossy(&output.stdout));
    true
}

/// Runs tests of this program in another process, in which all of them pass.
pub fn run_tests(arguments: &[&str], configure: impl FnOnce(&mut Command)) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    configure(command.args(arguments));
    let output = command.output().expect("it runs");
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && out.contains("passed"), "{out}\n{errors}");
    output
}

/// Runs one test of this program in another process, with these environment variables. A process
/// that hangs is killed.
#[must_use]
pub fn run(test: &str, variables: &[(&str, &str)]) -> Output {
    run_within(HANG_LIMIT, test, variables)
}

/// As [`run`], with another limit than [`HANG_LIMIT`].
#[must_use]
pub fn run_within(limit: Duration, test: &str, variables: &[(&str, &str)]) -> Output {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(VARIABLE, "1")
        .envs(variables.iter().copied());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let (stdout, stderr) = (all_of(child.stdout.take()), all_of(child.stderr.take()));
    // The pipe ends with the process.
    let written = stdout.recv_timeout(limit);
    if written.is_err() {
        child.kill().expect("a child can be killed");
    }
    let status = child.wait().expect("it is a child of this process");
    let stdout = written.or_else(|_| stdout.recv()).unwrap_or_default();
    Output { status, stdout, stderr: stderr.recv().unwrap_or_default() }
}

/// Reads all bytes from a pipe until it closes.
fn all_of(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        drop((read, sender.send(bytes)));
    });
    receiver
}

/// Panics with the process's output unless it ran one test and the test passed.
#[track_caller]
pub fn assert_success(output: &Output, what: &str) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{what}: {}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    assert!(text(&output.stdout).contains("1 passed"), "{what}: one test was run");
}
