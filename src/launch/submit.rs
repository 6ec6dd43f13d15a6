//! One launch, with its types erased: acquires the arrays, submits the body, and marks the arrays
//! as used.
//!
//! The types that represent an array argument, in the order in which a launch makes them:
//!
//! 1. `&SmartArray`, `&mut SmartViewMut`, ...: the caller's argument, which must implement
//!    [`Argument`](super::Argument) for the parameter.
//! 2. [`transfer::StoredView`]: the argument's storage and its strided view, without element and
//!    dimension types.
//! 3. [`BoundArray`]: the same, together with the parameter's kind of access.
//! 4. [`Request`]: the selected elements, and the call for which they are needed, as `transfer`
//!    gets them.
//! 5. [`LaunchedArrays`]: the acquired arrays. The device's copies keep their memory until the use
//!    is marked.
//! 6. [`ArrayArgument`]: what the backend gets: the address, and the index in `LaunchCall::words`
//!    where the array's packed length, or its shape and strides, begin.

use std::cell::OnceCell;
use std::sync::Arc;

use smallvec::SmallVec;

use super::arguments::bound::{BoundArgument, BoundArray, Words};
use super::compared_body::compared;
use crate::audit::{self, ArgumentRecord, Cause, Flow, Launched};
use crate::device::{self, Device, Stream, call_error};
use crate::error::{Error, Result};
use crate::storage::{self, Storage};
use crate::transfer::{self, LaunchedArrays, Request};
use resident_backend::call_site::CallSite;
use resident_backend::grid::Grid;
use resident_backend::sync;
use resident_backend::{
    Address, ArrayArgument, BackendError, Dependencies, KernelBody, KernelCode, LaunchCall,
    Position, failure,
};
use resident_core::layout::Selection;

/// The selections of the arguments that are parts of arrays, in order, made when the first is
/// needed. Whole arrays need none.
type PartSelections = OnceCell<SmallVec<[Selection; 4]>>;

/// Returns the selections one after the other.
struct NextPart<'s> {
    selections: &'s PartSelections,
    next: usize,
}

impl<'s> NextPart<'s> {
    #[inline]
    fn of(selections: &'s PartSelections) -> Self {
        Self { selections, next: 0 }
    }

    fn next(&mut self, launch: &Launch<'_>) -> Option<&'s Selection> {
        let parts = || launch.arrays().filter(|array| !array.is_whole);
        let all = || parts().map(BoundArray::selection).collect();
        self.next += 1;
        self.selections.get_or_init(all).get(self.next - 1)
    }
}

/// A kernel, its grid and its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launch<'a> {
    pub(super) code: &'a KernelCode,
    pub(super) title: &'a Arc<str>,
    pub(super) grid: &'a Grid,
    pub(super) bound: &'a [BoundArgument<'a>],
    pub(super) site: CallSite,
}

impl<'a> Launch<'a> {
    fn arrays(&self) -> impl Iterator<Item = &'a BoundArray<'a>> {
        self.bound.iter().filter_map(|bound| match bound {
            BoundArgument::Array(array) => Some(array),
            BoundArgument::Scalar { .. } => None,
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

    #[cold]
    fn wrong_device(&self, array: &BoundArray<'_>, home: &Device, other: String) -> Error {
        transfer::wrong_device(array.storage, home, self.title, other).at(self.site)
    }

    /// The request for an argument: for the whole array, or for the next part.
    fn request<'s>(
        &'s self,
        storage: &'s Storage,
        is_whole: bool,
        parts: &mut NextPart<'s>,
    ) -> Request<'s> {
        let part = if is_whole { None } else { parts.next(self) };
        let selection = part.unwrap_or(&Selection::Whole);
        Request::new(storage, selection, Cause::Launch, self.title, self.site)
    }

    /// The request for an argument of a host body.
    fn host_request<'s>(
        &'s self,
        array: &'s BoundArray<'_>,
        selection: &'s Selection,
        cause: Cause,
    ) -> Request<'s> {
        Request::new(array.storage, selection, cause, self.title, self.site)
    }
}

