//! Whether this process is a fork of the one that made some object. A forked child has neither the
//! parent's pinned memory nor its threads.

/// A mark that a forked child does not inherit. Asking it is one load, where the system offers
/// memory that is empty in a child; asking for the process's number would be a system call.
#[derive(Debug)]
pub(crate) struct ForkMark {
    process: u32,
    #[cfg(target_os = "linux")]
    page: Option<wiped::Page>,
}

impl ForkMark {
    /// A mark of this process.
    pub(crate) fn new() -> Self {
        Self {
            process: std::process::id(),
            #[cfg(target_os = "linux")]
            page: wiped::Page::marked(),
        }
    }

    /// Whether this process made the mark.
    pub(crate) fn is_own(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(page) = &self.page {
            return page.is_marked();
        }
        std::process::id() == self.process
    }
}

#[cfg(target_os = "linux")]
mod wiped {
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU8, Ordering};

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    /// The length that is asked for. The system rounds it up to one page, of whatever length.
    /// Asking for that length instead would read the auxiliary vector, which fails under valgrind.
    const LEN_BYTES: usize = 1;

    /// A page that is zero in forked children.
    #[derive(Debug)]
    pub(super) struct Page(NonNull<AtomicU8>);

    // SAFETY: the value owns its page, and only accesses one atomic in it.
    unsafe impl Send for Page {}
    // SAFETY: as above.
    unsafe impl Sync for Page {}

    impl Page {
        /// A page whose mark is set; `None` if the system cannot make it.
        pub(super) fn marked() -> Option<Self> {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: the system chooses the address of this new mapping, so it replaces none.
            let start = unsafe {
                mmap_anonymous(std::ptr::null_mut(), LEN_BYTES, access, MapFlags::PRIVATE)
            };
            let page = Self(NonNull::new(start.ok()?.cast())?);
            // SAFETY: the page is this value's own, and contains nothing yet.
            unsafe { madvise(page.0.as_ptr().cast(), LEN_BYTES, Advice::LinuxWipeOnFork) }.ok()?;
            page.mark().store(1, Ordering::Relaxed);
            Some(page)
        }

        pub(super) fn is_marked(&self) -> bool {
            self.mark().load(Ordering::Relaxed) != 0
        }

        fn mark(&self) -> &AtomicU8 {
            // SAFETY: the page is mapped until `drop`, starts with zero bytes, and is only accessed
            // through this atomic.
            unsafe { self.0.as_ref() }
        }
    }

    impl Drop for Page {
        fn drop(&mut self) {
            // SAFETY: `marked` mapped the page, and no reference to it is left.
            let _unmapped = unsafe { munmap(self.0.as_ptr().cast(), LEN_BYTES) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ForkMark;

    #[test]
    fn the_process_that_made_a_mark_knows_it() {
        assert!(ForkMark::new().is_own());
    }
}
