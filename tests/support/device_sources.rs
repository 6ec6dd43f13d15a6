//! The device sources of the repository: all files that end with `.cu`, each after the file that
//! its line `// Preceded by: ` names.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders with such files.
const FOLDERS: [&str; 4] = ["src", "examples", "tests", "benches"];

/// The root of the repository.
///
/// # Panics
///
/// If the tests were moved.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("it has two").to_owned()
}

/// All sources, with their paths below the root.
///
/// # Panics
///
/// If a file cannot be read.
#[must_use]
pub fn all() -> Vec<(String, String)> {
    let root = root();
    let mut files = Vec::new();
    FOLDERS
        .iter()
        .map(|folder| root.join(folder))
        .filter(|folder| folder.is_dir())
        .for_each(|folder| sources_below(&folder, &mut files));
    let name =
        |file: &PathBuf| file.strip_prefix(&root).expect("below the root").display().to_string();
    files.iter().map(|file| (name(file), text_of(file))).collect()
}

fn text_of(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("text");
    let Some(before) = text.lines().find_map(|line| line.strip_prefix("// Preceded by: ")) else {
        return text;
    };
    text_of(&file.with_file_name(before)) + &text
}

fn sources_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            sources_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "cu") {
            found.push(path);
        }
    }
}
