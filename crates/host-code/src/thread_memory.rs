//! The memory that a library has for each thread of the machine: its `__shared__` variables. While
//! blocks take turns on one thread, that of the others is kept elsewhere.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

use super::symbols::plain_name;
use super::waiting;

/// `resident_host_of_thread`: the address of one of these variables.
pub(super) type OfThread = unsafe extern "C" fn() -> *mut c_void;

/// The header's variable that it returns; the second one in checked code.
const VARIABLES: [&str; 2] = ["resident_patience", "resident_of_thread"];

/// Where the memory lies, and how much it is.
#[derive(Debug)]
pub(super) struct ThreadMemory {
    of_thread: OfThread,
    /// Where the variable lies there.
    offset: usize,
    len_bytes: usize,
}

/// What the memory of a block contains, its dynamic shared memory too.
pub(super) struct KeptMemory {
    own: Box<[MaybeUninit<u8>]>,
    dynamic: Box<[MaybeUninit<u8>]>,
}

impl ThreadMemory {
    /// That of an ELF image.
    ///
    /// # Safety
    ///
    /// The image's function has this name and this type.
    pub(super) unsafe fn read(image: &[u8], of_thread: OfThread) -> Option<Self> {
        let file = object::File::parse(image).ok()?;
        let is_its = |symbol: &object::Symbol<'_, '_>| {
            symbol.kind() == SymbolKind::Tls
                && symbol.name().is_ok_and(|name| VARIABLES.contains(&plain_name(name)))
        };
        let offset = file.symbols().find(is_its)?.address() as usize;
        let of_threads = |kind| matches!(kind, SectionKind::Tls | SectionKind::UninitializedTls);
        let sections = || file.sections().filter(|section| of_threads(section.kind()));
        let start = sections().map(|section| section.address()).min()?;
        let end = sections().map(|section| section.address() + section.size()).max()?;
        Some(Self { of_thread, offset, len_bytes: (end - start) as usize })
    }

    /// Where it starts, on this thread of the machine.
    fn start(&self) -> *mut MaybeUninit<u8> {
        // SAFETY: `read`'s caller promises that the function has this type.
        let variable = unsafe { (self.of_thread)() };
        variable.cast::<MaybeUninit<u8>>().wrapping_sub(self.offset)
    }

    /// What a block has there, whose launch has so much dynamic shared memory.
    pub(super) fn keep(&self, dynamic_bytes: usize) -> KeptMemory {
        // SAFETY: the library has so many bytes there for this thread of the machine, on which none
        // of its code runs.
        let own = unsafe { copied(self.start(), self.len_bytes) };
        // SAFETY: it has at least as many bytes as a launch may ask for, and no code that accesses
        // them runs.
        let dynamic = unsafe { copied(waiting::dynamic_shared().cast(), dynamic_bytes) };
        KeptMemory { own, dynamic }
    }

    /// Brings back what a block had there.
    pub(super) fn bring_back(&self, kept: &KeptMemory) {
        let to = [self.start(), waiting::dynamic_shared().cast()];
        for (to, from) in to.into_iter().zip([&kept.own, &kept.dynamic]) {
            // SAFETY: as in `keep`: so many bytes were read there.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        }
    }
}

/// # Safety
///
/// So many bytes can be read there, and nothing writes them meanwhile.
unsafe fn copied(from: *const MaybeUninit<u8>, len_bytes: usize) -> Box<[MaybeUninit<u8>]> {
    let mut bytes = Box::new_uninit_slice(len_bytes);
    // SAFETY: the caller promises this of the source.
    unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), len_bytes) };
    bytes
}
