//! The disk cache of compiled code for later runs.
//!
//! A file holds its whole key and a checksum, and a reader compares both. A file that is truncated,
//! damaged, not written by this library, or made from another source with the same hash is ignored:
//! the code is compiled again and the file replaced. A folder that cannot be written is not an
//! error. The hash is `std`'s `SipHash`; if a later Rust changes it, all code is compiled once
//! more.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use resident_backend::environment;

/// The environment variable for the cache folder. `off` disables the cache.
const VARIABLE: &str = "RESIDENT_CACHE";

/// The first bytes of every file. Changes with the format.
const MAGIC: &[u8; 16] = b"resident-code-3\n";

/// The size of a length or a checksum.
const NUMBER_BYTES: usize = 8;

/// Compiled code as it is stored: the parts that a compiler produces, in its own order.
pub type Parts<const N: usize> = [Vec<u8>; N];

/// The cache folder, or `None` if there is no cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskCache {
    folder: Option<PathBuf>,
}

impl DiskCache {
    /// The cache in `RESIDENT_CACHE`, else in `resident` below the user's cache folder.
    pub fn from_environment() -> Self {
        folder_from(|name| match name {
            VARIABLE => environment::text(name),
            _ => environment::of_system(name),
        })
        .map_or(Self { folder: None }, |folder| Self::at(&folder))
    }

    /// The cache in this folder.
    pub fn at(folder: &Path) -> Self {
        Self { folder: Some(folder.to_owned()) }
    }

    #[cfg(test)]
    pub fn off() -> Self {
        Self { folder: None }
    }

    /// The folder, for other files beside the code, if only this process's user can write to it.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref().filter(|folder| is_private(folder))
    }

    /// The code under this key.
    pub fn get<const N: usize>(&self, key: &[u8]) -> Option<Parts<N>> {
        let folder = self.folder()?;
        decode(&fs::read(folder.join(file_name(key))).ok()?, key)
    }

    /// Stores code, if the folder can be written. A reader sees the whole file or none.
    pub fn put(&self, key: &[u8], parts: &[&[u8]]) {
        if let Some(folder) = &self.folder {
            // A failure is ignored: the next run then compiles the code again.
            let _unwritten = write_privately(folder, &file_name(key), &encode(key, parts));
        }
    }
}

/// The folder that the environment names.
fn folder_from(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match set(VARIABLE) {
        Some(off) if off.to_str().is_some_and(|off| off.trim().eq_ignore_ascii_case("off")) => None,
        Some(folder) => Some(folder),
        // The XDG specification says to ignore a relative path.
        None => set("XDG_CACHE_HOME")
            .filter(|folder| folder.is_absolute())
            .or_else(|| Some(set("HOME")?.join(".cache")))
            .map(|folder| folder.join("resident")),
    }
}

/// Whether only this process's user can write to the folder. Others must not, because its code is
/// executed.
#[cfg(unix)]
fn is_private(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    let is_private = |folder: &fs::Metadata| {
        folder.is_dir() && is_own(folder) && folder.permissions().mode() & WRITABLE_BY_OTHERS == 0
    };
    fs::metadata(folder).is_ok_and(|folder| is_private(&folder))
}

/// Whether the folder belongs to this process's user.
#[cfg(target_os = "linux")]
fn is_own(folder: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(folder) == rustix::process::geteuid().as_raw()
}

/// On other systems the owner is not checked.
#[cfg(all(unix, not(target_os = "linux")))]
fn is_own(_folder: &fs::Metadata) -> bool {
    true
}

#[cfg(not(unix))]
fn is_private(folder: &Path) -> bool {
    folder.is_dir()
}

fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Writes a temporary file and renames it, so that no reader sees a partial file. The last of
/// several writers wins.
fn write_privately(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    if !folder.is_dir() {
        make_private(folder)?;
    }
    if !is_private(folder) {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    let temporary = folder.join(format!(
        "{name}.{}.{}",
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    ));
    let written = fs::File::create_new(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, folder.join(name)));
    if written.is_err() {
        // If the temporary file cannot be removed either, it stays and is never read.
        let _left = fs::remove_file(&temporary);
    }
    written
}

fn file_name(key: &[u8]) -> String {
    format!("{:016x}", hash(key))
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// `MAGIC`; the number of parts; length and bytes of the key and of each part; the checksum of all
/// these.
fn encode(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&(parts.len() as u64).to_le_bytes());
    for part in [&key].into_iter().chain(parts) {
        file.extend_from_slice(&(part.len() as u64).to_le_bytes());
        file.extend_from_slice(part);
    }
    let checksum = hash(&file);
    file.extend_from_slice(&checksum.to_le_bytes());
    file
}

