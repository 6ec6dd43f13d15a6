//! Reports that any program writes when it ends, because `RESIDENT_AUDIT` asks for them.

use std::io::Write;
use std::path::PathBuf;
use std::{env, fmt, io};

use super::process::{self, Rank};
use super::report::Report;
use crate::device::{self, KernelTotals};
use resident_backend::unwinding::contain_panic;
use resident_documents::{Document, DocumentChecked, visible, write_file};

/// The variable that asks for reports.
const VARIABLE: &str = device::AUDIT_VARIABLE;

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
pub(super) struct Outputs {
    written: Vec<Output>,
    /// Whether contents are compared, for the accesses of all threads.
    pub(super) compares_contents: bool,
}

impl Outputs {
    /// `None` if the variable is not set, or if something in it is not known: standard error then
    /// says so, since the program has not asked and cannot be told.
    pub(super) fn of_variable() -> Option<Self> {
        let value = env::var_os(VARIABLE).filter(|value| !value.is_empty())?;
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
        for part in value.split(',') {
            match part {
                "contents" => asked.compares_contents = true,
                // The device reads this word when it is opened.
                device::GPU_TIMES => {}
                _ => asked.written.push(Output::parse(part).ok_or_else(|| unknown(part))?),
            }
        }
        if asked.written.is_empty() {
            return Err("it asks for no report; add `summary` or `html:PATH`".to_owned());
        }
        Ok(asked)
    }

    /// Writes the reports. Failures go to standard error, and others are written nevertheless.
    pub(super) fn write(&self, report: &Report) {
        for output in &self.written {
            if let Err(error) = output.write(report) {
                say(format_args!("{VARIABLE}: the report was not written: {error}"));
            }
        }
    }
}

fn unknown(part: &str) -> String {
    format!(
        "\"{part}\" is none of `summary`, `json:PATH`, `html:PATH`, `perfetto:PATH`, `contents` \
         and `{}`",
        device::GPU_TIMES
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
        let KernelTotals { launches, errors, notes, .. } = totals;
        DocumentChecked { kernel: kernel.to_owned(), launches, errors, notes }
    };
    document.checked =
        device::checked_totals().map(|totals| totals.kernels().map(of_kernel).collect());
    document
}

/// Writes a line to standard error, unless it is closed.
fn say(message: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "resident: {message}");
}

/// Calls a function when the process ends by `main`'s return, a panic of it, or `exit`.
pub(super) fn at_exit(run: fn()) {
    static RUN: std::sync::OnceLock<fn()> = std::sync::OnceLock::new();
    extern "C" fn run_caught() {
        // A panic must not leave a function that C calls.
        contain_panic(|| RUN.get().into_iter().for_each(|run| run()));
    }
    if RUN.set(run).is_ok() {
        // SAFETY: `run_caught` is a function of the program and does not unwind. The library is
        // part of the program, or of a shared library, whose unloading runs the function first.
        let refused = unsafe { libc::atexit(run_caught) } != 0;
        if refused {
            say(format_args!("{VARIABLE}: the system refused to call back at exit"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NamedFile, Output, Outputs};

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
        for wrong in ["html", "html:", "", "Summary", "xml:a", "contents:a", "gpu_times"] {
            let reason = Outputs::parse(&format!("summary,{wrong}")).unwrap_err();
            assert!(reason.starts_with(&format!("\"{wrong}\" is none of ")), "{reason}");
        }
        let reason = Outputs::parse("contents,gpu-times").unwrap_err();
        assert!(reason.starts_with("it asks for no report"), "{reason}");
    }
}
