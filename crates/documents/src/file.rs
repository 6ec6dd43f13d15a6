//! Files of reports.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that is being written.
type Output = BufWriter<File>;

/// Writes a file: beside its place, and then renames it, so that no reader sees half of it, and a
/// failure leaves the earlier file. What is there and is no file, such as a pipe or a terminal, is
/// written to directly. The error names the file.
pub fn write_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    write_by(path, |file| file.write_all(contents))
}

/// As [`write_file`], by a function.
pub(crate) fn write_by(
    path: &Path,
    write: impl FnOnce(&mut Output) -> io::Result<()>,
) -> io::Result<()> {
    // What a link leads to is replaced, not the link.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let outcome = match fs::metadata(&place) {
        Ok(metadata) if !metadata.is_file() => create(&place, write),
        _ => replace(&place, write),
    };
    outcome.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

fn create(place: &Path, write: impl FnOnce(&mut Output) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(place)?);
    write(&mut file)?;
    file.flush()
}

fn replace(place: &Path, write: impl FnOnce(&mut Output) -> io::Result<()>) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let Some(name) = place.file_name() else { return create(place, write) };
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}-{number}.tmp", process::id()));
    let beside = place.with_file_name(beside);
    create(&beside, write).and_then(|()| fs::rename(&beside, place)).inspect_err(|_| {
        // The error says what went wrong; the part that was written is of no use.
        let _ = fs::remove_file(&beside);
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::{env, fs, process, thread};

    use super::write_file;

    /// Each file that a reader sees is whole, whatever writers do meanwhile.
    #[test]
    fn readers_never_see_a_part_of_a_file() {
        let folder = env::temp_dir().join(format!("resident-files-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("a.json");
        let of = |byte: u8| vec![byte; 1 << 16];
        write_file(&path, &of(b'0')).expect("a file");
        let is_over = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                for round in 0..250 {
                    write_file(&path, &of(b'0' + round % 10)).expect("a file");
                }
                is_over.store(true, Ordering::Relaxed);
            });
            while !is_over.load(Ordering::Relaxed) {
                let seen = fs::read(&path).expect("there is always one");
                assert!(seen.len() == 1 << 16 && seen.iter().all(|byte| *byte == seen[0]));
            }
        });
        assert_eq!(
            fs::read_dir(&folder).expect("a folder").count(),
            1,
            "nothing is left beside it"
        );
        fs::remove_dir_all(folder).expect("a folder");
    }

    #[test]
    fn a_failure_names_the_file_and_leaves_nothing() {
        let folder = env::temp_dir().join(format!("resident-no-folder-{}", process::id()));
        let path = folder.join("a.json");
        let error = write_file(&path, b"{}").expect_err("there is no folder");
        assert!(error.to_string().starts_with(path.to_str().expect("ASCII")), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_a_device_is_written_to() {
        let folder = env::temp_dir().join(format!("resident-links-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (file, link) = (folder.join("file"), folder.join("link"));
        fs::write(&file, b"old").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        write_file(&link, b"new").expect("a file");
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(fs::read(&file).expect("a file"), b"new");
        write_file("/dev/null".as_ref(), b"lost").expect("a device");
        fs::remove_dir_all(folder).expect("a folder");
    }
}
