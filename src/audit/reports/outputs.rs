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

    /// Whether both names are one, however it is written: `a.json` and `./a.json`.
    fn is_one_file(&self, other: &Self) -> bool {
        self.folder.join(&self.name) == other.folder.join(&other.name)
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
        match &*name.to_ascii_uppercase() {
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
            asked.add(part)?;
        }
        let is_alone = value.trim().eq_ignore_ascii_case(process::NO_ARGUMENTS);
        if asked.written.is_empty() && !is_alone {
            return Err("it asks for no report; add `summary` or `html:PATH`".to_owned());
        }
        Ok(asked)
    }

    /// Adds a word with what follows `:`. Case does not matter but in a path.
    fn add(&mut self, part: &str) -> Result<(), String> {
        let (word, of) = match part.split_once(':') {
            Some((word, of)) => (word.trim_end(), Some(of.trim_start())),
            None => (part, None),
        };
        let unknown = || unknown(part);
        match (&*word.to_ascii_lowercase(), of) {
            ("contents", None) => self.compares_contents = true,
            // The device reads this word when it is opened, and reports the other.
            (device::GPU_TIMES | process::NO_ARGUMENTS, None) => {}
            ("every", Some(seconds)) => {
                let seconds: NonZeroU32 = seconds.parse().map_err(|_| unknown())?;
                self.every = Some(Duration::from_secs(seconds.get().into()));
            }
            ("signal", Some(name)) => {
                self.signals.push(Signal::parse(name).ok_or_else(unknown)?);
            }
            (word, of) => {
                let output = Output::parse(word, of).ok_or_else(unknown)?;
                return self.add_output(output);
            }
        }
        Ok(())
    }

    /// Two reports do not go to one file: the second would replace the first.
    fn add_output(&mut self, output: Output) -> Result<(), String> {
        let same = |other: &&Output| {
            let (own, other) = (output.file(), other.file());
            own.zip(other).is_some_and(|(own, other)| own.is_one_file(other))
        };
        if let Some(other) = self.written.iter().find(same) {
            return Err(format!("`{other}` and `{output}` write one file; give each its own path"));
        }
        if !self.written.contains(&output) {
            self.written.push(output);
        }
        Ok(())
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
         `every:SECONDS`, `signal:USR1`, `signal:USR2`, `signal:HUP`, `contents`, `{}` and `{}`, \
         separated by commas; a path must not have one",
        device::GPU_TIMES,
        process::NO_ARGUMENTS
    )
}

impl Output {
    fn parse(word: &str, path: Option<&str>) -> Option<Self> {
        let file = path.filter(|path| !path.is_empty()).map(NamedFile::new);
        match (word, path, file) {
            ("summary", None, _) => Some(Self::Summary),
            ("json", _, Some(file)) => Some(Self::Json(file)),
            ("html", _, Some(file)) => Some(Self::Html(file)),
            ("perfetto", _, Some(file)) => Some(Self::Perfetto(file)),
            _ => None,
        }
    }

    /// The file that is written, if one is.
    fn file(&self) -> Option<&NamedFile> {
        match self {
            Self::Summary => None,
            Self::Json(file) | Self::Html(file) | Self::Perfetto(file) => Some(file),
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

/// As it stands in the variable.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Summary => f.write_str("summary"),
            Self::Json(file) => write!(f, "json:{}", file.name),
            Self::Html(file) => write!(f, "html:{}", file.name),
            Self::Perfetto(file) => write!(f, "perfetto:{}", file.name),
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
            "summary:a",
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
            "b.html",
            "signal:SIGUSR1",
        ] {
            let reason = Outputs::parse(&format!("summary,{wrong}")).unwrap_err();
            assert!(reason.starts_with(&format!("\"{wrong}\" is none of ")), "{reason}");
        }
        let shouted =
            Outputs::parse("\tSummary , HTML : A/B.html,Contents, GPU-Times,signal:usr1 ");
        let shouted = shouted.unwrap();
        let page = Output::Html(NamedFile::new("A/B.html"));
        assert_eq!(shouted.written, [Output::Summary, page]);
        assert_eq!((shouted.compares_contents, &*shouted.signals), (true, &[Signal::User1][..]));
        assert_eq!(Outputs::parse("summary, SUMMARY").unwrap().written, [Output::Summary]);
        Outputs::parse(" No-Arguments ").unwrap();
        let reason = Outputs::parse("contents,gpu-times").unwrap_err();
        assert!(reason.starts_with("it asks for no report"), "{reason}");
    }

    #[test]
    fn two_reports_in_one_file_are_refused() {
        for (value, words) in [
            ("json:a,html:a", ["`json:a`", "`html:a`"]),
            ("summary,json:a.json,json:./a.json", ["`json:a.json`", "`json:./a.json`"]),
            ("perfetto:x/%p,json:x//%p", ["`perfetto:x/%p`", "`json:x//%p`"]),
        ] {
            let reason = Outputs::parse(value).unwrap_err();
            assert!(words.iter().all(|word| reason.contains(word)), "{reason}");
            assert!(reason.ends_with("write one file; give each its own path"), "{reason}");
        }
        let two = Outputs::parse("json:a,html:A,json:b/a").unwrap();
        assert_eq!(two.written.len(), 3);
    }
}
