//! Reports that any program writes because `RESIDENT_AUDIT` asks for them: which, where and when.

use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fmt, io};

use super::process::{self, Rank};
use super::report::Report;
use crate::device::{self, KernelTotals, environment};
use resident_documents::{Document, DocumentChecked, visible, write_file};

/// The variable that asks for reports.
pub(in crate::audit) const VARIABLE: &str = device::AUDIT_VARIABLE;

/// What to write.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Output {
    /// The report as text, to standard error.
    Summary,
    Json(NamedFile),
    Html(NamedFile),
    Perfetto(NamedFile),
}

/// A file whose name may have the rank, the host and the process in it, which the program may learn
/// later.
#[derive(Clone, PartialEq, Eq, Debug)]
struct NamedFile {
    /// The program may change its folder before it ends.
    folder: PathBuf,
    name: String,
}

impl NamedFile {
    fn new(name: &str) -> Self {
        Self { folder: env::current_dir().unwrap_or_default(), name: name.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(process::expand(&self.name))
    }
}

/// What the variable asks for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(in crate::audit) struct Outputs {
    written: Vec<Output>,
    /// Whether contents are compared, for the accesses of all threads.
    pub(in crate::audit) compares_contents: bool,
    /// How often reports are written while the program runs, if they are.
    pub(in crate::audit) every: Option<Duration>,
    /// The signals at which they are written.
    pub(in crate::audit) signals: Vec<Signal>,
}

/// A signal that asks for reports: one that no program gets for another reason, unless its user
/// wants it to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::audit) enum Signal {
    User1,
    User2,
    HangUp,
}

impl Signal {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "USR1" => Some(Self::User1),
            "USR2" => Some(Self::User2),
            "HUP" => Some(Self::HangUp),
            _ => None,
        }
    }

    #[cfg(unix)]
    pub(in crate::audit) fn number(self) -> i32 {
        match self {
            Self::User1 => libc::SIGUSR1,
            Self::User2 => libc::SIGUSR2,
            Self::HangUp => libc::SIGHUP,
        }
    }
}

impl Outputs {
    /// `None` if the variable is not set, or if something in it is not known: standard error then
    /// says so, since the program has not asked and cannot be told.
    pub(in crate::audit) fn of_variable() -> Option<Self> {
        let value = environment::text(VARIABLE)?;
        let parsed = match value.to_str() {
            Some(text) => Self::parse(text),
            None => Err("it is not UTF-8; name files by paths that are".to_owned()),
        };
        match parsed {
            Ok(outputs) => Some(outputs),
            Err(reason) => {
                say(format_args!("{VARIABLE}={} is ignored: {reason}", value.display()));
                None
            }
        }
    }

    /// Reads a list with commas. An error says what is wrong with it.
    fn parse(value: &str) -> Result<Self, String> {
        let mut asked = Self::default();
        for part in value.split(',').map(str::trim) {
            match part {
                "contents" => asked.compares_contents = true,
                // The device reads this word when it is opened, and reports the other.
                device::GPU_TIMES | process::NO_ARGUMENTS => {}
                _ => asked.add(part).ok_or_else(|| unknown(part))?,
            }
        }
        if asked.written.is_empty() && value.trim() != process::NO_ARGUMENTS {
            return Err("it asks for no report; add `summary` or `html:PATH`".to_owned());
        }
        Ok(asked)
    }

    fn add(&mut self, part: &str) -> Option<()> {
        match part.split_once(':') {
            Some(("every", seconds)) => {
                let seconds: NonZeroU32 = seconds.parse().ok()?;
                self.every = Some(Duration::from_secs(seconds.get().into()));
            }
            Some(("signal", name)) => self.signals.push(Signal::parse(name)?),
            _ => self.written.push(Output::parse(part)?),
        }
        Some(())
    }

    /// Writes the reports. If one fails, others are written nevertheless, and the first error is
    /// returned.
    pub(in crate::audit) fn write(&self, report: &Report) -> io::Result<()> {
        let outcomes: Vec<_> = self.written.iter().map(|output| output.write(report)).collect();
        outcomes.into_iter().collect()
    }
}

fn unknown(part: &str) -> String {
    format!(
        "\"{part}\" is none of `summary`, `json:PATH`, `html:PATH`, `perfetto:PATH`, \
         `every:SECONDS`, `signal:USR1`, `signal:USR2`, `signal:HUP`, `contents`, `{}` and `{}`",
        device::GPU_TIMES,
        process::NO_ARGUMENTS
    )
}

