//! One launch, with its types erased: acquires the arrays, submits the body, and marks the arrays
//! as used. The types of the arguments are explained in `arguments`.

use std::sync::Arc;

use smallvec::SmallVec;

use super::arguments::bound::{ArrayForm, BoundArgument, BoundArray, Words};
use super::compared_body::compared;
use crate::audit::{self, ArgumentRecord, Cause, Flow, Launched};
use crate::device::{self, Device, Stream, call_error};
use crate::error::{Error, Result};
use crate::storage::{self, HostWrite};
use crate::transfer::{self, Acquired, LaunchedArrays, Marked, Request};
use resident_backend::call_site::CallSite;
use resident_backend::grid::Grid;
use resident_backend::sync;
use resident_backend::thread_pools::note_pool_threads;
use resident_backend::{
    Address, BackendError, Dependencies, KernelBody, KernelCode, LaunchCall, PackedArray, Position,
    failure,
};
use resident_core::layout::Selection;

/// A kernel, its grid and its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launch<'a> {
    pub(super) code: &'a KernelCode,
    pub(super) title: &'a Arc<str>,
    pub(super) grid: &'a Grid,
    pub(super) bound: &'a [BoundArgument<'a>],
    pub(super) site: CallSite,
    /// With up to this many elements in all arrays the launch is brief: 0 for bodies of programs.
    pub(super) brief_len_max: u64,
}

/// The arguments of a launch or a chain, and the call for which they are acquired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acquiring<'a> {
    /// The name in messages: `kernel "blur"`.
    pub(super) title: &'a Arc<str>,
    pub(super) bound: &'a [BoundArgument<'a>],
    pub(super) site: CallSite,
}

impl<'a> Acquiring<'a> {
    pub(super) fn bound_arrays(&self) -> impl Iterator<Item = &'a BoundArray<'a>> + use<'a> {
        self.bound.iter().filter_map(|bound| match bound {
            BoundArgument::Array(array) => Some(array),
            BoundArgument::Scalar { .. } | BoundArgument::Temporary(_) => None,
        })
    }

    /// Returns an error if the array is a device array of another device.
    fn check_home(&self, array: &BoundArray<'_>, stream: &Stream) -> Result<()> {
        match array.home {
            Some(home) if home != stream.device_ref() => {
                Err(self.wrong_device(array, home, stream.device_ref().name()))
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if the array is written and is a view of parts of numbers.
    fn check_numbers(&self, array: &BoundArray<'_>) -> Result<()> {
        if !array.access.writes() {
            return Ok(());
        }
        array.stored().expect_whole_numbers(self.title, self.site)
    }

    #[cold]
    fn wrong_device(&self, array: &BoundArray<'_>, home: &Device, other: String) -> Error {
        transfer::wrong_device(array.storage, home, self.title, other).at(self.site)
    }

    /// Acquires an array on the stream's device, and returns the address of its copy. `epoch` is
    /// the current epoch of failures.
    #[inline(always)]
    pub(super) fn acquire(
        &self,
        array: &'a BoundArray<'a>,
        stream: &Stream,
        epoch: u64,
        launched: &mut LaunchedArrays<'a>,
        depends: &mut Dependencies,
    ) -> Result<Address> {
        let ready = if array.is_whole {
            launched.acquire_whole(array.storage, stream, epoch, array.access, depends)
        } else {
            None
        };
        match ready {
            Some(address) => Ok(address),
            None => self.acquire_unready(array, stream, launched, depends),
        }
    }

    /// Acquires an array that needs copies, waits or memory, or a part of one.
    #[inline(never)]
    fn acquire_unready(
        &self,
        array: &BoundArray<'a>,
        stream: &Stream,
        launched: &mut LaunchedArrays<'a>,
        depends: &mut Dependencies,
    ) -> Result<Address> {
        let call = || (&**self.title, self.site);
        if !array.is_whole
            && let Some(address) =
                launched.acquire_known(array.stored(), stream, array.access, depends, call)?
        {
            return Ok(address);
        }
        // A device array is never ready on another device.
        self.check_home(array, stream)?;
        self.check_numbers(array)?;
        let (storage, selection, device) = (array.storage, array.selection(), stream.device_ref());
        if device.has_been_full() {
            let arrays = self.bound_arrays().map(|array| (array.storage, array.selection()));
            transfer::use_copies(storage, &selection, arrays, device);
        }
        launched.acquire(array.stored(), selection, stream, array.access, depends, call)
    }

    /// Called if acquiring the arrays failed with an error, and none of them is pinned. If there
    /// was too little memory because the call keeps whole copies of which it uses parts, gives
    /// memory to its arrays that have none: such copies give way, and their parts get memory by
    /// pages when the arrays are acquired again. Otherwise returns the error.
    #[cold]
    pub(super) fn make_room(&self, stream: &Stream, error: Error) -> Result<()> {
        let coherent = || self.bound_arrays().filter(|array| array.home.is_none());
        let selections: SmallVec<[Selection; 4]> = coherent().map(BoundArray::selection).collect();
        let requests = || {
            let arrays = coherent().zip(&selections);
            arrays.map(|(array, selection)| self.request(array, selection, Cause::Launch))
        };
        let keeps_too_much = |request: Request<'_>| request.keeps_too_much(stream.device_ref());
        if !matches!(error, Error::OutOfMemory { .. }) || !requests().any(keeps_too_much) {
            return Err(error);
        }
        requests().try_for_each(|request| transfer::allocate(&request, stream))
    }

    fn request<'s>(
        &'s self,
        array: &BoundArray<'s>,
        selection: &'s Selection,
        cause: Cause,
    ) -> Request<'s> {
        Request::new(array.storage, selection, array.access, cause, self.title, self.site)
    }
}

