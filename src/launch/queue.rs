//! A launch with its types erased: acquire each argument, queue the body, mark what it used.

use smallvec::SmallVec;

use super::argument::{Bound, BoundArray};
use crate::access::Access;
use crate::audit::{self, Cause, Flow};
use crate::backend::{
    Arguments, ArrayArgument, BackendError, Dependencies, KernelBody, KernelCode, LaunchWork,
    Position, Work,
};
use crate::call_site::CallSite;
use crate::device::{Stream, call_error};
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::storage::Selection;
use crate::transfer::{self, Acquired, Request};

/// What the arguments select of their arrays: nothing is kept for whole arrays, the others' boxes
/// in order.
type Selections = SmallVec<[Selection; 4]>;

/// What is to be launched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launch<'a> {
    pub(super) code: &'a KernelCode,
    pub(super) title: &'a str,
    pub(super) grid: Grid,
    pub(super) bound: &'a [Bound<'a>],
    pub(super) site: CallSite,
}

impl<'a> Launch<'a> {
    fn arrays(&self) -> impl Iterator<Item = &'a BoundArray<'a>> {
        self.bound.iter().filter_map(|bound| match bound {
            Bound::Array(array) => Some(array),
            Bound::Scalar { .. } => None,
        })
    }

    /// The boxes of the arguments that are parts.
    fn selections(&self) -> Selections {
        let mut selections = Selections::new();
        for array in self.arrays().filter(|array| !array.is_whole) {
            selections.push(array.storage.memory_order().select(
                array.view.shape,
                array.view.strides,
                array.view.offset,
            ));
        }
        selections
    }

    /// The array arguments, each with the request that serves it.
    fn requests<'s>(
        &'s self,
        selections: &'s Selections,
    ) -> impl Iterator<Item = (&'a BoundArray<'a>, Request<'s>)> {
        let mut parts = selections.iter();
        self.arrays().map(move |array| (array, self.request(array, array.selection(&mut parts))))
    }

    fn request<'s>(&'s self, array: &'s BoundArray<'_>, selection: &'s Selection) -> Request<'s> {
        Request {
            storage: array.storage,
            selection,
            cause: Cause::Launch,
            operation: self.title,
            site: self.site,
        }
    }
}

impl BoundArray<'_> {
    /// What it selects: the next of `parts`, unless it is whole.
    #[inline]
    fn selection<'s>(&self, parts: &mut std::slice::Iter<'s, Selection>) -> &'s Selection {
        let part = if self.is_whole { None } else { parts.next() };
        part.unwrap_or(&Selection::Whole)
    }
}