/// Queues a launch on a stream.
pub(super) fn launch(launch: &Launch<'_>, stream: &Stream) -> Result<()> {
    if launch.grid.is_empty_cover() {
        return Ok(());
    }
    if failure::is_forgetting_due() {
        // Before the arrays are pinned: with a pinned array no records are removed.
        storage::forget_failures();
    }
    match audit::observes_launches() {
        true => launch_observed(launch, stream),
        false => queue::<false>(launch, stream),
    }
}

/// As [`launch`], with a span of `tracing` and a record for captures, if they want them.
#[cold]
fn launch_observed(launch: &Launch<'_>, stream: &Stream) -> Result<()> {
    let _span = audit::enter_launch(launch.title, stream, launch.site);
    let code = compared(launch.code, launch.arrays());
    let launch = Launch { code: code.as_ref().unwrap_or(launch.code), ..*launch };
    let queued = queue::<true>(&launch, stream);
    audit::end_launch();
    queued
}

/// Acquires the arrays, submits the body and marks the arrays. Unobserved launches have
/// an instance of this function of their own, so that they pay nothing for records.
#[inline(always)]
fn queue<const IS_OBSERVED: bool>(launch: &Launch<'_>, stream: &Stream) -> Result<()> {
    let selections = PartSelections::new();
    let (mut words, mut depends) = (Words::new(), Dependencies::new());
    let (mut arguments, mut arrays) = (ArrayArguments::new(), LaunchedArrays::default());
    let packed = Packed {
        words: &mut words,
        arguments: &mut arguments,
        arrays: &mut arrays,
        depends: &mut depends,
    };
    acquire(launch, &selections, stream, packed)?;
    let mut call = LaunchCall {
        code: launch.code,
        grid: launch.grid,
        words: &mut words,
        arrays: &arguments,
        depends: &depends,
        site: launch.site,
    };
    let submitted = match IS_OBSERVED {
        true => submit_timed(stream, &mut call),
        false => stream.queue().launch(&mut call),
    };
    let position = match submitted {
        Ok(position) => position,
        Err(refusal) => return Err(refused(launch, stream, &refusal)),
    };
    let avoided = mark(launch, &selections, stream, &mut arrays, position);
    if IS_OBSERVED {
        record(launch, stream, position, avoided);
    }
    Ok(())
}

/// Queues the body, and times it if that is asked for.
#[cold]
fn submit_timed(stream: &Stream, call: &mut LaunchCall<'_>) -> Result<Position, BackendError> {
    device::take_some_times();
    let begun = stream.begin_timing();
    let position = stream.queue().launch(call)?;
    stream.end_timing(begun, position);
    Ok(position)
}

fn record(launch: &Launch<'_>, stream: &Stream, position: Position, avoided: Flow) {
    let (title, position, site) = (launch.title, position.0, launch.site);
    let argument =
        |array: &BoundArray<'_>| ArgumentRecord::new(array.storage, array.access, array.is_whole);
    let launched = Launched { title, stream, position, site, avoided };
    audit::record_launch(&launched, launch.arrays().map(argument));
}

#[cold]
fn refused(launch: &Launch<'_>, stream: &Stream, refusal: &BackendError) -> Error {
    call_error(
        stream.device_ref(),
        "its arguments",
        &format!("queueing {} at {}", launch.title, launch.site),
        refusal,
    )
}

/// The arrays of a launch as a backend gets them. Device code needs no entry for flat arrays: their
/// addresses are among the words.
type ArrayArguments = SmallVec<[ArrayArgument; 16]>;

/// The arguments of a launch, acquired and packed. These are references, because moving the lists
/// costs as much as filling them.
struct Packed<'r, 'a> {
    words: &'r mut Words,
    arguments: &'r mut ArrayArguments,
    arrays: &'r mut LaunchedArrays<'a>,
    depends: &'r mut Dependencies,
}