impl<'a> Launch<'a> {
    #[inline(always)]
    fn acquiring(&self) -> Acquiring<'a> {
        Acquiring { title: self.title, bound: self.bound, site: self.site }
    }

    fn bound_arrays(&self) -> impl Iterator<Item = &'a BoundArray<'a>> {
        self.acquiring().bound_arrays()
    }

    /// Whether the calling thread may run the body at once.
    #[inline]
    fn is_brief(&self) -> bool {
        self.brief_len_max > 0
            && self.bound_arrays().map(|array| array.len).sum::<u64>() <= self.brief_len_max
    }

    /// Queues the launch on a stream.
    pub(super) fn queue_on(&self, stream: &Stream) -> Result<()> {
        if self.grid.is_empty_cover() {
            return Ok(());
        }
        if failure::is_forgetting_due() {
            // Before the arrays are pinned: with a pinned array no records are removed.
            storage::forget_failures();
        }
        if let KernelCode::Host(body) = self.code {
            note_pool_threads();
            let names = || self.bound_arrays().map(|array| array.storage.named()).collect();
            if let Some(named) = body.for_launch(&names, self.site) {
                return self.queue_named(named, stream);
            }
        }
        if stream.device_ref().properties().knows_left_out {
            // A body in Rust gets all elements. One in CUDA C was found above.
            expect_written(self.bound, self.title, stream, self.site)?;
        }
        if audit::observes_launches() {
            self.queue_observed(stream)
        } else {
            queue::<false>(self, stream)
        }
    }

    /// Queues the launch with a body that names its arrays.
    #[cold]
    fn queue_named(&self, body: Arc<dyn KernelBody>, stream: &Stream) -> Result<()> {
        let launch = Launch { code: &KernelCode::Host(body), ..*self };
        if audit::observes_launches() {
            launch.queue_observed(stream)
        } else {
            queue::<false>(&launch, stream)
        }
    }

    /// Queues the launch with a span of `tracing` and a record for captures, if they want them. The
    /// copies are reported once the launch is queued: a subscriber that panics must not leave it
    /// half done.
    #[cold]
    fn queue_observed(&self, stream: &Stream) -> Result<()> {
        let _span = audit::enter_launch(self.title, stream, self.site);
        let code = compared(self.code, self.bound_arrays());
        let launch = Launch { code: code.as_ref().unwrap_or(self.code), ..*self };
        let held = audit::hold_reports();
        let queued = queue::<true>(&launch, stream);
        drop(held);
        audit::end_launch();
        queued
    }

    /// Runs a host body on the host's copies, on the calling thread.
    pub(super) fn run_on_host(&self, body: &dyn KernelBody) -> Result<()> {
        if self.grid.is_empty_cover() {
            return Ok(());
        }
        let acquiring = self.acquiring();
        if let Some((array, home)) =
            self.bound_arrays().find_map(|array| Some((array, array.home?)))
        {
            return Err(acquiring.wrong_device(array, home, String::from("the host")));
        }
        self.bound_arrays().try_for_each(|array| acquiring.check_numbers(array))?;
        let selections: SmallVec<[Selection; 4]> =
            self.bound_arrays().map(BoundArray::selection).collect();
        let arrays = || self.bound_arrays().zip(&selections);
        let acquired = arrays()
            .map(|(array, selection)| {
                transfer::acquire_host_to_write(&acquiring.request(array, selection, Cause::Host))
            })
            .collect::<Result<SmallVec<[Acquired<'_>; 4]>>>()?;
        let written = arrays().filter(|(array, _)| array.access.writes());
        let _writes: SmallVec<[HostWrite; 4]> = written
            .map(|(array, selection)| {
                transfer::mark_host_written(&acquiring.request(array, selection, Cause::Launch))
            })
            .collect();
        drop(acquired);
        let mut words = Words::new();
        self.bound.iter().for_each(|bound| bound.pack(&mut words));
        let pointers: SmallVec<[*mut u8; 8]> = self
            .bound_arrays()
            .map(|array| array.storage.host_base().wrapping_add(array.origin_bytes() as usize))
            .collect();
        sync::assert_none_held();
        // SAFETY: the words are those of this kernel's arguments, in the order of its signature.
        // Each array was acquired on the host: its elements are initialised, and no queued work
        // writes those that the body reads or touches those that it writes. The borrows in the
        // arguments exclude all other accesses until the body returns.
        unsafe { body.run(*self.grid, &words, &pointers) };
        Ok(())
    }
}

