//! A message of device memory from a process to itself, to see whether MPI can do that.
//!
//! A library that says that it can may still fail, hang, or end the process: when it was built for
//! device memory but the machine, or another library that it uses, was not. So another process does
//! it: the program itself, started anew, of which only this test runs, before `main`. It is a job
//! of its own: no variable of the job's launcher is left to it.

use std::io::Result as IoResult;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use resident::Device;
use resident::internal::environment;

use crate::call::{Session, says_it_uses_memory_of};
use crate::transport::{Choice, Reachable, Transport};

/// Says that this process is to test, and to do nothing else.
pub(crate) const VARIABLE: &str = "RESIDENT_MPI_SELF_TEST";
/// The status of a process to which the message arrived. Programs seldom end with it.
pub(crate) const ARRIVED: i32 = 97;
pub(crate) const OTHER_CONTENTS: i32 = 98;

/// Device memory only if MPI says that it can use that of this device, and does so in a test that
/// takes at most as long as `limit`.
pub(crate) fn choose(session: &Session, device: &Device, limit: Duration) -> Choice {
    let tested = if !Reachable::new(Transport::Device).has(device) {
        Err("the device is emulated")
    } else if !says_it_uses_memory_of(device.kind(), session) {
        Err("the MPI library does not say that it uses device memory")
    } else {
        run(device, limit)
    };
    match tested {
        Ok(()) => {
            let reason = "a message of device memory to itself arrived";
            Choice { transport: Transport::Device, reason }
        }
        Err(reason) => Choice { transport: Transport::Host, reason },
    }
}

/// Starts a process in which messages of this device's memory go to itself, and waits for its end,
/// at most as long as `limit`. `Err` says why they did not arrive.
fn run(device: &Device, limit: Duration) -> Result<(), &'static str> {
    if !is_in_program() {
        return Err("the program has this library as a shared one, and cannot test it");
    }
    let started = command(device, limit).spawn();
    let mut child = started.map_err(|_| "no process could be started to test device memory")?;
    match wait(&mut child, Instant::now() + limit) {
        Ok(Some(status)) => told_by(status),
        _ => {
            // Errors mean that it has ended.
            let _ = child.kill();
            let _ = child.wait();
            Err("a message of device memory to itself did not arrive in time")
        }
    }
}

fn told_by(status: ExitStatus) -> Result<(), &'static str> {
    match status.code() {
        Some(ARRIVED) => Ok(()),
        Some(OTHER_CONTENTS) => Err("a message of device memory arrived with other contents"),
        None if status.signal().is_some() => {
            Err("a message of device memory to itself ended its process")
        }
        _ => Err("a process could not send itself a message of device memory"),
    }
}

fn command(device: &Device, limit: Duration) -> Command {
    let mut command = Command::new("/proc/self/exe");
    for name in environment::names() {
        if name.to_str().is_some_and(is_of_a_job) {
            command.env_remove(name);
        }
    }
    command.env(VARIABLE, "1").env("RESIDENT_MPI", "device").env_remove("RESIDENT_AUDIT");
    command.env("RESIDENT_DEVICE", device.name());
    command.env("RESIDENT_MPI_TIMEOUT", limit.as_secs_f64().to_string());
    // Without a daemon of Open MPI beside it, which would outlive a process that is killed.
    command.env("OMPI_MCA_ess_singleton_isolated", "1");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Whether a launcher sets this variable, to tell a process that it is one of a job. Parameters of
/// Open MPI that say how messages travel are kept.
fn is_of_a_job(name: &str) -> bool {
    const LAUNCHERS: [&str; 14] = [
        "OMPI_",
        "ORTE_",
        "PRTE_",
        "PMIX_",
        "PMI_",
        "PMI2_",
        "HYDI_",
        "HYDRA_",
        "MPI_LOCAL",
        "MPIEXEC_",
        "SLURM_",
        "PALS_",
        "ALPS_",
        "FLUX_",
    ];
    const TRAVEL: [&str; 7] = ["pml", "btl", "mtl", "opal", "smsc", "accelerator", "mpi"];
    let parameter = name.strip_prefix("OMPI_MCA_");
    let is_kept = |of: &str| TRAVEL.iter().any(|kept| of.starts_with(kept));
    LAUNCHERS.iter().any(|prefix| name.starts_with(prefix)) && !parameter.is_some_and(is_kept)
}

/// The end of a process; `None` if it does not end before the deadline.
fn wait(child: &mut Child, deadline: Instant) -> IoResult<Option<ExitStatus>> {
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= deadline {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Whether the code of this library is in the program's file, so that `crate::before_main` runs
/// when it is started anew. Otherwise another program would be started, such as Python.
fn is_in_program() -> bool {
    let here = is_in_program as *const () as usize;
    let (Ok(program), Ok(maps)) =
        (fs::read_link("/proc/self/exe"), fs::read_to_string("/proc/self/maps"))
    else {
        return false;
    };
    // Such as `55d0c8a00000-55d0c8b00000 r-xp 00002000 fe:00 1234   /path/of/the/program`.
    maps.lines().any(|line| {
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let range = range.and_then(|(begin, end)| Some(number(begin)?..number(end)?));
        range.is_some_and(|range| range.contains(&here))
            && program.to_str().is_some_and(|program| line.ends_with(program))
    })
}
