//! Runs a test under `mpirun`: the launcher starts this program anew, several times, for the same
//! test, which then finds itself among the processes of a job.
//!
//! `RESIDENT_MPIRUN` is the launcher; `mpirun` by default. The flags of Open MPI and of MPICH are
//! known.

use std::env;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use resident_mpi::Mpi;
use rustix::process::{Pid, Signal, kill_process};

/// Which test a process of a job runs.
const CASE: &str = "RESIDENT_MPI_TEST_CASE";
/// How many processes a job has.
const PROCESSES: &str = "RESIDENT_MPI_TEST_PROCESSES";
/// After this a job is killed, which fails its test.
const LIMIT: Duration = Duration::from_secs(60);

/// A job, to be.
pub(crate) struct Job {
    case: String,
    processes: usize,
    variables: Vec<(&'static str, String)>,
    left_out: Vec<&'static str>,
    /// Whether the launcher shall let others live when a process is killed.
    has_survivors: bool,
}

/// What a job left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) is_success: bool,
    pub(crate) took: Duration,
    pub(crate) output: String,
}

/// Whether this process is one of a job.
pub(crate) fn is_inside() -> bool {
    env::var_os(CASE).is_some()
}

/// Runs `body` in each of `processes` processes, which must all succeed.
#[track_caller]
pub(crate) fn run(processes: usize, body: impl FnOnce(&Mpi)) {
    run_each(&[processes], body);
}

/// As [`run`], in a job for each of these numbers of processes.
#[track_caller]
pub(crate) fn run_each(jobs: &[usize], body: impl FnOnce(&Mpi)) {
    if is_inside() {
        return body(&start());
    }
    jobs.iter().for_each(|processes| Job::new(*processes).expect_success());
}

/// Starts MPI in a process of a job.
pub(crate) fn start() -> Mpi {
    let mpi = resident_mpi::init().expect("MPI starts");
    assert_eq!(Ok(mpi.size().to_string()), env::var(PROCESSES));
    mpi
}

impl Job {
    /// A job of the running test.
    pub(crate) fn new(processes: usize) -> Self {
        let thread = std::thread::current();
        let case = thread.name().expect("tests run in threads with their names").to_owned();
        let variables = vec![("RESIDENT_MPI_TIMEOUT", "20".to_owned())];
        Self { case, processes, variables, left_out: Vec::new(), has_survivors: false }
    }

    /// Sets a variable for its processes.
    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Leaves a variable of this process out.
    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.left_out.push(name);
        self
    }

    /// Lets other processes live when one is killed.
    pub(crate) fn survivors(mut self) -> Self {
        self.has_survivors = true;
        self
    }

    /// Runs it to its end, which must be a good one.
    #[track_caller]
    pub(crate) fn expect_success(self) {
        let ended = self.run();
        assert!(ended.is_success, "the job failed:\n{}", ended.output);
    }

    /// Runs it to its end, or kills it.
    pub(crate) fn run(self) -> Ended {
        let begin = Instant::now();
        let mut child = self.command().spawn().unwrap_or_else(|error| {
            panic!("cannot start `{}`: {error}; install an MPI, or set RESIDENT_MPIRUN", launcher())
        });
        let mut pipes = [child.stdout.take().map(reader), child.stderr.take().map(reader)];
        let is_success = wait(&mut child);
        let output = pipes.iter_mut().filter_map(|pipe| pipe.take()?.join().ok()).collect();
        Ended { is_success, took: begin.elapsed(), output }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(launcher());
        let is_open_mpi = is_open_mpi();
        if is_open_mpi {
            command.args(["--oversubscribe", "--allow-run-as-root"]);
        }
        if self.has_survivors {
            let flag = if is_open_mpi { "--enable-recovery" } else { "-disable-auto-cleanup" };
            command.arg(flag);
        }
        command.args(["-n", &self.processes.to_string()]);
        if self.has_survivors && !is_open_mpi {
            // MPICH's launcher ends all processes if it sees that one was killed.
            command.args(["sh", "-c", "\"$0\" \"$@\" || true"]);
        }
        command.arg(env::current_exe().expect("tests know their program"));
        command.args([&self.case, "--exact", "--nocapture", "--include-ignored"]);
        command.env(CASE, &self.case).env(PROCESSES, self.processes.to_string());
        command.envs(self.variables.iter().cloned());
        for name in &self.left_out {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn launcher() -> String {
    env::var("RESIDENT_MPIRUN").unwrap_or_else(|_| "mpirun".into())
}

fn is_open_mpi() -> bool {
    let version = Command::new(launcher()).arg("--version").output();
    version.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.contains("Open MPI") || text.contains("OpenRTE")
    })
}

fn reader(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for the launcher's end. One that takes too long is told to end its job, and then killed.
fn wait(child: &mut Child) -> bool {
    let begin = Instant::now();
    let signals = [(LIMIT, Signal::TERM), (LIMIT + Duration::from_secs(5), Signal::KILL)];
    let mut left = signals.iter().peekable();
    loop {
        if let Some(status) = child.try_wait().expect("the launcher is a child") {
            return status.success() && left.len() == signals.len();
        }
        if let Some((_, signal)) = left.next_if(|(after, _)| begin.elapsed() > *after) {
            let _ = kill_process(Pid::from_child(child), *signal);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The memory of this process that is in use, by the system's count.
pub(crate) fn resident_bytes() -> usize {
    memory_bytes(1)
}

/// One of the system's counts of this process's memory: 0 is all of its addresses.
pub(crate) fn memory_bytes(count: usize) -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages: usize = statm.split(' ').nth(count).expect("pages").parse().expect("a number");
    pages * rustix::param::page_size()
}
