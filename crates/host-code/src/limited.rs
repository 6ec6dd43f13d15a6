//! Runs a compiler within limits of time and memory: a source that includes `/dev/zero`, or a pipe
//! that nobody writes to, would otherwise never be compiled.

use std::io;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use resident_backend::environment;

/// The environment variable for the time, in seconds.
const VARIABLE: &str = "RESIDENT_COMPILE_TIMEOUT";

/// The time if it is not set. Few sources take one second.
const TIME_DEFAULT: Duration = Duration::from_secs(300);

/// The memory that each process of a compiler may allocate. Few take a tenth of it.
const MEMORY_GIB_MAX: u64 = 4;

/// What compilers, assemblers and linkers say that get no more memory.
const NO_MEMORY: [&str; 4] =
    ["out of memory", "memory exhausted", "Cannot allocate memory", "bad_alloc"];

/// How long a compiler may take. The error says what the variable is, and what it may be.
pub(super) fn time() -> Result<Duration, String> {
    environment::seconds(VARIABLE).map(|limit| limit.unwrap_or(TIME_DEFAULT))
}

/// Runs a compiler to its end. The error says, behind the compiler's name, that it cannot be run,
/// or which limit it exceeded.
pub(super) fn output(command: &mut Command) -> Result<Output, String> {
    let limit = time()?;
    let cannot_run = |fault: io::Error| format!("cannot be run: {fault}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    group::begin(command);
    let child = command.spawn().map_err(cannot_run)?;
    limit_memory(&child);
    let (output, is_over) = wait(child, limit);
    let output = output.map_err(cannot_run)?;
    if is_over {
        return Err(format!(
            "ran longer than {limit:?}, the limit in {VARIABLE}, and was ended; correct what it \
             does not come to the end of, such as an included file, or raise the limit"
        ));
    }
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && NO_MEMORY.iter().any(|words| log.contains(words)) {
        return Err(format!(
            "got no more memory, of which each of its processes may have {MEMORY_GIB_MAX} GiB; \
             correct what needs so much, such as an included file without an end:\n{log}"
        ));
    }
    Ok(output)
}

/// Waits until all that a process writes is there, and whether it was ended at the limit.
fn wait(child: Child, limit: Duration) -> (io::Result<Output>, bool) {
    let id = child.id();
    let (ended, is_ended) = channel::<()>();
    thread::scope(|scope| {
        let timer = scope.spawn(move || {
            let is_over = is_ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if is_over {
                group::end(id);
            }
            is_over
        });
        let output = child.wait_with_output();
        drop(ended);
        (output, timer.join().unwrap_or(false))
    })
}

/// Limits the memory of a process that has just begun, and so of those that it begins. It gets no
/// limit before it begins, since the system could then not begin it without a copy of this process.
#[cfg(target_os = "linux")]
fn limit_memory(child: &Child) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

    let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    let known = getrlimit(Resource::Data);
    let most = MEMORY_GIB_MAX << 30;
    let current = [known.current, known.maximum].into_iter().flatten().fold(most, u64::min);
    let limit = Rlimit { current: Some(current), maximum: known.maximum };
    // A process that has ended needs none.
    let _ended = prlimit(Some(id), Resource::Data, limit);
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_child: &Child) {}

/// A compiler begins other processes, which are to end with it.
#[cfg(unix)]
mod group {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    pub(super) fn begin(command: &mut Command) {
        command.process_group(0);
    }

    pub(super) fn end(id: u32) {
        let Ok(id) = i32::try_from(id) else { return };
        // SAFETY: the call has no preconditions. The group is that of the process, which the caller
        // waits for.
        unsafe { libc::kill(-id, libc::SIGKILL) };
    }
}

#[cfg(not(unix))]
mod group {
    pub(super) fn begin(_command: &mut std::process::Command) {}

    pub(super) fn end(_id: u32) {}
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::{output, wait};

    #[test]
    fn what_a_process_writes_is_read_to_its_end() {
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 3"]);
        let output = output(&mut command).expect("it runs");
        assert_eq!((output.stdout.len(), output.stderr.len()), (300_000, 300_000));
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn a_process_ends_at_the_limit_with_those_that_it_began() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 100 & sleep 100; echo late"])
            .stdout(std::process::Stdio::piped());
        super::group::begin(&mut command);
        let begun = Instant::now();
        let child = command.spawn().expect("a shell");
        let (output, is_over) = wait(child, Duration::from_millis(20));
        // Else the pipe would stay open.
        assert!(is_over && begun.elapsed() < Duration::from_secs(50));
        assert!(output.expect("it ended").stdout.is_empty());
    }

    /// And with it that of those that it begins. In KiB.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_memory_of_a_process_is_limited() {
        for (command, expected) in [("ulimit -d", "4194304"), ("sh -c 'ulimit -d'", "4194304")] {
            let mut shell = Command::new("sh");
            // The limit is set once the process has begun.
            let output = output(shell.args(["-c", &format!("sleep 0.2; {command}")]));
            let output = output.expect("it runs");
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected);
        }
    }

    #[test]
    fn a_program_that_is_missing_and_one_without_memory_are_named() {
        let said = output(&mut Command::new("/nowhere/c++")).expect_err("there is none");
        assert!(said.starts_with("cannot be run: "), "{said}");
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'cc1plus: out of memory allocating 65536 bytes' >&2; exit 1"]);
        let said = output(&mut command).expect_err("it has no memory");
        assert!(said.starts_with("got no more memory") && said.contains("4 GiB"), "{said}");
    }
}