/// The parts that `encode` wrote under this key.
fn decode<const N: usize>(file: &[u8], key: &[u8]) -> Option<Parts<N>> {
    let (content, checksum) = file.split_last_chunk::<NUMBER_BYTES>()?;
    if u64::from_le_bytes(*checksum) != hash(content) {
        return None;
    }
    let (count, mut rest) = content.strip_prefix(MAGIC)?.split_first_chunk::<NUMBER_BYTES>()?;
    let mut next = || {
        let (len, behind) = rest.split_first_chunk::<NUMBER_BYTES>()?;
        let (part, behind) =
            behind.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        rest = behind;
        Some(part)
    };
    if next()? != key || u64::from_le_bytes(*count) != N as u64 {
        return None;
    }
    let mut parts = [const { Vec::new() }; N];
    for part in &mut parts {
        *part = next()?.to_vec();
    }
    rest.is_empty().then_some(parts)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{DiskCache, Parts, decode, encode, file_name, folder_from};

    fn parts(code: &[u8]) -> [&[u8]; 2] {
        [code, b"_Z1fv"]
    }

    fn stored(code: &[u8]) -> Option<Parts<2>> {
        Some(parts(code).map(<[u8]>::to_vec))
    }

    /// A folder for one test, removed on drop.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let folder =
                std::env::temp_dir().join(format!("resident-cache-{name}-{}", std::process::id()));
            let _left_by_an_earlier_run = fs::remove_dir_all(&folder);
            Self(folder)
        }

        fn only_file(&self) -> PathBuf {
            let mut files: Vec<_> = fs::read_dir(&self.0)
                .expect("made")
                .map(|entry| entry.expect("readable").path())
                .collect();
            assert_eq!(files.len(), 1, "one file, and nothing left over: {files:?}");
            files.remove(0)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _missing = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn code_is_found_only_under_its_key() {
        let scratch = Scratch::new("found");
        let disk = DiskCache::at(&scratch.0.join("below"));
        assert_eq!(disk.get::<2>(b"key"), None);
        disk.put(b"key", &parts(b"first"));
        disk.put(b"key", &parts(b"second"));
        assert_eq!(disk.get(b"key"), stored(b"second"));
        assert_eq!(disk.get::<2>(b"other"), None);
        assert_eq!(DiskCache::off().get::<2>(b"key"), None);
        assert_eq!(disk.get::<1>(b"key"), None, "another number of parts");
        disk.put(b"", &[b""]);
        assert_eq!(disk.get(b""), Some([Vec::new()]));
    }

    #[test]
    fn a_damaged_file_counts_as_missing() {
        let file = encode(b"the key", &parts(b"the code"));
        assert_eq!(decode(&file, b"the key"), stored(b"the code"));
        for len in 0..file.len() {
            assert_eq!(decode::<2>(&file[..len], b"the key"), None, "cut off at {len}");
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert_eq!(decode::<2>(&damaged, b"the key"), None, "damaged at {at}");
        }
        assert_eq!(
            decode::<2>(&[&file[..], b"x"].concat(), b"the key"),
            None,
            "something behind it"
        );
        assert_eq!(decode::<2>(b"something else altogether", b"the key"), None);
    }

    #[test]
    fn a_damaged_file_is_replaced() {
        let scratch = Scratch::new("replaced");
        let disk = DiskCache::at(&scratch.0);
        disk.put(b"key", &parts(b"code"));
        fs::write(scratch.only_file(), b"damaged").expect("writable");
        assert_eq!(disk.get::<2>(b"key"), None);
        disk.put(b"key", &parts(b"code"));
        assert_eq!(disk.get(b"key"), stored(b"code"));
        scratch.only_file();
    }

    #[test]
    fn a_file_of_another_key_with_the_same_hash_is_not_taken() {
        let scratch = Scratch::new("collision");
        let disk = DiskCache::at(&scratch.0);
        disk.put(b"one", &parts(b"code of one"));
        fs::rename(scratch.only_file(), scratch.0.join(file_name(b"two")))
            .expect("as if both had one hash");
        assert_eq!(disk.get::<2>(b"two"), None);
    }

    #[test]
    fn a_missing_folder_is_not_an_error() {
        let scratch = Scratch::new("no-folder");
        fs::write(&scratch.0, b"a file in the folder's place").expect("writable");
        let disk = DiskCache::at(&scratch.0.join("below"));
        disk.put(b"key", &parts(b"code"));
        assert_eq!(disk.get::<2>(b"key"), None);
        fs::remove_file(&scratch.0).expect("it is there");
    }

    #[cfg(unix)]
    #[test]
    fn the_folder_is_private_and_one_that_others_may_write_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new("private");
        let disk = DiskCache::at(&scratch.0);
        disk.put(b"key", &parts(b"code"));
        assert_eq!(fs::metadata(&scratch.0).expect("made").permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o777)).expect("ours");
        assert_eq!(disk.get::<2>(b"key"), None, "another user may have put it there");
        disk.put(b"other", &parts(b"code"));
        scratch.only_file();
    }

    #[test]
    fn the_environment_names_the_folder() {
        let with = |set: &[(&str, &str)]| {
            let set: Vec<(String, OsString)> =
                set.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
            folder_from(move |name| {
                set.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            })
        };
        let path = |path: &str| Some(Path::new(path).to_owned());
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("HOME", "/home/ada")]), path("/home/ada/.cache/resident"));
        assert_eq!(
            with(&[("HOME", "/home/ada"), ("XDG_CACHE_HOME", "/scratch")]),
            path("/scratch/resident")
        );
        assert_eq!(
            with(&[("HOME", "/home/ada"), ("XDG_CACHE_HOME", "relative")]),
            path("/home/ada/.cache/resident")
        );
        assert_eq!(with(&[("HOME", "/home/ada"), ("RESIDENT_CACHE", "here")]), path("here"));
        for off in ["off", " OFF "] {
            assert_eq!(with(&[("HOME", "/home/ada"), ("RESIDENT_CACHE", off)]), None);
        }
        assert_eq!(
            with(&[("HOME", "/home/ada"), ("RESIDENT_CACHE", "")]),
            path("/home/ada/.cache/resident")
        );
    }
}