/// Returns an error if an earlier launch left out an element of an array that is to be read, on a
/// device that knows. For launches that read all of their arrays.
#[cold]
pub(crate) fn expect_written(
    bound: &[BoundArgument<'_>],
    operation: &str,
    stream: &Stream,
    site: CallSite,
) -> Result<()> {
    let arrays = bound.iter().filter_map(|bound| match bound {
        BoundArgument::Array(array) => Some(array),
        BoundArgument::Scalar { .. } | BoundArgument::Temporary(_) => None,
    });
    arrays.into_iter().try_for_each(|array| {
        let (selection, cause) = (array.selection(), Cause::Launch);
        Request::new(array.storage, &selection, array.access, cause, operation, site)
            .expect_written(stream.device_ref())
    })
}

/// Acquires the arrays, submits the body and marks the arrays. Unobserved launches have an instance
/// of this function of their own, so that they pay nothing for records.
#[inline(always)]
fn queue<const IS_OBSERVED: bool>(launch: &Launch<'_>, stream: &Stream) -> Result<()> {
    let (mut words, mut depends) = (Words::new(), Dependencies::new());
    let (mut packed_arrays, mut launched) = (PackedArrays::new(), LaunchedArrays::default());
    let prepared = Prepared {
        words: &mut words,
        packed_arrays: &mut packed_arrays,
        launched: &mut launched,
        depends: &mut depends,
    };
    if let Err(error) = acquire(launch, stream, prepared) {
        let prepared = Prepared {
            words: &mut words,
            packed_arrays: &mut packed_arrays,
            launched: &mut launched,
            depends: &mut depends,
        };
        acquire_again(launch, stream, prepared, error)?;
    }
    let mut call = LaunchCall {
        code: launch.code,
        grid: launch.grid,
        words: &mut words,
        arrays: &packed_arrays,
        depends: &depends,
        site: launch.site,
        is_brief: !IS_OBSERVED && launch.is_brief(),
    };
    let submitted =
        if IS_OBSERVED { submit_timed(stream, &mut call) } else { stream.raw().launch(&mut call) };
    let position = match submitted {
        Ok(position) => position,
        Err(error) => return Err(launch_error(launch, stream, &error)),
    };
    let launcher = mark(launch, stream, &mut launched, position);
    if IS_OBSERVED {
        record(launch, stream, position, launcher);
    }
    Ok(())
}

/// Queues the body, and times it if that is asked for.
#[cold]
fn submit_timed(stream: &Stream, call: &mut LaunchCall<'_>) -> Result<Position, BackendError> {
    device::take_some_times();
    let begun = stream.begin_timing();
    let position = stream.raw().launch(call)?;
    stream.end_timing(begun, position);
    Ok(position)
}

fn record(launch: &Launch<'_>, stream: &Stream, position: Position, launcher: Flow) {
    let (title, position, site) = (launch.title, position.0, launch.site);
    let argument = |array: &BoundArray<'_>| {
        ArgumentRecord::new(array.storage, array.access, array.is_whole, array.home)
    };
    let launched = Launched { title, stream, position, site, launcher };
    audit::record_launch(&launched, launch.bound_arrays().map(argument));
}

