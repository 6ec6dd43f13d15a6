//! Which process of a job this is: its rank, and its host.

use std::env;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::device::{self, environment};
use resident_documents::DocumentProcess;

/// What a program, or a crate that moves arrays between processes, said by [`set_rank`].
static SET: Mutex<Option<Rank>> = Mutex::new(None);

/// The variables of launchers: of the rank, and of the number of processes.
const VARIABLES: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// The place of a process in its job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rank {
    pub(super) rank: u32,
    /// The number of processes, if it is known.
    pub(super) size: Option<u32>,
}

/// Says which process of a job of `size` processes this one is, for reports: they have it as
/// `rank` and `ranks`, and `%r` in the paths of `RESIDENT_AUDIT` is the rank. Call it once the rank
/// is known, as a crate for MPI does when it is initialised. The last call counts.
///
/// Without a call the rank is what the launcher says in the first of `OMPI_COMM_WORLD_RANK`,
/// `PMI_RANK` and `SLURM_PROCID` that is a number, and the number of processes is
/// `OMPI_COMM_WORLD_SIZE`, `PMI_SIZE` or `SLURM_NTASKS`.
///
/// ```standalone_crate
/// use resident::{audit, internal};
///
/// internal::set_rank(2, 4);
/// let ((), report) = audit::capture(|| ());
/// let document = report.to_document();
/// assert_eq!((document.rank, document.ranks), (Some(2), Some(4)));
/// ```
pub fn set_rank(rank: u32, size: u32) {
    *SET.lock().unwrap_or_else(PoisonError::into_inner) = Some(Rank { rank, size: Some(size) });
}

/// The place of this process in its job, if it is known.
pub(super) fn rank() -> Option<Rank> {
    let set = *SET.lock().unwrap_or_else(PoisonError::into_inner);
    set.or_else(|| {
        rank_of_launcher(|variable| environment::of_system(variable)?.into_string().ok())
    })
}

fn rank_of_launcher(value: impl Fn(&str) -> Option<String>) -> Option<Rank> {
    let number = |variable: &str| value(variable)?.trim().parse::<u32>().ok();
    VARIABLES.into_iter().find_map(|(rank, size)| {
        let rank = number(rank)?;
        Some(Rank { rank, size: number(size) })
    })
}

/// The name of this host, if it has one that is text.
pub(in crate::audit) fn host() -> Option<&'static str> {
    static HOST: OnceLock<Option<String>> = OnceLock::new();
    HOST.get_or_init(host_name).as_deref().filter(|name| !name.is_empty())
}

#[cfg(target_os = "linux")]
fn host_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(target_os = "linux"))]
fn host_name() -> Option<String> {
    ["HOSTNAME", "COMPUTERNAME"]
        .into_iter()
        .find_map(|variable| environment::of_system(variable)?.into_string().ok())
}

/// The word of `RESIDENT_AUDIT` that leaves the arguments out of reports.
pub(super) const NO_ARGUMENTS: &str = "no-arguments";

/// This process, for reports.
pub(in crate::audit) fn this() -> DocumentProcess {
    DocumentProcess {
        program: env::current_exe().ok().map(|path| path.display().to_string()),
        arguments: (!device::audit_has_word(NO_ARGUMENTS)).then(arguments),
        id: std::process::id(),
        started_unix_ns: started_unix_ns(),
        library_version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn arguments() -> Vec<String> {
    env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// When this process began, if the system says so.
#[cfg(target_os = "linux")]
fn started_unix_ns() -> Option<u64> {
    static STARTED: OnceLock<Option<u64>> = OnceLock::new();
    *STARTED.get_or_init(|| {
        let own = std::fs::read_to_string("/proc/self/stat").ok()?;
        let system = std::fs::read_to_string("/proc/stat").ok()?;
        // The name, in parentheses, may have spaces. Field 22 is the 20th behind it.
        let ticks: u64 = own.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
        let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
        let booted: u64 = boot.trim().parse().ok()?;
        let per_second = rustix::param::clock_ticks_per_second();
        Some(booted * 1_000_000_000 + ticks * (1_000_000_000 / per_second))
    })
}

#[cfg(not(target_os = "linux"))]
fn started_unix_ns() -> Option<u64> {
    None
}

/// A text in which `%r` is the rank of this process, `%h` the name of its host, `%p` its number on
/// the host, and `%%` one `%`; all else stays. A rank that is not known is 0, since the process is
/// then the only one, and a host without a name is `localhost`.
pub(super) fn expand(text: &str) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        expanded += before;
        let value = match after.chars().next() {
            Some('r') => rank().map_or(0, |of| of.rank).to_string(),
            // A name is no path.
            Some('h') => host().unwrap_or("localhost").replace(['/', '\\'], "_"),
            Some('p') => std::process::id().to_string(),
            Some('%') => "%".to_owned(),
            _ => {
                expanded.push('%');
                rest = after;
                continue;
            }
        };
        expanded += &value;
        rest = &after[1..];
    }
    expanded + rest
}

#[cfg(test)]
mod tests {
    use super::{Rank, expand, host, rank_of_launcher};

    fn rank_with(variables: &[(&str, &str)]) -> Option<Rank> {
        rank_of_launcher(|name| {
            let value = variables.iter().find(|(known, _)| *known == name);
            value.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_first_launcher_that_tells_a_number_counts() {
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];
        let other = [("PMI_RANK", "5"), ("PMI_SIZE", "6"), ("SLURM_PROCID", "7")];
        let both: Vec<_> = other.into_iter().chain(open_mpi).collect();
        assert_eq!(rank_with(&both), Some(Rank { rank: 3, size: Some(4) }));
        assert_eq!(rank_with(&other), Some(Rank { rank: 5, size: Some(6) }));
        assert_eq!(rank_with(&other[2..]), Some(Rank { rank: 7, size: None }));
        let wrong = [("OMPI_COMM_WORLD_RANK", "first"), ("SLURM_PROCID", " 1 ")];
        assert_eq!(rank_with(&wrong), Some(Rank { rank: 1, size: None }));
        assert_eq!(rank_with(&[("PMI_RANK", "-1"), ("PMI_SIZE", "2")]), None);
    }

    #[test]
    fn what_is_known_replaces_its_letter_and_all_else_stays() {
        let process = std::process::id();
        let host = host().unwrap_or("localhost");
        assert_eq!(expand("a-%p.json"), format!("a-{process}.json"));
        assert_eq!(expand("%h/%p%p"), format!("{host}/{process}{process}"));
        for (text, expected) in [
            ("", ""),
            ("100%%.json", "100%.json"),
            ("%%p", "%p"),
            ("50%", "50%"),
            ("%x%", "%x%"),
            ("%\u{e4}%%", "%\u{e4}%"),
        ] {
            assert_eq!(expand(text), expected, "{text}");
        }
    }
}
