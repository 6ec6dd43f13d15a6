//! The headers that stand before every source, precompiled: GCC needs half as long for a source
//! behind them. Clang gets them as text.
//!
//! They lie in a folder of their own beside the cache of kernels, the header and what GCC made of
//! it, and GCC takes the header if it cannot use the other: a source's options may differ too much.
//! Making it takes as long as four kernels gain, so the first source on a machine is compiled
//! without; the second one makes it. Whatever is wrong with it, a source is compiled as text.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use resident_code::cache::DiskCache;
use resident_code::once::OncePerKey;

use super::compiler::Compiler;
use super::kept_code::DISK;
use super::sanitizer;
use super::translation::{NO_CONTRACTION, Translation};

/// The files of a folder.
const HEADER: &str = "headers.hpp";
const PRECOMPILED: &str = "headers.hpp.gch";
const CHECKSUM: &str = "checksum";

/// How the names of the folders begin.
const PREFIX: &str = "resident-precompiled-";

/// Folders that are older are removed when another one is made: those of other compilers and
/// versions of this library, and what a process left that was ended while it made one.
const AGE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What the cache says of headers that some process had to compile as text.
const WANTED: &[u8] = b"wanted";
const IMPOSSIBLE: &[u8] = b"impossible";

/// Precompiled headers.
#[derive(Debug)]
pub(super) struct PrecompiledHeader {
    folder: PathBuf,
    has_failed: AtomicBool,
}

/// What was found or made; `None` if there is none.
static OF_PROCESS: LazyLock<OncePerKey<Vec<u8>, Option<Arc<PrecompiledHeader>>>> =
    LazyLock::new(OncePerKey::new);

/// The precompiled headers for a translation, if there are some, or it is time to make them.
pub(super) fn header(
    compiler: &Compiler,
    translation: &Translation,
) -> Option<Arc<PrecompiledHeader>> {
    if !compiler.is_gcc() || translation.includes_before() {
        return None;
    }
    let job = Job::new(compiler, translation);
    let known = OF_PROCESS.get_or_make(job.key.clone(), || job.find_or_make(&DISK)).ok()?;
    Option::clone(&known).filter(|header| !header.has_failed.load(Ordering::Relaxed))
}

impl PrecompiledHeader {
    /// The options with which a source is compiled behind them.
    pub(super) fn options(&self) -> [OsString; 3] {
        let header = self.folder.join(HEADER).into_os_string();
        ["-fpch-preprocess".into(), "-include".into(), header]
    }

    /// Whether a source may have been refused because of them. A log that does not even name them
    /// is about the source.
    pub(super) fn may_have_caused(&self, log: &str) -> bool {
        let folder = self.folder.to_string_lossy();
        let suspects = [&*folder, "PCH", "precompiled", "internal compiler error", "fatal error"];
        suspects.iter().any(|suspect| log.contains(suspect))
    }

    /// This process does not use them any more.
    pub(super) fn give_up(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }
}

/// It is not worth while yet.
struct NotYet;

/// Headers to be precompiled.
struct Job<'a> {
    compiler: &'a Compiler,
    options: Vec<&'static str>,
    text: &'a str,
    /// What decides over the result.
    key: Vec<u8>,
}

impl<'a> Job<'a> {
    fn new(compiler: &'a Compiler, translation: &'a Translation) -> Self {
        let mut options = vec![NO_CONTRACTION];
        if translation.is_checked() {
            options.push(sanitizer::OPTION);
            options.extend(compiler.checked_options());
        }
        let text = translation.headers();
        let words = options.join(" ");
        let key = [&*compiler.key(), words.as_bytes(), b"\0", text.as_bytes()].concat();
        Self { compiler, options, text, key }
    }

    /// The headers of this or an earlier process.
    fn find_or_make(&self, disk: &DiskCache) -> Result<Option<Arc<PrecompiledHeader>>, NotYet> {
        let note = [b"precompiled\0", &*self.key].concat();
        match disk.get(&note) {
            Some([said]) if said == WANTED => {}
            Some(_) => return Ok(None),
            None => {
                disk.put(&note, &[WANTED]);
                return Err(NotYet);
            }
        }
        let parent = disk.folder().ok_or(NotYet)?;
        let folder = parent.join(self.name());
        if !self.is_ready(&folder) {
            remove_old(parent);
            if let Err(fault) = self.make(&folder) {
                // Others pass: no room, or another process that makes the same.
                if fault.kind() != io::ErrorKind::Unsupported {
                    return Err(NotYet);
                }
                disk.put(&note, &[IMPOSSIBLE]);
                return Ok(None);
            }
            if !self.is_ready(&folder) {
                return Err(NotYet);
            }
        }
        Ok(Some(Arc::new(PrecompiledHeader { folder, has_failed: AtomicBool::new(false) })))
    }