#[cold]
fn launch_error(launch: &Launch<'_>, stream: &Stream, error: &BackendError) -> Error {
    call_error(
        stream.device_ref(),
        "its arguments",
        &format!("queueing {} at {}", launch.title, launch.site),
        error,
    )
}

/// The arrays of a launch as a backend gets them. Device code needs no entry for flat arrays: their
/// addresses are among the words.
type PackedArrays = SmallVec<[PackedArray; 16]>;

/// What [`acquire`] fills. These are references, because moving the lists costs as much as filling
/// them.
struct Prepared<'r, 'a> {
    words: &'r mut Words,
    packed_arrays: &'r mut PackedArrays,
    launched: &'r mut LaunchedArrays<'a>,
    depends: &'r mut Dependencies,
}

/// Acquires the arrays and packs all arguments.
#[inline(always)]
fn acquire<'a>(launch: &'a Launch<'_>, stream: &Stream, prepared: Prepared<'_, 'a>) -> Result<()> {
    let Prepared { words, packed_arrays, launched, depends } = prepared;
    let (acquiring, epoch) = (launch.acquiring(), failure::epoch());
    let is_device_code = matches!(launch.code, KernelCode::Loaded(_));
    for bound in launch.bound {
        if let BoundArgument::Array(array) = bound {
            let address = acquiring.acquire(array, stream, epoch, launched, depends)?;
            if is_device_code && array.is_flat() {
                words.push(address.0.wrapping_add(array.origin_bytes()));
                if array.form == ArrayForm::Slice {
                    words.push(array.len);
                }
                continue;
            }
            packed_arrays.push(packed(array, address, words.len()));
        }
        bound.pack(words);
    }
    Ok(())
}

/// Acquires the arrays again if there is room for them now.
#[cold]
#[inline(never)]
fn acquire_again<'a>(
    launch: &'a Launch<'_>,
    stream: &Stream,
    prepared: Prepared<'_, 'a>,
    error: Error,
) -> Result<()> {
    *prepared.launched = LaunchedArrays::default();
    launch.acquiring().make_room(stream, error)?;
    prepared.words.clear();
    prepared.packed_arrays.clear();
    prepared.depends.clear();
    acquire(launch, stream, prepared)
}

/// Marks the arrays as used at `position`. Records one event for all of them if other streams may
/// have to wait for one. Returns the copies of a launcher that copies each argument.
#[inline(always)]
fn mark(
    launch: &Launch<'_>,
    stream: &Stream,
    launched: &mut LaunchedArrays<'_>,
    position: Position,
) -> Flow {
    after_mark(stream, launched.mark(stream, position, || (&**launch.title, launch.site)))
}

/// Counts a launch whose arrays are marked, and records an event if it is expected. Returns the
/// copies of a launcher that copies each argument.
#[inline(always)]
pub(super) fn after_mark(stream: &Stream, marked: Marked) -> Flow {
    stream.device_ref().count_launch(&marked.copies);
    if marked.needs_event {
        stream.ensure_event_at_tail();
    } else if marked.follows_other {
        stream.guess_event_at_tail();
    }
    if marked.is_watched {
        storage::notify_watchers();
    }
    marked.copies.launcher
}

#[inline(always)]
pub(super) fn packed(array: &BoundArray<'_>, address: Address, at_word: usize) -> PackedArray {
    PackedArray {
        address,
        origin_bytes: array.origin_bytes(),
        element_bytes: array.element_bytes,
        at_word: at_word as u32,
        is_flat: array.is_flat(),
        access: array.access,
    }
}
