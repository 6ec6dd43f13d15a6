//! The life of MPI: initialised, its communicators, finalised or aborted.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use mpi_sys as ffi;

use super::check;
use crate::error::{Error, Result};

/// Whether this library has initialised MPI, which a process may do once.
static IS_STARTED: AtomicBool = AtomicBool::new(false);
/// Whether a `Session` lives. Only its thread writes it; it is atomic to be a `static`.
static IS_LIVE: AtomicBool = AtomicBool::new(false);

/// The communicators, duplicates of `MPI_COMM_WORLD`, so that messages of one kind never match
/// those of another, or of other code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Channel {
    /// Contents that users send; tags are theirs.
    Messages,
    /// A header beside each of them, with the same tag.
    Headers,
    /// What exchanges and gathers send.
    Faces,
    /// Collective operations.
    Collectives,
    /// What the progress thread probes; nothing is ever sent on it.
    Progress,
}

impl Channel {
    pub(super) const ALL: [Self; 5] =
        [Self::Messages, Self::Headers, Self::Faces, Self::Collectives, Self::Progress];
}

/// MPI while it runs. Neither `Send` nor `Sync`: see the module.
pub(crate) struct Session {
    /// By `Channel as usize`.
    pub(super) communicators: Vec<ffi::MPI_Comm>,
    has_all_threads: bool,
    this_thread: PhantomData<*const ()>,
}

impl Session {
    /// Initialises MPI. The communicators come later, by `open`.
    pub(crate) fn initialise() -> Result<Self> {
        if IS_STARTED.swap(true, Ordering::SeqCst) {
            return Err(twice("this process has called it before"));
        }
        if is_initialised()? {
            return Err(twice("other code of this process has initialised MPI"));
        }
        let mut provided = 0;
        // SAFETY: MPI is not initialised, and both arguments may be null since MPI 2.
        let code = unsafe {
            ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), thread_multiple(), &mut provided)
        };
        check("MPI_Init_thread", code)?;
        IS_LIVE.store(true, Ordering::SeqCst);
        let has_all_threads = provided >= thread_multiple();
        let session = Self { communicators: Vec::new(), has_all_threads, this_thread: PhantomData };
        session.return_errors(world())?;
        Ok(session)
    }

    /// Another, for an [`Agent`](super::Agent).
    pub(super) fn duplicate(&self) -> Self {
        Self { communicators: self.communicators.clone(), ..*self }
    }

    /// Whether MPI may be called by several threads at once.
    pub(crate) fn has_all_threads(&self) -> bool {
        self.has_all_threads
    }

    pub(crate) fn rank(&self) -> Result<usize> {
        rank_in(world())
    }

    pub(crate) fn size(&self) -> Result<usize> {
        let mut size = 0;
        // SAFETY: MPI runs, as this session lives.
        check("MPI_Comm_size", unsafe { ffi::MPI_Comm_size(world(), &mut size) })?;
        Ok(size as usize)
    }

    /// The number of processes of the same node that have a smaller rank. All processes call this.
    pub(crate) fn node_rank(&self) -> Result<usize> {
        let mut node = comm_null();
        let (kind, info) = (constant!(RSMPI_COMM_TYPE_SHARED), constant!(RSMPI_INFO_NULL));
        // SAFETY: MPI runs.
        let code = unsafe { ffi::MPI_Comm_split_type(world(), kind, 0, info, &mut node) };
        check("MPI_Comm_split_type", code)?;
        let rank = rank_in(node);
        // SAFETY: MPI runs, `node` was just made, and nothing uses it any more.
        check("MPI_Comm_free", unsafe { ffi::MPI_Comm_free(&mut node) })?;
        rank
    }

    /// The largest tag of a message.
    pub(crate) fn tag_max(&self) -> Result<i32> {
        let mut value: *const c_int = ptr::null();
        let mut is_set = 0;
        let key = ffi::MPI_TAG_UB as c_int;
        let out = (&raw mut value).cast::<c_void>();
        // SAFETY: MPI runs. MPI writes the address of an `int` that it keeps.
        let code = unsafe { ffi::MPI_Comm_get_attr(world(), key, out, &mut is_set) };
        check("MPI_Comm_get_attr", code)?;
        if is_set == 0 || value.is_null() {
            // What the standard guarantees.
            return Ok(32_767);
        }
        // SAFETY: MPI keeps the attribute MPI_TAG_UB, an `int`, until MPI_Finalize.
        Ok(unsafe { *value })
    }

    /// Ends all processes of the job.
    pub(crate) fn abort(&self) -> ! {
        // SAFETY: MPI runs, as this session lives.
        unsafe { ffi::MPI_Abort(world(), 1) };
        std::process::abort()
    }

    /// Finalises MPI. All processes are to call it, so a barrier is to precede it.
    pub(crate) fn finalise(self) -> Result<()> {
        IS_LIVE.store(false, Ordering::SeqCst);
        // SAFETY: MPI runs on this thread, as this session lived, which is the only proof of it.
        check("MPI_Finalize", unsafe { ffi::MPI_Finalize() })
    }

    pub(super) fn communicator(&self, channel: Channel) -> ffi::MPI_Comm {
        self.communicators[channel as usize]
    }

    /// Makes errors return codes; by default they end the job.
    pub(super) fn return_errors(&self, communicator: ffi::MPI_Comm) -> Result<()> {
        let handler = constant!(RSMPI_ERRORS_RETURN);
        // SAFETY: MPI runs, and `communicator` is of it and is never freed.
        let code = unsafe { ffi::MPI_Comm_set_errhandler(communicator, handler) };
        check("MPI_Comm_set_errhandler", code)
    }
}

/// Whether a session lives, for drops that have none.
pub(super) fn is_live() -> bool {
    IS_LIVE.load(Ordering::SeqCst)
}

fn is_initialised() -> Result<bool> {
    let mut flag = 0;
    // SAFETY: MPI_Initialized may be called at any time.
    check("MPI_Initialized", unsafe { ffi::MPI_Initialized(&mut flag) })?;
    Ok(flag != 0)
}

fn twice(reason: &str) -> Error {
    let text = format!(
        "{reason}; MPI can be initialised once in a process, so call it once, and pass clones of \
         `Mpi` on"
    );
    Error::Argument { operation: "init", text }
}

fn rank_in(communicator: ffi::MPI_Comm) -> Result<usize> {
    let mut rank = 0;
    // SAFETY: callers have a session, so MPI runs, and `communicator` is of it.
    check("MPI_Comm_rank", unsafe { ffi::MPI_Comm_rank(communicator, &mut rank) })?;
    Ok(rank as usize)
}

pub(super) fn world() -> ffi::MPI_Comm {
    constant!(RSMPI_COMM_WORLD)
}

pub(super) fn comm_null() -> ffi::MPI_Comm {
    constant!(RSMPI_COMM_NULL)
}

fn thread_multiple() -> c_int {
    constant!(RSMPI_THREAD_MULTIPLE)
}