    /// The name of their folder.
    fn name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.key.hash(&mut hasher);
        format!("{PREFIX}{:016x}", hasher.finish())
    }

    /// Whether a folder has these headers, and all of what was made of them.
    fn is_ready(&self, folder: &Path) -> bool {
        let has = |name, bytes: &[u8]| fs::read(folder.join(name)).is_ok_and(|its| its == bytes);
        let sum = || fs::read(folder.join(PRECOMPILED)).map(|made| checksum(&made));
        has(HEADER, self.text.as_bytes()) && sum().is_ok_and(|sum| has(CHECKSUM, &sum))
    }

    /// Makes the folder. Others see all of it or nothing; if two processes make it, one is kept.
    fn make(&self, folder: &Path) -> io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let temporary = loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let temporary = folder.with_extension(format!("{}.{number}", std::process::id()));
            match fs::create_dir(&temporary) {
                Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists => {}
                made => break made.map(|()| temporary)?,
            }
        };
        let made = self.fill(&temporary).and_then(|()| self.publish(&temporary, folder));
        let _moved = fs::remove_dir_all(&temporary);
        made
    }

    fn publish(&self, temporary: &Path, folder: &Path) -> io::Result<()> {
        // Another process may have been as quick.
        if fs::rename(temporary, folder).is_ok() || self.is_ready(folder) {
            return Ok(());
        }
        // What is there is damaged, unless another process has replaced it.
        let _removed = fs::remove_dir_all(folder);
        let replaced = fs::rename(temporary, folder);
        if self.is_ready(folder) { Ok(()) } else { replaced }
    }

    fn fill(&self, folder: &Path) -> io::Result<()> {
        let (header, made) = (folder.join(HEADER), folder.join(PRECOMPILED));
        fs::write(&header, self.text)?;
        let mut command = self.compiler.command();
        command.args(&self.options).args(["-x", "c++-header"]).arg(header).arg("-o").arg(&made);
        let output = self.compiler.output(&mut command).map_err(io::Error::other)?;
        if !output.status.success() {
            // One that was killed may do it another time.
            let kind = output
                .status
                .code()
                .map_or(io::ErrorKind::Interrupted, |_code| io::ErrorKind::Unsupported);
            return Err(io::Error::new(kind, "the compiler made none"));
        }
        fs::write(folder.join(CHECKSUM), checksum(&fs::read(made)?))
    }
}

/// Of a file that is too long for a slow one.
fn checksum(bytes: &[u8]) -> [u8; 8] {
    let sum = bytes.chunks(8).fold(bytes.len() as u64, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
    });
    sum.to_le_bytes()
}

