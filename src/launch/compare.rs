//! Host body against device body, each on copies of its own.

use std::fmt;
use std::sync::Arc;

use super::argument::{Bound, BoundArray};
use super::judge::Judge;
use super::queue::{self, Launch};
use crate::access::Access;
use crate::audit::Cause;
use crate::backend::{KernelBody, KernelCode};
use crate::call_site::CallSite;
use crate::device::{Device, Stream};
use crate::error::{Result, Text};
use crate::grid::Grid;
use crate::storage::{Selection, Storage};
use crate::transfer::{self, End, Request};

/// Where a kernel's host body and its device body first gave different results, by
/// [`Kernel::compare`](crate::Kernel::compare), whose example shows it. Its `Display` is one
/// sentence with all of it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Difference {
    /// The kernel.
    pub kernel: Text,
    /// The array that was passed, by name.
    pub array: Text,
    /// The parameter as which that array was passed, counted from 0.
    pub parameter: usize,
    /// The element, the first in index order: the last axis runs fastest.
    pub index: Vec<usize>,
    /// What the host body wrote there, as a number is written; anything else as its bytes.
    pub host: Text,
    /// What the device body wrote there, likewise.
    pub device: Text,
    /// Elements of this array that differ by more than the tolerance.
    pub count: u64,
    /// Elements of this array, as it was passed.
    pub len: u64,
    /// The device.
    pub on: Device,
    /// What was allowed: absolutely for values up to 1, relative to the larger above.
    pub tolerance: f64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, array, parameter, index, host, device, count, len, on, tolerance } =
            self;
        write!(
            f,
            "kernel {kernel} gives {array} (parameter {parameter}) two values at {index:?}: {host} by its host body, {device} on {on}; \
             {count} of {len} elements differ by more than {tolerance}"
        )
    }
}

/// Both bodies of a kernel, with the grids on which they are run.
#[derive(Clone, Copy)]
pub(super) struct Bodies<'a> {
    pub(super) title: &'a str,
    pub(super) name: &'a str,
    pub(super) host: (&'a KernelCode, &'a dyn KernelBody, Grid),
    pub(super) device: (&'a KernelCode, Grid),
    pub(super) site: CallSite,
}