/// Acquires the arrays and packs all arguments.
#[inline(always)]
fn acquire<'a>(
    launch: &'a Launch<'_>,
    selections: &'a PartSelections,
    stream: &Stream,
    packed: Packed<'_, 'a>,
) -> Result<()> {
    let mut parts = NextPart::of(selections);
    let epoch = failure::epoch();
    let is_device_code = matches!(launch.code, KernelCode::Loaded(_));
    for bound in launch.bound {
        if let BoundArgument::Array(array) = bound {
            let (storage, access) = (array.storage, array.access);
            let ready = match array.is_whole {
                true => packed.arrays.acquire_whole(storage, stream, epoch, access, packed.depends),
                false => None,
            };
            let address = match ready {
                Some(address) => address,
                // A device array is never ready on another device.
                None => {
                    launch.check_home(array, stream)?;
                    let request = launch.request(storage, array.is_whole, &mut parts);
                    let is_whole = array.is_whole;
                    let (arrays, depends) = (&mut *packed.arrays, &mut *packed.depends);
                    arrays.acquire(storage, &request, is_whole, stream, access, depends)?
                }
            };
            if is_device_code && array.is_flat {
                packed.words.push(address.0.wrapping_add(array.origin_bytes()));
                continue;
            }
            packed.arguments.push(argument(array, address, packed.words.len()));
        }
        bound.pack(packed.words);
    }
    Ok(())
}

/// Marks the arrays as used at `position`. Records one event for all of them if other streams may
/// have to wait for one. Returns the copies that the launch did not have to make.
#[inline(always)]
fn mark(
    launch: &Launch<'_>,
    selections: &PartSelections,
    stream: &Stream,
    arrays: &mut LaunchedArrays<'_>,
    position: Position,
) -> Flow {
    let mut parts = NextPart::of(selections);
    let request = |storage, is_whole| launch.request(storage, is_whole, &mut parts);
    let marked = arrays.mark(stream, position, request);
    if marked.avoided.count > 0 {
        stream.device_ref().count_avoided(marked.avoided);
    }
    if marked.needs_event {
        stream.ensure_event_at_tail();
    } else if marked.follows_other {
        stream.guess_event_at_tail();
    }
    if marked.is_watched {
        storage::notify_watchers();
    }
    marked.avoided
}

#[inline(always)]
fn argument(array: &BoundArray<'_>, address: Address, at_word: usize) -> ArrayArgument {
    ArrayArgument {
        address,
        origin_bytes: array.origin_bytes(),
        element_bytes: array.element_bytes,
        at_word: at_word as u32,
        is_flat: array.is_flat,
        access: array.access,
    }
}

/// Runs a host body on the host's copies, on the calling thread.
pub(super) fn call(launch: &Launch<'_>, body: &dyn KernelBody) -> Result<()> {
    if launch.grid.is_empty_cover() {
        return Ok(());
    }
    if let Some((array, home)) = launch.arrays().find_map(|array| Some((array, array.home?))) {
        return Err(launch.wrong_device(array, home, String::from("the host")));
    }
    for array in launch.arrays() {
        let selection = array.selection();
        transfer::acquire_host(&launch.host_request(array, &selection, Cause::Host), array.access)?;
    }
    for array in launch.arrays().filter(|array| array.access.writes()) {
        let selection = array.selection();
        let request = launch.host_request(array, &selection, Cause::Launch);
        transfer::mark_host_written(&request, array.access);
    }
    let mut words = Words::new();
    launch.bound.iter().for_each(|bound| bound.pack(&mut words));
    let pointers: SmallVec<[*mut u8; 8]> = launch
        .arrays()
        .map(|array| array.storage.host_base().wrapping_add(array.origin_bytes() as usize))
        .collect();
    sync::assert_none_held();
    // SAFETY: the words are those of this kernel's arguments, in the order of its signature. Each
    // array was acquired on the host: its elements are initialised, and no queued work writes those
    // that the body reads or touches those that it writes. The borrows in the arguments exclude all
    // other accesses until the body returns.
    unsafe { body.run(*launch.grid, &words, &pointers) };
    Ok(())
}