/// Removes folders that were made long ago.
fn remove_old(parent: &Path) {
    let is_old = |entry: &fs::DirEntry| {
        let age = entry.metadata().and_then(|its| its.modified()).map(|time| time.elapsed());
        let name = entry.file_name();
        let hash = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.get(..16));
        hash.is_some_and(|hash| hash.bytes().all(|digit| digit.is_ascii_hexdigit()))
            && age.is_ok_and(|age| age.is_ok_and(|age| age > AGE_MAX))
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten().filter(is_old) {
        // One that cannot be removed stays.
        let _left = fs::remove_dir_all(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use resident_backend::{GpuSource, Program};
    use resident_code::cache::DiskCache;

    use super::{CHECKSUM, HEADER, Job, NotYet, PRECOMPILED, PrecompiledHeader, checksum};
    use crate::compiler::Compiler;
    use crate::translation::{Checks, Translation};

    /// A cache for one test, removed on drop.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("resident-precompiled-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _left_by_an_earlier_run = fs::remove_dir_all(&folder);
            Self(folder)
        }

        fn disk(&self) -> DiskCache {
            DiskCache::at(&self.0)
        }

        /// The folders below.
        fn folders(&self) -> Vec<PathBuf> {
            let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _missing = fs::remove_dir_all(&self.0);
        }
    }

    fn translation(text: &str, checks: Checks) -> Translation {
        let source = GpuSource::c(text);
        let program = Program { kernel: "k".into(), source, parameters: Box::default() };
        Translation::new(&program, text, None, checks, Some(&[])).expect("it has no limit")
    }

    const KERNEL: &str = "extern \"C\" __global__ void k(float *x) { x[0] = sqrtf(x[1]); }";

    /// GCC, if it is the compiler of this machine.
    fn gcc() -> Option<&'static Compiler> {
        Compiler::of_this_machine().filter(|compiler| compiler.is_gcc())
    }

    fn found(job: &Job<'_>, disk: &DiskCache) -> Option<Arc<PrecompiledHeader>> {
        job.find_or_make(disk).ok().flatten()
    }

    #[test]
    fn the_second_source_makes_what_all_others_use() {
        let Some(gcc) = gcc() else { return };
        for checks in [Checks::Off, Checks::On] {
            let scratch = Scratch::new(&format!("second-{checks:?}"));
            let translation = translation(KERNEL, checks);
            let job = Job::new(gcc, &translation);
            assert!(matches!(job.find_or_make(&scratch.disk()), Err(NotYet)));
            assert!(scratch.folders().is_empty());
            let header = found(&job, &scratch.disk()).expect("made");
            assert_eq!(scratch.folders(), std::slice::from_ref(&header.folder));
            let made = fs::metadata(header.folder.join(PRECOMPILED)).expect("made").modified();
            let image = gcc.compile_behind_either(&header, &translation).expect("it compiles");
            assert!(!image.is_empty() && !header.has_failed.load(Ordering::Relaxed));
            found(&job, &scratch.disk()).expect("it is there");
            let later = fs::metadata(header.folder.join(PRECOMPILED)).expect("kept").modified();
            assert_eq!(made.expect("a time"), later.expect("a time"), "it is not made again");
        }
    }

    #[test]
    fn what_is_damaged_or_of_others_is_made_again() {
        let Some(gcc) = gcc() else { return };
        let scratch = Scratch::new("damaged");
        let translation = translation(KERNEL, Checks::Off);
        let job = Job::new(gcc, &translation);
        let _not_yet = job.find_or_make(&scratch.disk());
        let folder = found(&job, &scratch.disk()).expect("made").folder.clone();
        for name in [HEADER, PRECOMPILED, CHECKSUM] {
            let whole = fs::read(folder.join(name)).expect("made");
            let mut changed = whole.clone();
            changed[whole.len() / 2] ^= 1;
            for damaged in [&changed[..], &whole[..whole.len() / 2], b""] {
                fs::write(folder.join(name), damaged).expect("writable");
                assert!(!job.is_ready(&folder), "{name}");
            }
            fs::remove_file(folder.join(name)).expect("it is there");
            found(&job, &scratch.disk()).expect("made again");
            assert!(job.is_ready(&folder), "{name}");
        }
    }

    /// As if they had become unusable after they were looked at.
    #[test]
    fn a_source_compiles_if_they_cannot_be_used() {
        let Some(gcc) = gcc() else { return };
        let scratch = Scratch::new("unusable");
        let translation = translation(KERNEL, Checks::Off);
        let job = Job::new(gcc, &translation);
        let _not_yet = job.find_or_make(&scratch.disk());
        let header = found(&job, &scratch.disk()).expect("made");
        let file = header.folder.join(PRECOMPILED);
        let whole = fs::read(&file).expect("made");
        for damaged in [b"something else", &whole[..whole.len() / 2], &whole[..whole.len() - 9]] {
            fs::write(&file, damaged).expect("writable");
            gcc.compile_behind_either(&header, &translation).expect("it compiles as text");
        }
        fs::remove_dir_all(&header.folder).expect("it is there");
        gcc.compile_behind_either(&header, &translation).expect("it compiles as text");
        let wrong = self::translation("__global__ void k(float *x) { x[0] = y; }", Checks::Off);
        let log = gcc.compile_behind_either(&header, &wrong).expect_err("there is no `y`");
        assert!(log.contains("k.cu:1:") && !log.contains(HEADER), "{log}");
    }

    #[test]
    fn several_at_once_make_one() {
        let Some(gcc) = gcc() else { return };
        let scratch = Scratch::new("several");
        let translation = translation(KERNEL, Checks::Off);
        let job = &Job::new(gcc, &translation);
        let _not_yet = job.find_or_make(&scratch.disk());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| found(job, &scratch.disk()).expect("made"));
            }
        });
        let [folder] = &scratch.folders()[..] else { panic!("{:?}", scratch.folders()) };
        assert!(job.is_ready(folder));
    }

    #[test]
    fn without_a_cache_or_a_compiler_that_makes_some_there_are_none() {
        let Some(gcc) = gcc() else { return };
        let scratch = Scratch::new("none");
        let translation = translation(KERNEL, Checks::Off);
        let mut job = Job::new(gcc, &translation);
        fs::write(&scratch.0, "a file in the folder's place").expect("writable");
        for _ in 0..3 {
            assert!(matches!(job.find_or_make(&scratch.disk()), Err(NotYet)));
        }
        fs::remove_file(&scratch.0).expect("it is there");
        job.options.push("-no-such-option");
        assert!(matches!(job.find_or_make(&scratch.disk()), Err(NotYet)));
        for _ in 0..2 {
            assert!(matches!(job.find_or_make(&scratch.disk()), Ok(None)));
            assert!(scratch.folders().is_empty());
        }
    }

    #[test]
    fn each_bit_is_part_of_the_checksum() {
        let bytes: Vec<u8> = (0..30).collect();
        for at in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert_ne!(checksum(&changed), checksum(&bytes), "{at}");
        }
        assert_ne!(checksum(&bytes), checksum(&[&*bytes, &[0]].concat()));
    }
}
