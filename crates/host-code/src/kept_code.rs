//! What compilers made, kept for this process and on disk for later ones.

use std::sync::{Arc, LazyLock};

use resident_code::cache::DiskCache;
use resident_code::once::OncePerKey;

static OF_PROCESS: LazyLock<OncePerKey<Vec<u8>, Vec<u8>>> = LazyLock::new(OncePerKey::new);

pub(super) static DISK: LazyLock<DiskCache> = LazyLock::new(DiskCache::from_environment);

/// The code under a key, from memory or from disk, or compiled now.
pub(super) fn get_or_compile(
    key: Vec<u8>,
    compile: impl FnOnce() -> Result<Vec<u8>, String>,
) -> Result<Arc<Vec<u8>>, String> {
    OF_PROCESS.get_or_make(key.clone(), || match DISK.get(&key) {
        Some([code]) => Ok(code),
        None => {
            let code = compile()?;
            DISK.put(&key, &[&code]);
            Ok(code)
        }
    })
}