/// Runs both, and looks through what they wrote.
pub(super) fn first_difference(
    bodies: Bodies<'_>,
    stream: &Stream,
    bound: &[Bound<'_>],
    judges: &[Judge],
    tolerance: f64,
) -> Result<Option<Difference>> {
    let (title, site) = (bodies.title, bodies.site);
    let (by_host, by_device) =
        (Twins::of(bound, "for the host", site)?, Twins::of(bound, "for the device", site)?);
    let (code, body, grid) = bodies.host;
    queue::call(&Launch { code, title, grid, bound: &by_host.bound(bound), site }, body)?;
    let (code, grid) = bodies.device;
    queue::launch(&Launch { code, title, grid, bound: &by_device.bound(bound), site }, stream)?;
    for (parameter, (argument, judge)) in bound.iter().zip(judges).enumerate() {
        let (Bound::Array(array), Some(host), Some(device)) =
            (argument, &by_host.0[parameter], &by_device.0[parameter])
        else {
            continue;
        };
        if array.access == Access::Read {
            continue;
        }
        let pair = Pair {
            array,
            host: host.readable(array, bodies)?,
            device: device.readable(array, bodies)?,
            judge,
            tolerance,
        };
        if let Some((index, values, count)) = pair.first() {
            return Ok(Some(Difference {
                kernel: Text::new(format!("\"{}\"", bodies.name)),
                array: Text::new(array.storage.named()),
                parameter,
                index,
                host: Text::new(values.0),
                device: Text::new(values.1),
                count,
                len: array.view.len(),
                on: stream.device(),
                tolerance,
            }));
        }
    }
    Ok(None)
}

/// A copy of one argument's array, with its layout: flat and strided arguments stay what they are.
struct Twin(Arc<Storage>);

impl Twin {
    /// What is read is copied; what is only written starts as never written.
    fn of(array: &BoundArray<'_>, purpose: &str, site: CallSite) -> Result<Self> {
        let twin = Self(array.storage.new_like(site));
        twin.0.set_name(&format!("{} (copy {purpose})", array.storage.name()));
        if array.access != Access::Overwrite {
            let (destination, source) = (
                End { storage: &twin.0, view: array.view },
                End { storage: array.storage, view: array.view },
            );
            transfer::clone_into(destination, source, site)?;
        }
        Ok(twin)
    }

    /// Where its elements start on the host, once they are all there.
    fn readable(&self, array: &BoundArray<'_>, bodies: Bodies<'_>) -> Result<*const u8> {
        let selection = match array.is_whole {
            true => Selection::Whole,
            false => self.0.memory_order().select(
                array.view.shape,
                array.view.strides,
                array.view.offset,
            ),
        };
        let request = Request {
            storage: &self.0,
            selection: &selection,
            cause: Cause::Explicit,
            operation: bodies.title,
            site: bodies.site,
        };
        transfer::acquire_host(&request, Access::Read)?;
        Ok(self.0.host_base())
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        self.0.unregister();
        transfer::release(&self.0);
    }
}

/// One for each array argument.
struct Twins(Vec<Option<Twin>>);

impl Twins {
    fn of(bound: &[Bound<'_>], purpose: &str, site: CallSite) -> Result<Self> {
        let twin = |argument: &Bound<'_>| match argument {
            Bound::Scalar { .. } => Ok(None),
            Bound::Array(array) => Twin::of(array, purpose, site).map(Some),
        };
        bound.iter().map(twin).collect::<Result<_>>().map(Self)
    }

    /// The arguments, with these arrays in the place of those that were passed.
    fn bound<'a>(&'a self, bound: &'a [Bound<'a>]) -> Vec<Bound<'a>> {
        let instead = |(argument, twin): (&'a Bound<'a>, &'a Option<Twin>)| match (argument, twin) {
            (Bound::Array(array), Some(twin)) => {
                let BoundArray { view, is_whole, access, is_flat, .. } = *array;
                Bound::Array(BoundArray { storage: &twin.0, view, is_whole, access, is_flat })
            }
            (Bound::Array(BoundArray { storage, view, is_whole, access, is_flat }), None) => {
                Bound::Array(BoundArray {
                    storage,
                    view: *view,
                    is_whole: *is_whole,
                    access: *access,
                    is_flat: *is_flat,
                })
            }
            (Bound::Scalar { words, show }, _) => {
                Bound::Scalar { words: words.clone(), show: *show }
            }
        };
        bound.iter().zip(&self.0).map(instead).collect()
    }
}

/// Two copies of one array, both readable on the host.
struct Pair<'a> {
    array: &'a BoundArray<'a>,
    host: *const u8,
    device: *const u8,
    judge: &'a Judge,
    tolerance: f64,
}

/// An index, what stands there in both, and how many elements differ in all.
type Found = (Vec<usize>, (String, String), u64);

impl Pair<'_> {
    fn first(&self) -> Option<Found> {
        let view = self.array.view;
        let len_bytes = self.array.storage.memory_order().element_bytes();
        if len_bytes == 0 {
            return None;
        }
        let mut found: Option<Found> = None;
        let mut index = vec![0; view.shape.len()];
        for _ in 0..view.len() {
            let steps: isize = index
                .iter()
                .zip(view.strides)
                .map(|(index, stride)| *index as isize * stride)
                .sum();
            let at_bytes = view.offset.wrapping_add_signed(steps) * len_bytes;
            // SAFETY: the element lies in the view, all of which was acquired on the host
            // (`Twin::readable`): initialised, and written by nobody, since the copy is known here
            // alone.
            let host =
                unsafe { std::slice::from_raw_parts(self.host.wrapping_add(at_bytes), len_bytes) };
            // SAFETY: as above, for the other copy.
            let device = unsafe {
                std::slice::from_raw_parts(self.device.wrapping_add(at_bytes), len_bytes)
            };
            if self.judge.differ(host, device, self.tolerance) {
                let first = found.get_or_insert_with(|| {
                    (index.clone(), (self.judge.show(host), self.judge.show(device)), 0)
                });
                first.2 += 1;
            }
            advance(&mut index, view.shape);
        }
        found
    }
}

/// To the next index, the last axis running fastest.
fn advance(index: &mut [usize], shape: &[usize]) {
    for (index, len) in index.iter_mut().zip(shape).rev() {
        *index += 1;
        if *index < *len {
            return;
        }
        *index = 0;
    }
}
