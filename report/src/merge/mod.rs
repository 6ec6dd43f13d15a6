//! The reports of the ranks of one job, together.

mod clocks;
mod json;
mod summary;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use resident_documents::{Document, ProcessTrace, shown, write_perfetto_of_processes};

pub(crate) use self::clocks::Clock;
use crate::document::{Records, name as file_name, read};

/// A job: its reports by their ranks.
pub(crate) struct Job {
    reports: BTreeMap<u32, Report>,
    /// The number of processes, if a report contains it.
    size: Option<u32>,
}

/// The report of one rank, and its file.
struct Report {
    path: PathBuf,
    document: Document,
}

impl Job {
    /// Reads the reports. The message of an error names the file.
    pub(crate) fn read(paths: &[PathBuf], records: Records) -> Result<Self, String> {
        let mut job = Self { reports: BTreeMap::new(), size: None };
        paths.iter().try_for_each(|path| {
            let document = read(path, records)?;
            job.add(path, document).map_err(|error| format!("{}: {error}", file_name(path)))
        })?;
        Ok(job)
    }

    fn add(&mut self, path: &Path, document: Document) -> Result<(), String> {
        let rank = document.rank.ok_or(
            "the report does not name its rank: run the program by `mpirun` or `srun`, or call \
             `resident_mpi::init` in it",
        )?;
        if let Some(known) = self.reports.get(&rank) {
            return Err(format!(
                "a report of rank {rank}, as {} is; pass one of each rank",
                known.path.display()
            ));
        }
        if let (Some(known), Some(size)) = (self.size, document.ranks)
            && known != size
        {
            return Err(format!("of a job of {size} processes, and those before are of {known}"));
        }
        self.size = self.size.or(document.ranks);
        self.reports.insert(rank, Report { path: path.to_owned(), document });
        Ok(())
    }

    fn documents(&self) -> impl Iterator<Item = (u32, &Document)> {
        self.reports.iter().map(|(rank, report)| (*rank, &report.document))
    }

    /// The job as text, and how the clocks of a trace were compared.
    pub(crate) fn text(&self, clocks: Option<&[Clock]>) -> String {
        text::of(self, clocks.unwrap_or_default())
    }

    /// The job as JSON, in one line.
    pub(crate) fn json(&self, clocks: Option<&[Clock]>) -> String {
        json::of(self, clocks)
    }

    /// Writes one trace of all ranks, and returns how their clocks were compared.
    pub(crate) fn write_perfetto(&self, path: &Path) -> Result<Vec<Clock>, String> {
        let clocks = clocks::of(self);
        let names: Vec<String> = self.documents().map(|(rank, it)| name(rank, it)).collect();
        let processes: Vec<ProcessTrace<'_>> = self
            .documents()
            .zip(&clocks)
            .zip(&names)
            .map(|(((rank, document), clock), name)| {
                let Clock { shift_ns, .. } = *clock;
                // The number 0 is that of a system's idle process.
                ProcessTrace { number: u64::from(rank) + 1, name, document, shift_ns }
            })
            .collect();
        write_perfetto_of_processes(path, &processes).map_err(|error| error.to_string())?;
        Ok(clocks)
    }
}

/// The name of a rank's group of tracks.
fn name(rank: u32, document: &Document) -> String {
    match &document.host {
        Some(host) => format!("rank {rank} on {}", shown(host)),
        None => format!("rank {rank}"),
    }
}