/// Queues a launch on a stream.
pub(super) fn launch(launch: &Launch<'_>, stream: &Stream) -> Result<()> {
    if launch.grid.is_empty_cover() {
        return Ok(());
    }
    let selections = launch.selections();
    let mut acquired: SmallVec<[Acquired<'_>; 6]> = SmallVec::new();
    let mut work = LaunchWork {
        code: launch.code.clone(),
        grid: launch.grid,
        arguments: Arguments::default(),
        depends: Dependencies::new(),
        site: launch.site,
    };
    acquire(launch, &selections, stream, &mut work, &mut acquired)?;
    let submitted = stream.queue().submit(Work::Launch(work));
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

/// Acquires all arguments, and packs them.
#[inline]
fn acquire<'a>(
    launch: &'a Launch<'_>,
    selections: &'a Selections,
    stream: &Stream,
    work: &mut LaunchWork,
    acquired: &mut SmallVec<[Acquired<'a>; 6]>,
) -> Result<()> {
    let LaunchWork { arguments, depends, .. } = work;
    let mut parts = selections.iter();
    for bound in launch.bound {
        if let Bound::Array(array) = bound {
            let selection = array.selection(&mut parts);
            let at_hand = if array.is_whole {
                transfer::acquire_whole(array.storage, stream, array.access, depends)
            } else {
                None
            };
            let one = match at_hand {
                Some(one) => one,
                None => transfer::acquire_on(
                    &launch.request(array, selection),
                    stream,
                    array.access,
                    depends,
                )?,
            };
            arguments.arrays.push(argument(array, &one, arguments.words.len()));
            acquired.push(one);
        }
        bound.pack(&mut arguments.words);
    }
    Ok(())
}

/// Enters the launch in its arguments, and takes one event for all of them where others than this
/// stream may have to wait.
#[inline]
fn mark(
    launch: &Launch<'_>,
    selections: &Selections,
    stream: &Stream,
    acquired: &mut [Acquired<'_>],
    position: Position,
) {
    let mut avoided = Flow::default();
    let mut is_worth_an_event = false;
    let mut parts = selections.iter();
    for (array, acquired) in launch.arrays().zip(acquired) {
        let access = array.access;
        let selection = array.selection(&mut parts);
        let spared =
            spared(selection.len_bytes(array.storage.memory_order()), acquired.copied_bytes);
        let marked = if array.is_whole {
            transfer::mark_whole_launched(array.storage, stream, acquired, access, position, spared)
        } else {
            None
        };
        is_worth_an_event |= match marked {
            Some(is_worth_an_event) => is_worth_an_event,
            None => transfer::mark_launched(
                &launch.request(array, selection),
                stream,
                acquired,
                access,
                position,
                spared,
            ),
        };
        avoided += spared;
    }
    stream.device_ref().count_avoided(avoided);
    audit::report_avoided(avoided);
    if is_worth_an_event {
        stream.ensure_event_at_tail();
    }
}

/// What a launcher that copies each argument in and out would have moved for one argument, less
/// what was moved.
#[inline]
fn spared(bytes: u64, copied_bytes: u64) -> Flow {
    if bytes == 0 {
        return Flow::default();
    }
    let mut spared = Flow::of(bytes);
    spared +=
        Flow { count: u64::from(copied_bytes == 0), bytes: bytes.saturating_sub(copied_bytes) };
    spared
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

/// Where the body's pointer stands: a sized view at its first element, a flat one at the lowest in
/// memory.
fn origin_bytes(array: &BoundArray<'_>) -> u64 {
    let element = array.storage.memory_order().element_bytes() as u64;
    element * if array.is_flat { array.view.lowest() } else { array.view.offset as u64 }
}

/// Runs the body on the host copies.
pub(super) fn call(launch: &Launch<'_>, body: &dyn KernelBody) -> Result<()> {
    if launch.grid.is_empty_cover() {
        return Ok(());
    }
    let selections = launch.selections();
    for (array, request) in launch.requests(&selections) {
        transfer::acquire_host(&Request { cause: Cause::Host, ..request }, array.access)?;
    }
    for (array, request) in
        launch.requests(&selections).filter(|(array, _)| array.access != Access::Read)
    {
        transfer::mark_host_written(&request, array.access);
    }
    let mut words = SmallVec::new();
    launch.bound.iter().for_each(|bound| bound.pack(&mut words));
    let pointers: SmallVec<[*mut u8; 6]> = launch
        .arrays()
        .map(|array| array.storage.host_base().wrapping_add(origin_bytes(array) as usize))
        .collect();
    // SAFETY: the words are those of this kernel's arguments, in its order. Each part was acquired
    // on the host: initialised memory that nothing queued writes (reads) or touches (writes); the
    // borrows in the arguments keep everybody else out until the body returns.
    unsafe { body.run(launch.grid, &words, &pointers) };
    Ok(())
}

/// The arguments as a message shows them.
pub(super) fn in_words(bound: &[Bound<'_>]) -> String {
    let words = bound.iter().map(|bound| match bound {
        Bound::Scalar { words, show } => show(words),
        Bound::Array(array) => format!("{} of shape {:?}", array.storage.named(), array.view.shape),
    });
    words.collect::<Vec<_>>().join(", ")
}
