//! A host body that tells captures which of its `InOut` arguments it has changed, for launches of
//! threads that compare contents.

use std::fmt;
use std::sync::Arc;

use super::arguments::bound::BoundArray;
use crate::audit::{self, Comparison};
use resident_backend::call_site::CallSite;
use resident_backend::grid::Grid;
use resident_backend::{KernelAttributes, KernelBody, KernelCode, host_copy};
use resident_core::Access;
use resident_core::layout::Footprint;

/// A body, and the arguments that are compared before and after it.
struct ComparedBody {
    body: Arc<dyn KernelBody>,
    arguments: Vec<ComparedArgument>,
    comparison: Comparison,
}

/// An `InOut` argument.
struct ComparedArgument {
    /// Which of the array arguments it is.
    index: usize,
    /// Where the body's pointer leads, from the start of the array's memory.
    origin_bytes: u64,
    /// The elements, from the start of the array's memory.
    footprint: Footprint,
    element_bytes: usize,
}

/// The code of a launch that compares its arguments; `None` if the thread has not asked for that,
/// if there is nothing to compare, or if the code does not run in this process.
pub(super) fn compared<'a>(
    code: &KernelCode,
    arrays: impl Iterator<Item = &'a BoundArray<'a>>,
) -> Option<KernelCode> {
    let (KernelCode::Host(body), true) = (code, audit::compares_contents()) else {
        return None;
    };
    let is_in_out = |(_, array): &(usize, &BoundArray<'_>)| array.access == Access::ReadWrite;
    let in_out = arrays.enumerate().filter(is_in_out);
    let arguments: Vec<_> =
        in_out.map(|(index, array)| ComparedArgument::of(index, array)).collect();
    if arguments.is_empty() {
        return None;
    }
    let (body, comparison) = (Arc::clone(body), audit::comparison());
    Some(KernelCode::Host(Arc::new(ComparedBody { body, arguments, comparison })))
}

impl ComparedArgument {
    fn of(index: usize, array: &BoundArray<'_>) -> Self {
        let (origin_bytes, element_bytes) = (array.origin_bytes(), array.element_bytes);
        let footprint = if array.is_flat() {
            Footprint::run(origin_bytes, array.len * u64::from(element_bytes))
        } else {
            let shape: Vec<u64> = array.view.shape.iter().map(|len| *len as u64).collect();
            let strides: Vec<u64> =
                array.view.strides.iter().map(|stride| *stride as i64 as u64).collect();
            Footprint::of_view(origin_bytes, u64::from(element_bytes), &shape, &strides)
        };
        Self { index, origin_bytes, footprint, element_bytes: element_bytes as usize }
    }

    /// The elements, packed. `None` if the body gets no pointer to them.
    ///
    /// # Safety
    ///
    /// As for the body that gets these pointers.
    unsafe fn contents(&self, pointers: &[*mut u8]) -> Option<Vec<u8>> {
        let base = pointers.get(self.index)?.wrapping_sub(self.origin_bytes as usize);
        let mut packed = vec![0; self.footprint.len_bytes() as usize];
        let copy = self.footprint.copy_from_packed(0).reversed();
        // SAFETY: the footprint is that of an array argument of the launch, which is initialised
        // and which no other thread writes while the body runs (`KernelBody::run`). `packed` has
        // its length.
        unsafe { host_copy::copy_box(base, packed.as_mut_ptr(), &copy) };
        Some(packed)
    }

    fn changed_bytes(&self, before: &[u8], after: &[u8]) -> u64 {
        let size = self.element_bytes.max(1);
        let pairs = before.chunks(size).zip(after.chunks(size));
        pairs.filter(|(before, after)| before != after).map(|(one, _)| one.len() as u64).sum()
    }
}

// SAFETY: the body itself accesses what its signature declares. What is compared is read only, and
// is in the footprints of the launch's own arguments.
unsafe impl KernelBody for ComparedBody {
    fn name(&self) -> &Arc<str> {
        self.body.name()
    }

    fn attributes(&self) -> KernelAttributes {
        self.body.attributes()
    }

    fn for_launch(
        &self,
        _array_names: &dyn Fn() -> Vec<String>,
        _site: CallSite,
    ) -> Option<Arc<dyn KernelBody>> {
        // `body` has them.
        None
    }

    fn tracks_contents(&self) -> bool {
        self.body.tracks_contents()
    }

    fn may_leave_out(&self) -> bool {
        self.body.may_leave_out()
    }

    unsafe fn run(&self, grid: Grid, words: &[u64], pointers: &[*mut u8]) {
        // SAFETY: the caller passes the pointers of the launch for which this was made.
        let contents = |argument: &ComparedArgument| unsafe { argument.contents(pointers) };
        let before: Vec<_> = self.arguments.iter().map(contents).collect();
        // SAFETY: the caller promises what the body needs.
        unsafe { self.body.run(grid, words, pointers) };
        for (argument, before) in self.arguments.iter().zip(before) {
            if let (Some(before), Some(after)) = (before, contents(argument)) {
                let changed_bytes = argument.changed_bytes(&before, &after);
                self.comparison.tell(argument.index, changed_bytes);
            }
        }
    }
}

impl fmt::Debug for ComparedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ComparedBody({:?})", self.body)
    }
}
