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
//! 5. [`Acquired`]: the array's address on the device. The device's copy keeps its memory until the
//!    use is marked.
//! 6. [`ArrayArgument`]: what the backend gets: the address, and the index in `LaunchCall::words`
//!    where the array's packed length, or its shape and strides, begin.

use smallvec::SmallVec;

use super::arguments::bound::{BoundArgument, BoundArray, Words};
use crate::audit::{self, Cause, Flow};
use crate::backend::{
    ArrayArgument, BackendError, Dependencies, KernelBody, KernelCode, LaunchCall, Position,
};
use crate::call_site::CallSite;
use crate::device::{Device, Stream, call_error};
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::layout::Selection;
use crate::sync;
use crate::transfer::{self, Acquired, Request};

/// The selections of the arguments that are parts of arrays, in order. Whole arrays need none.
type PartSelections = SmallVec<[Selection; 4]>;

/// A kernel, its grid and its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launch<'a> {
    pub(super) code: &'a KernelCode,
    pub(super) title: &'a str,
    pub(super) grid: Grid,
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

    /// Returns an error if an argument is a device array of another device.
    #[inline]
    fn check_homes(&self, stream: &Stream) -> Result<()> {
        for array in self.arrays() {
            if let Some(home) = array.home
                && home != stream.device_ref()
            {
                return Err(self.wrong_device(array, home, stream.device_ref().name()));
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong_device(&self, array: &BoundArray<'_>, home: &Device, other: String) -> Error {
        transfer::wrong_device(array.storage, home, self.title, other).at(self.site)
    }

    /// Adds the selections to a list of the caller, because the list is large to move.
    #[inline]
    fn add_part_selections(&self, selections: &mut PartSelections) {
        for array in self.arrays().filter(|array| !array.is_whole) {
            selections.push(array.selection());
        }
    }

    fn request<'s>(
        &'s self,
        array: &'s BoundArray<'_>,
        selection: &'s Selection,
        cause: Cause,
    ) -> Request<'s> {
        let (operation, site) = (self.title, self.site);
        Request::new(array.storage, selection, cause, operation, site)
    }
}

/// The selection of an argument: the next of `parts`, unless the argument is a whole array.
#[inline]
fn next_selection<'s>(
    array: &BoundArray<'_>,
    parts: &mut std::slice::Iter<'s, Selection>,
) -> &'s Selection {
    let part = if array.is_whole { None } else { parts.next() };
    part.unwrap_or(&Selection::Whole)
}

/// The arguments of a launch, acquired and packed. Launches with up to 16 arrays allocate nothing.
/// These are references, because moving the lists costs as much as filling them.
struct Ready<'r, 'a> {
    words: &'r mut Words,
    arrays: &'r mut SmallVec<[ArrayArgument; 16]>,
    depends: &'r mut Dependencies,
    acquired: &'r mut SmallVec<[Acquired<'a>; 16]>,
}

/// Queues a launch on a stream.
pub(super) fn launch(launch: &Launch<'_>, stream: &Stream) -> Result<()> {
    if launch.grid.is_empty_cover() {
        return Ok(());
    }
    launch.check_homes(stream)?;
    let mut selections = PartSelections::new();
    launch.add_part_selections(&mut selections);
    let (mut words, mut depends) = (Words::new(), Dependencies::new());
    let (mut arrays, mut acquired) = (SmallVec::new(), SmallVec::new());
    let ready = Ready {
        words: &mut words,
        arrays: &mut arrays,
        depends: &mut depends,
        acquired: &mut acquired,
    };
    acquire(launch, &selections, stream, ready)?;
    let submitted = stream.queue().launch(&mut LaunchCall {
        code: launch.code,
        grid: launch.grid,
        words: &mut words,
        arrays: &arrays,
        depends: &depends,
        site: launch.site,
    });
    let position = submitted.map_err(|refusal| refused(launch, stream, &refusal))?;
    mark(launch, &selections, stream, &mut acquired, position);
    Ok(())
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

/// Acquires the arrays and packs all arguments.
#[inline]
fn acquire<'a>(
    launch: &'a Launch<'_>,
    selections: &'a PartSelections,
    stream: &Stream,
    ready: Ready<'_, 'a>,
) -> Result<()> {
    let mut parts = selections.iter();
    for bound in launch.bound {
        if let BoundArgument::Array(array) = bound {
            let selection = next_selection(array, &mut parts);
            let known = if array.is_whole {
                transfer::acquire_whole(array.storage, stream, array.access, ready.depends)
            } else {
                None
            };
            let one = match known {
                Some(one) => one,
                None => transfer::acquire_on(
                    &launch.request(array, selection, Cause::Launch),
                    stream,
                    array.access,
                    ready.depends,
                )?,
            };
            ready.arrays.push(argument(array, &one, ready.words.len()));
            ready.acquired.push(one);
        }
        bound.pack(ready.words);
    }
    Ok(())
}

