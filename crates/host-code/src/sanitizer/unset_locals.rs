//! Local variables that are read before they are written, as far as the compiler says so when it
//! makes checked code. Its warnings are kept in the code, which may be from an earlier process.

use std::fmt::Write;
use std::sync::Arc;

use super::finding::SourceLine;

/// The section of their text.
const SECTION: &str = ".resident_warnings";

/// What such a warning ends with.
const WARNING: &str = "[-Wuninitialized]";

/// A local variable that is read before it is written.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct UnsetLocal {
    pub(super) name: Arc<str>,
    pub(super) line: SourceLine,
    /// The function whose variable it is, and those that it is inlined into.
    functions: Vec<String>,
}

impl UnsetLocal {
    /// Whether a function with this name reads it.
    pub(super) fn is_of(&self, function: &str) -> bool {
        self.functions.iter().any(|one| one == function)
    }
}

/// The section as assembly text, from what the compiler wrote. Empty if it warned of none.
pub(crate) fn section(log: &str) -> String {
    let is_told = |line: &&str| line.ends_with(WARNING) || is_context(line);
    let told: Vec<&str> = log.lines().filter(is_told).collect();
    if !told.iter().any(|line| line.ends_with(WARNING)) {
        return String::new();
    }
    let mut text = format!("\t.section\t{SECTION},\"\",@progbits\n\t.ascii\t\"");
    for byte in told.join("\n").bytes() {
        // A text takes all that is written.
        let _written = write!(text, "\\{byte:03o}");
    }
    text + "\"\n"
}

/// Whether a line says in which functions the next warnings are.
fn is_context(line: &str) -> bool {
    line.contains("In function ") || line.contains("In member function ") || is_inlined(line)
}

fn is_inlined(line: &str) -> bool {
    line.contains("inlined from ")
}

/// What the section of a compiled library says.
pub(super) fn all_of(file: &object::File<'_>) -> Vec<UnsetLocal> {
    use object::{Object, ObjectSection};
    let data = file.section_by_name(SECTION).and_then(|section| section.data().ok());
    let text = data.map(String::from_utf8_lossy).unwrap_or_default();
    parse(&text)
}

fn parse(text: &str) -> Vec<UnsetLocal> {
    let (mut all, mut functions): (Vec<UnsetLocal>, Vec<String>) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if is_context(line) {
            if !is_inlined(line) {
                functions.clear();
            }
            functions.extend(quoted(line).map(|function| plain(function).to_owned()));
        } else if let Some(local) = warning(line, &functions) {
            let is_same = |one: &UnsetLocal| one.name == local.name && one.line == local.line;
            if !all.iter().any(is_same) {
                all.push(local);
            }
        }
    }
    all
}

/// `k.cu:3:7: warning: 's' is used uninitialized [-Wuninitialized]`, in either kind of quotes.
fn warning(line: &str, functions: &[String]) -> Option<UnsetLocal> {
    let (place, text) = line.split_once(": warning: ")?;
    let mut parts = place.rsplitn(3, ':');
    let number = parts.nth(1)?.parse().ok()?;
    let name = quoted(text)?.into();
    let line = SourceLine { file: parts.next()?.into(), number };
    Some(UnsetLocal { name, line, functions: functions.to_vec() })
}

/// What stands between the first quotes.
fn quoted(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(['\u{2018}', '\''])?;
    rest.split_once(['\u{2019}', '\'']).map(|(quoted, _)| quoted)
}

/// The name of a function without types, parameters and namespaces.
fn plain(function: &str) -> &str {
    let name = function.split(['(', '<']).next().unwrap_or(function);
    name.rsplit([' ', ':', '*', '&']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{parse, section};

    const LOG: &str = "k.cu: In function \u{2018}void n::first(int*, const int*)\u{2019}:\n\
        k.cu:3:7: warning: \u{2018}s\u{2019} is used uninitialized [-Wuninitialized]\n\
        k.cu:4:7: warning: unused variable \u{2018}t\u{2019} [-Wunused]\n\
        In function \u{2018}float of(T) [with T = float]\u{2019},\n    \
        inlined from \u{2018}void second<float>(int*)\u{2019} at k.cu:9:5:\n\
        v.h:8:2: warning: variable 'x' is uninitialized when used here [-Wuninitialized]\n\
        v.h:8:2: warning: variable 'x' is uninitialized when used here [-Wuninitialized]\n";

    #[test]
    fn warnings_become_variables_with_their_functions() {
        let all = parse(LOG.replace("k.cu:4:7", "").as_str());
        let said = all.iter().map(|one| (&*one.name, one.line.to_string(), one.functions.clone()));
        let expected = [
            ("s", "k.cu:3".to_owned(), vec!["first".to_owned()]),
            ("x", "v.h:8".to_owned(), vec!["of".to_owned(), "second".to_owned()]),
        ];
        assert_eq!(said.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_section_has_the_warnings_and_their_functions_only() {
        assert_eq!(section("k.cu: In function 'k':\nk.cu:1:1: warning: x [-Wunused]\n"), "");
        let text = section("k.cu: In function 'k':\nnothing\n: warning: 's' [-Wuninitialized]");
        let ascii = text.lines().nth(1).expect("a second line");
        assert!(ascii.starts_with("\t.ascii\t\"\\153\\056\\143\\165"), "{ascii}");
        assert!(!ascii.contains("\\156\\157\\164\\150"), "{ascii}");
    }
}
