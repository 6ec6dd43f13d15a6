//! A kernel of a module and its parameters, and the image of a module.

use std::sync::Arc;

use crate::call;
use crate::code::{Code, Outcome};
use resident_stand_in_code::library::CodeLibrary;

/// A kernel of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub name: String,
    pub parameters: Vec<Slot>,
    /// The maximum number of threads per block, if the module declares it.
    pub max_threads: Option<u32>,
}

/// The offset and size of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    pub offset_bytes: usize,
    pub len_bytes: usize,
}

/// What a module is made of.
#[derive(Debug)]
pub struct Image {
    pub entries: Vec<Entry>,
    /// The library in the image, if the stand-in for NVRTC or for hiprtc made it.
    pub library: Option<Arc<CodeLibrary>>,
    /// The version of the image's format: 88 for PTX 8.8.
    pub version: i32,
}

impl Image {
    /// The library in an image.
    ///
    /// # Errors
    ///
    /// If it cannot be loaded.
    pub fn load(library: &[u8]) -> Outcome<Arc<CodeLibrary>> {
        CodeLibrary::load(library).map(Arc::new).map_err(|fault| {
            call::note(format!("the library in the module cannot be loaded: {fault}"));
            Code::INVALID_IMAGE
        })
    }
}
