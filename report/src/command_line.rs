//! The arguments of the program.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Shows, converts and compares audit reports of programs that use `resident`.
///
/// A program writes a report if it runs with RESIDENT_AUDIT=json:PATH. A report named - is read
/// from standard input.
#[derive(Debug, Parser)]
#[command(name = "resident-report", version)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Print a report: the copies, the largest first, the totals, and what could be saved.
    Show {
        /// The report, in JSON.
        report: PathBuf,
        /// What to add up.
        #[arg(long, value_enum, default_value = "site")]
        by: By,
    },
    /// Write a report as a page for a browser.
    Html {
        /// The report, in JSON.
        report: PathBuf,
        /// The page to write.
        output: PathBuf,
    },
    /// Write a report as a trace for Perfetto, which ui.perfetto.dev shows.
    Perfetto {
        /// The report, in JSON.
        report: PathBuf,
        /// The trace to write.
        output: PathBuf,
    },
    /// Compare two reports; exit with 1 if the second moves more than is tolerated.
    Diff {
        /// The report to compare with, in JSON.
        before: PathBuf,
        /// The newer report, in JSON.
        after: PathBuf,
        /// By how much copies and bytes of a direction may grow, in percent.
        #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent)]
        tolerance: f64,
    },
    /// Join the reports of the ranks of one job: what went between each two, what each moved and
    /// waited, and how unevenly.
    Merge {
        /// The reports, in JSON, one of each rank: RESIDENT_AUDIT=json:audit-%r.json writes them.
        #[arg(required = true)]
        reports: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Also write one trace of all ranks for Perfetto. Clocks are compared by the barriers that
        /// ranks have in common (resident-mpi records them), else by the time of their hosts.
        #[arg(long, value_name = "OUTPUT")]
        perfetto: Option<PathBuf>,
    },
    /// Print the JSON schema of reports.
    Schema,
}

/// What `show` adds up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum By {
    /// The calls that needed the bytes.
    Site,
    /// The arrays, by their names.
    Array,
    /// The devices.
    Device,
    /// The streams that ran the copies.
    Stream,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if (0.0..=1e6).contains(&percent) => Ok(percent),
        _ => Err("a number of percent from 0 on".to_owned()),
    }
}