impl Output {
    fn parse(text: &str) -> Option<Self> {
        if text == "summary" {
            return Some(Self::Summary);
        }
        let (kind, path) = text.split_once(':').filter(|(_, path)| !path.is_empty())?;
        let file = NamedFile::new(path);
        match kind {
            "json" => Some(Self::Json(file)),
            "html" => Some(Self::Html(file)),
            "perfetto" => Some(Self::Perfetto(file)),
            _ => None,
        }
    }

    fn write(&self, report: &Report) -> io::Result<()> {
        match self {
            Self::Summary => {
                write!(io::stderr(), "{}{report}", heading())?;
                device::checked_totals().map_or(Ok(()), |totals| write!(io::stderr(), "{totals}"))
            }
            Self::Json(file) => {
                write_file(&file.path(), (document(report).to_json() + "\n").as_bytes())
            }
            Self::Html(file) => document(report).write_html(file.path()),
            Self::Perfetto(file) => report.write_perfetto(file.path()),
        }
    }
}

/// The first line of a summary: which process of a job wrote it, if it is one of several.
fn heading() -> String {
    let Some(Rank { rank, size }) = process::rank() else { return String::new() };
    let of = size.map_or_else(String::new, |size| format!(" of {size}"));
    let host = process::host().map_or_else(String::new, |host| format!(" on {}", visible(host)));
    format!("rank {rank}{of}{host}\n")
}

/// The report, with what the checker of CUDA C has checked.
fn document(report: &Report) -> Document {
    let mut document = report.to_document();
    let of_kernel = |(kernel, totals): (&str, KernelTotals)| {
        let KernelTotals { launches, accesses, errors, notes } = totals;
        DocumentChecked { kernel: kernel.to_owned(), launches, accesses, errors, notes }
    };
    document.checked =
        device::checked_totals().map(|totals| totals.kernels().map(of_kernel).collect());
    document
}

/// Writes a line to standard error, unless it is closed.
pub(in crate::audit) fn say(message: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "resident: {message}");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{NamedFile, Output, Outputs, Signal};

    /// Only the name that was asked for is expanded, not the folder.
    #[test]
    fn a_file_is_in_the_folder_in_which_the_program_began() {
        let here = std::env::current_dir().expect("there is a current folder");
        assert_eq!(NamedFile::new("a.json").path(), here.join("a.json"));
        let process = std::process::id();
        let file = NamedFile { folder: "/tmp/%p".into(), name: "%p.json".to_owned() };
        assert_eq!(file.path(), std::path::Path::new(&format!("/tmp/%p/{process}.json")));
        let elsewhere = if cfg!(windows) { "C:\\a.json" } else { "/a.json" };
        assert_eq!(NamedFile::new(elsewhere).path(), std::path::Path::new(elsewhere));
    }

    #[test]
    fn lists_are_read_and_what_is_unknown_is_named() {
        let parsed = Outputs::parse("summary,html:a/b:c.html,json:x,perfetto:y").unwrap();
        let expected = vec![
            Output::Summary,
            Output::Html(NamedFile::new("a/b:c.html")),
            Output::Json(NamedFile::new("x")),
            Output::Perfetto(NamedFile::new("y")),
        ];
        assert_eq!((parsed.written, parsed.compares_contents), (expected, false));
        let detailed = Outputs::parse("contents,summary,gpu-times").unwrap();
        assert_eq!((detailed.written, detailed.compares_contents), (vec![Output::Summary], true));
        let timed = Outputs::parse("summary,every:60,signal:USR1,signal:HUP,no-arguments").unwrap();
        assert_eq!(timed.every, Some(Duration::from_secs(60)));
        assert_eq!(timed.signals, [Signal::User1, Signal::HangUp]);
        let alone = Outputs::parse("no-arguments").unwrap();
        assert_eq!((alone.written, alone.every), (Vec::new(), None));
        for wrong in [
            "html",
            "html:",
            "",
            "Summary",
            "xml:a",
            "contents:a",
            "gpu_times",
            "every",
            "every:",
            "every:0",
            "every:1.5",
            "every:-1",
            "every:1s",
            "signal",
            "signal:",
            "signal:TERM",
            "signal:usr1",
            "signal:SIGUSR1",
        ] {
            let reason = Outputs::parse(&format!("summary,{wrong}")).unwrap_err();
            assert!(reason.starts_with(&format!("\"{wrong}\" is none of ")), "{reason}");
        }
        let reason = Outputs::parse("contents,gpu-times").unwrap_err();
        assert!(reason.starts_with("it asks for no report"), "{reason}");
    }
}
