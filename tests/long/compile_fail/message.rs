//! Messages of rustc without what differs between machines and versions of other files.

/// The message without the lines and columns of files of the library and of Rust, and without what
/// rustc says after the errors.
pub(crate) fn portable(message: &str) -> String {
    const ENDS: [&str; 3] =
        ["error: aborting", "Some errors have detailed", "For more information"];
    let mut file = File::Case;
    let mut lines: Vec<String> = Vec::new();
    for line in message.lines().filter(|line| !ENDS.iter().any(|end| line.starts_with(end))) {
        let line = without_count(&with_rust(line));
        let shown = line.trim_start();
        if shown.starts_with("--> ") || shown.starts_with("::: ") {
            file = File::of(shown);
        }
        lines.extend(file.shown(&line));
    }
    lines.join("\n").trim_end().to_owned() + "\n"
}

/// Whose file the lines of a message are from.
#[derive(Clone, Copy, PartialEq)]
enum File {
    Case,
    Library,
    /// Its text is only there where its sources are installed.
    Rust,
}

impl File {
    fn of(place: &str) -> Self {
        match () {
            () if place.contains("$RUST") => Self::Rust,
            () if place.contains(" cases/") => Self::Case,
            () => Self::Library,
        }
    }

    fn shown(self, line: &str) -> Option<String> {
        let shown = line.trim_start();
        let unnumbered = shown.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let is_source = unnumbered.starts_with('|');
        let is_place = shown.starts_with("--> ") || shown.starts_with("::: ");
        match self {
            Self::Rust if is_source => None,
            // The width of the numbers' column is that of the longest, in any file.
            Self::Library if is_source => Some(unnumbered.to_owned()),
            Self::Library | Self::Rust if is_place => {
                Some(shown.split(".rs:").next().unwrap_or(shown).to_owned() + ".rs")
            }
            _ if is_source || is_place || shown.starts_with("= ") => Some(shown.to_owned()),
            _ => Some(line.to_owned()),
        }
    }
}

/// The folder of Rust's own sources, where they were built or where they are installed.
fn with_rust(line: &str) -> String {
    let Some((before, after)) = line.split_once("/library/") else { return line.to_owned() };
    let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    format!("{}$RUST/{after}", &before[..start])
}

/// How many others rustc does not list changes with each that is added.
fn without_count(line: &str) -> String {
    match line.trim().strip_prefix("and ").and_then(|rest| rest.split_once(' ')) {
        Some((count, "others")) => line.replace(count, "$N"),
        _ => line.to_owned(),
    }
}
