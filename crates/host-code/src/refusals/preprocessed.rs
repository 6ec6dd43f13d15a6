//! A source as the preprocessor leaves it: macros are expanded, and what is not compiled is gone.

/// The option with which the headers leave `__device__` and its kin as they are.
pub(in super::super) const OPTION: &str = "-DRESIDENT_OUTLINE";

/// The lines of the source and of the files that it includes, without those of the library and the
/// host.
pub(in super::super) struct Preprocessed {
    pub(in super::super) text: String,
    /// For each line, its file and its number.
    lines: Vec<(usize, usize)>,
    files: Vec<String>,
}

impl Preprocessed {
    /// `preprocessed` is what the compiler made of the source and of the headers around it, and
    /// `file` the name of the source there.
    pub(in super::super) fn of(preprocessed: &str, file: &str) -> Self {
        let mut source = Self { text: String::new(), lines: Vec::new(), files: Vec::new() };
        let (mut current, mut has_begun, mut number) = (None, false, 0);
        for line in preprocessed.lines() {
            if let Some((next, name, is_system)) = marker(line) {
                has_begun |= name == file;
                // What macros of the system's headers become stands as theirs in the source.
                let is_of_source = has_begun && (!is_system || name == file) && !is_own(name);
                (current, number) = (is_of_source.then(|| source.file(name)), next);
                continue;
            }
            if let Some(file) = current {
                // A pragma is no declaration, whatever is in its parentheses.
                let is_pragma = line.trim_start().starts_with('#');
                source.text.push_str(if is_pragma { "" } else { line });
                source.text.push('\n');
                source.lines.push((file, number));
            }
            number += 1;
        }
        source
    }

    /// The number of a file.
    fn file(&mut self, name: &str) -> usize {
        self.files.iter().position(|known| known == name).unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        })
    }

    /// `k.cu:3` for a place in the text.
    pub(super) fn place(&self, at: usize) -> String {
        let known = self.lines.get(self.text[..at].matches('\n').count());
        known.map_or_else(String::new, |(file, number)| format!("{}:{number}", self.files[*file]))
    }
}

/// What a line of the preprocessor says: the number of the next line, its file, and whether that is
/// the system's.
pub(in super::super) fn marker(line: &str) -> Option<(usize, &str, bool)> {
    let rest = line.strip_prefix("# ")?;
    let (number, rest) = rest.split_once(' ')?;
    let (name, flags) = rest.strip_prefix('"')?.rsplit_once('"')?;
    Some((number.parse().ok()?, name, flags.split_whitespace().any(|flag| flag == "3")))
}

/// Whether a file is one of the library's.
pub(in super::super) fn is_own(name: &str) -> bool {
    let is_header = |name: &str| {
        let last = name.rsplit('/').next().unwrap_or(name);
        last.ends_with(".hpp") || last == "CudaSource::entry"
    };
    is_header(name) || name.starts_with('<') || name.contains("/resident-headers-")
}
