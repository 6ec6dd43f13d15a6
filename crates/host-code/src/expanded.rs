//! A source behind the preprocessor, as the compiler gets it: macros are expanded, included files
//! are there, and each line has its file and number.

use super::refusals::preprocessed::{is_own, marker};

/// The lines from the source's first one on.
pub(super) struct Expanded<'t> {
    lines: Vec<Line<'t>>,
}

#[derive(Clone, Copy)]
struct Line<'t> {
    text: &'t str,
    kind: Kind<'t>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind<'t> {
    /// The name of a file, and a number.
    Marker,
    /// A pragma, or a line of the library's.
    Other,
    /// A line of the source, or of a file that it includes: the file and the number there.
    OfSource(&'t str, usize),
}

impl<'t> Expanded<'t> {
    /// `preprocessed` is what the compiler made of the source and of the headers before it, and
    /// `file` the name of the source there. `None` if it is not there.
    pub(super) fn of(preprocessed: &'t str, file: &str) -> Option<Self> {
        let (mut lines, mut has_begun, mut place) = (Vec::new(), false, (None, 0));
        for text in preprocessed.lines() {
            let kind = match marker(text) {
                Some((number, name, is_system)) => {
                    has_begun |= name == file;
                    let is_of_source = (!is_system || name == file) && !is_own(name);
                    place = (is_of_source.then_some(name), number);
                    Kind::Marker
                }
                None => {
                    let (name, number) = place;
                    place.1 += 1;
                    let name = name.filter(|_| !text.trim_start().starts_with('#'));
                    name.map_or(Kind::Other, |name| Kind::OfSource(name, number))
                }
            };
            if has_begun {
                lines.push(Line { text, kind });
            }
        }
        has_begun.then_some(Self { lines })
    }

    /// The source without all other lines, which are empty.
    pub(super) fn source(&self) -> String {
        let of_source = |line: &Line<'t>| match line.kind {
            Kind::OfSource(..) => line.text,
            _ => "",
        };
        self.lines.iter().flat_map(|line| [of_source(line), "\n"]).collect()
    }

    /// Whether a line of that text, from 1, is one of the source.
    pub(super) fn is_of_source(&self, number: usize) -> bool {
        let line = number.checked_sub(1).and_then(|at| self.lines.get(at));
        line.is_some_and(|line| matches!(line.kind, Kind::OfSource(..)))
    }

    /// The text for the compiler, with this source.
    pub(super) fn with(&self, source: &str) -> String {
        self.joined(source, |line| line.text)
    }

    /// That text without the names of files, so that a line has its number in the source.
    pub(super) fn without_markers(&self, source: &str) -> String {
        self.joined(source, |line| if line.kind == Kind::Marker { "" } else { line.text })
    }

    fn joined<'s>(&'s self, source: &'s str, other: impl Fn(&'s Line<'t>) -> &'s str) -> String {
        let pairs = self.lines.iter().zip(source.lines());
        let texts = pairs.map(|(line, changed)| match line.kind {
            Kind::OfSource(..) => changed,
            _ => other(line),
        });
        texts.flat_map(|text| [text, "\n"]).collect()
    }

    /// A changed source, with the lines as they were where a log has errors.
    pub(super) fn without_errors(&self, changed: &str, before: &str, log: &str) -> String {
        let errors: Vec<(&str, usize)> = log.lines().filter_map(place_of_error).collect();
        let pairs = self.lines.iter().zip(changed.lines().zip(before.lines()));
        let texts = pairs.map(|(line, (changed, before))| match line.kind {
            Kind::OfSource(file, number) if errors.contains(&(file, number)) => before,
            _ => changed,
        });
        texts.flat_map(|text| [text, "\n"]).collect()
    }
}

/// The file and the line in `k.cu:7:3: error: ..`. Assemblers name no column, and begin with a
/// capital letter.
fn place_of_error(line: &str) -> Option<(&str, usize)> {
    let head = line.split_once(": error:").or_else(|| line.split_once(": Error:"))?.0;
    let (file, last) = head.rsplit_once(':')?;
    let with_column =
        file.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    with_column.or_else(|| Some((file, last.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::Expanded;

    const PREPROCESSED: &str = "# 1 \"/tmp/resident-1.cpp\"\n# 1 \"entry.hpp\"\nint own;\n\
        # 1 \"k.cu\"\nint a = 1;\n# 1 \"v.h\" 1\nint v;\n#pragma pack(1)\nint w;\n\
        # 1 \"/tmp/resident-headers-1/cuda_fp16.h\" 1\nint half;\n# 2 \"k.cu\" 2\nint b;\n\
        # 1 \"exports.hpp\"\nint behind;\n";

    #[test]
    fn the_lines_of_a_source_and_its_files_are_changed() {
        let expanded = Expanded::of(PREPROCESSED, "k.cu").expect("it is there");
        let source = expanded.source();
        assert_eq!(source, "\nint a = 1;\n\nint v;\n\nint w;\n\n\n\nint b;\n\n\n");
        let start = PREPROCESSED.find("# 1 \"k.cu\"").expect("it has the source");
        let changed = source.replace("int", "float");
        let with = expanded.with(&changed);
        let expected = PREPROCESSED[start..].replace("int", "float");
        let expected =
            expected.replace("float half", "int half").replace("float behind", "int behind");
        assert_eq!(with, expected);
        assert_eq!(expanded.without_markers(&source).lines().nth(4), Some("#pragma pack(1)"));
        assert_eq!(expanded.without_markers(&source).lines().next(), Some(""));
        let numbers: Vec<usize> = (0..20).filter(|at| expanded.is_of_source(*at)).collect();
        assert_eq!(numbers, [2, 4, 6, 10]);
    }

    #[test]
    fn lines_with_errors_are_as_they_were() {
        let expanded = Expanded::of(PREPROCESSED, "k.cu").expect("it is there");
        let source = expanded.source();
        let changed = source.replace("int", "float");
        let log = "v.h:3:5: error: no\nk.cu:2: Error: no\nk.cu:1:3: warning: yes\n";
        let left = expanded.without_errors(&changed, &source, log);
        assert_eq!(left, "\nfloat a = 1;\n\nfloat v;\n\nint w;\n\n\n\nint b;\n\n\n");
    }
}