/// Marks the arrays as used at `position`. Records one event for all of them if other streams may
/// have to wait for one.
#[inline]
fn mark(
    launch: &Launch<'_>,
    selections: &PartSelections,
    stream: &Stream,
    acquired: &mut [Acquired<'_>],
    position: Position,
) {
    let mut avoided = Flow::default();
    let (mut needs_event, mut follows_other) = (false, false);
    let mut parts = selections.iter();
    for (array, acquired) in launch.arrays().zip(acquired) {
        let access = array.access;
        let selection = next_selection(array, &mut parts);
        let avoided_here = avoided_traffic(
            selection.len_bytes(array.storage.memory_order()),
            acquired.copied_bytes,
        );
        let marked = if array.is_whole {
            transfer::mark_whole_launched(
                array.storage,
                stream,
                acquired,
                access,
                position,
                avoided_here,
            )
        } else {
            None
        };
        needs_event |= match marked {
            Some(needs_event) => needs_event,
            None => transfer::mark_launched(
                &launch.request(array, selection, Cause::Launch),
                stream,
                acquired,
                access,
                position,
                avoided_here,
            ),
        };
        follows_other |= acquired.follows_other;
        avoided += avoided_here;
    }
    stream.device_ref().count_avoided(avoided);
    audit::report_avoided(avoided);
    if needs_event {
        stream.ensure_event_at_tail();
    } else if follows_other {
        stream.guess_event_at_tail();
    }
}

/// The bytes that a launcher would copy if it copied each argument in and out, minus the bytes that
/// were copied.
#[inline]
fn avoided_traffic(bytes: u64, copied_bytes: u64) -> Flow {
    if bytes == 0 {
        return Flow::default();
    }
    let mut avoided = Flow::of(bytes);
    avoided +=
        Flow { count: u64::from(copied_bytes == 0), bytes: bytes.saturating_sub(copied_bytes) };
    avoided
}

#[inline]
fn argument(array: &BoundArray<'_>, acquired: &Acquired<'_>, at_word: usize) -> ArrayArgument {
    ArrayArgument {
        address: acquired.address,
        origin_bytes: origin_bytes(array),
        element_bytes: array.storage.memory_order().element_bytes() as u32,
        at_word: at_word as u32,
        is_flat: array.is_flat,
        access: array.access,
    }
}

/// The offset in bytes, from the start of the array's memory, of the element to which the body's
/// pointer leads. For a flat argument (a slice) it is the lowest element; for a sized argument (an
/// ndarray view) it is the element with index 0, 0, ...
fn origin_bytes(array: &BoundArray<'_>) -> u64 {
    let element = array.storage.memory_order().element_bytes() as u64;
    element * if array.is_flat { array.view.lowest() } else { array.view.offset as u64 }
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
        transfer::acquire_host(&launch.request(array, &selection, Cause::Host), array.access)?;
    }
    for array in launch.arrays().filter(|array| array.access.writes()) {
        let selection = array.selection();
        let request = launch.request(array, &selection, Cause::Launch);
        transfer::mark_host_written(&request, array.access);
    }
    let mut words = Words::new();
    launch.bound.iter().for_each(|bound| bound.pack(&mut words));
    let pointers: SmallVec<[*mut u8; 6]> = launch
        .arrays()
        .map(|array| array.storage.host_base().wrapping_add(origin_bytes(array) as usize))
        .collect();
    sync::assert_none_held();
    // SAFETY: the words are those of this kernel's arguments, in the order of its signature. Each
    // array was acquired on the host: its elements are initialised, and no queued work writes those
    // that the body reads or touches those that it writes. The borrows in the arguments exclude all
    // other accesses until the body returns.
    unsafe { body.run(launch.grid, &words, &pointers) };
    Ok(())
}
