//! Runs a kernel's host body and its device body on copies of the arguments and compares the
//! results.

use std::fmt;
use std::sync::Arc;

use super::arguments::bound::{BoundArgument, BoundArray};
use super::comparator::ElementComparator;
use super::submit::Launch;
use crate::audit::{self, Cause, Implicit};
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::storage::Storage;
use crate::transfer::{self, Request, StoredView};
use resident_backend::call_site::CallSite;
use resident_backend::{KernelBody, ParameterLayout};
use resident_core::Access;
use resident_documents::quoted;

/// The first element at which a kernel's host body and its device body gave different results, as
/// [`Kernel::compare`](crate::Kernel::compare) returns it. Its `Display` is one sentence.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Difference {
    /// The kernel.
    pub kernel: String,
    /// The name of the array that was passed.
    pub array: String,
    /// The index of the parameter for which the array was passed, from 0.
    pub parameter: usize,
    /// The index of the first element that differs, in row-major order.
    pub index: Vec<usize>,
    /// The value that the host body wrote: a number as Rust prints it, anything else as its bytes.
    pub host: String,
    /// The value that the device body wrote, in the same form.
    pub device: String,
    /// How many elements of the array differ by more than the tolerance.
    pub count: u64,
    /// How many elements the argument has.
    pub len: u64,
    /// The device that ran the device body.
    pub on: Device,
    /// The tolerance, which is absolute for values up to 1, and relative to the larger value above
    /// 1.
    pub tolerance: f64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, array, parameter, index, host, device, count, len, on, tolerance } =
            self;
        write!(
            f,
            "kernel {kernel} gives {array} (parameter {parameter}) two values at {index:?}: \
             {host} by its host body, {device} on {on}; \
             {count} of {len} elements differ by more than {tolerance}"
        )
    }
}

/// One launch by both bodies of a kernel. The grids may differ.
#[derive(Clone, Copy)]
pub(super) struct Bodies<'a> {
    pub(super) name: &'a str,
    pub(super) host: Launch<'a>,
    pub(super) host_body: &'a dyn KernelBody,
    pub(super) on_device: Launch<'a>,
}

impl Bodies<'_> {
    /// Runs both bodies on copies of the arrays, so that the program's arrays stay where they are,
    /// and compares what they wrote.
    pub(super) fn first_difference(
        self,
        stream: &Stream,
        parameters: &[ParameterLayout],
        tolerance: f64,
    ) -> Result<Option<Difference>> {
        let Launch { bound, site, .. } = self.host;
        let _allowed = audit::allow(Implicit::ALL);
        let by_host = ArrayCopies::of(bound, "for the host", site)?;
        let by_device = ArrayCopies::of(bound, "for the device", site)?;
        Launch { bound: &by_host.bind(bound), ..self.host }.run_on_host(self.host_body)?;
        Launch { bound: &by_device.bind(bound), ..self.on_device }.queue_on(stream)?;
        for (parameter, (argument, layout)) in bound.iter().zip(parameters).enumerate() {
            let (BoundArgument::Array(array), Some(host), Some(device)) =
                (argument, &by_host.0[parameter], &by_device.0[parameter])
            else {
                continue;
            };
            if !array.access.writes() {
                continue;
            }
            let pair = Pair {
                array,
                host: host.acquire_on_host(array, &self.host)?,
                device: device.acquire_on_host(array, &self.host)?,
                comparator: ElementComparator::new(layout.element()),
                tolerance,
            };
            if let Some(found) = pair.compare() {
                return Ok(Some(difference(found, array, parameter, self.name, stream, tolerance)));
            }
        }
        Ok(None)
    }
}

fn difference(
    found: Differing,
    array: &BoundArray<'_>,
    parameter: usize,
    kernel: &str,
    stream: &Stream,
    tolerance: f64,
) -> Difference {
    Difference {
        kernel: quoted(kernel),
        array: array.storage.named(),
        parameter,
        index: found.index,
        host: found.host,
        device: found.device,
        count: found.count,
        len: array.view.len(),
        on: stream.device(),
        tolerance,
    }
}

/// A copy of one argument's array in the same layout, so that it can be passed for a flat parameter
/// (a slice) if the original can.
struct ArrayCopy(Arc<Storage>);

impl ArrayCopy {
    /// Copies the contents if the kernel reads them; else the copy is uninitialised.
    fn of(array: &BoundArray<'_>, purpose: &str, site: CallSite) -> Result<Self> {
        let copy = Self(array.storage.new_like(site));
        copy.0.set_name(&format!("{} (copy {purpose})", array.storage.name()));
        if array.access != Access::Overwrite {
            let source = array.stored();
            transfer::clone_into(StoredView { storage: &copy.0, ..source }, source, site)?;
        }
        Ok(copy)
    }

    /// Makes the whole copy valid on the host, and returns the start address of its host memory.
    fn acquire_on_host(&self, array: &BoundArray<'_>, launch: &Launch<'_>) -> Result<*const u8> {
        let selection = array.selection();
        let Launch { title, site, .. } = *launch;
        let request = Request::new(&self.0, &selection, Access::Read, Cause::Explicit, title, site);
        transfer::acquire_host(&request.ahead_of_use())?;
        Ok(self.0.host_base())
    }
}

impl Drop for ArrayCopy {
    fn drop(&mut self) {
        transfer::release(&self.0);
    }
}

/// For each argument, a copy of its array, or `None` for a scalar.
struct ArrayCopies(Vec<Option<ArrayCopy>>);

impl ArrayCopies {
    fn of(bound: &[BoundArgument<'_>], purpose: &str, site: CallSite) -> Result<Self> {
        let copy = |argument: &BoundArgument<'_>| match argument {
            BoundArgument::Scalar { .. } | BoundArgument::Temporary(_) => Ok(None),
            BoundArgument::Array(array) => ArrayCopy::of(array, purpose, site).map(Some),
        };
        bound.iter().map(copy).collect::<Result<_>>().map(Self)
    }

    /// The arguments, with the copies in place of the arrays that were passed.
    fn bind<'a>(&'a self, bound: &[BoundArgument<'a>]) -> Vec<BoundArgument<'a>> {
        let mut bound = bound.to_vec();
        for (argument, copy) in bound.iter_mut().zip(&self.0) {
            if let (BoundArgument::Array(array), Some(copy)) = (argument, copy) {
                (array.storage, array.home) = (&copy.0, None);
            }
        }
        bound
    }
}

/// Two copies of one array, both valid on the host.
struct Pair<'a> {
    array: &'a BoundArray<'a>,
    host: *const u8,
    device: *const u8,
    comparator: ElementComparator,
    tolerance: f64,
}

/// The first element that differs, its values in both copies, and how many elements differ.
struct Differing {
    index: Vec<usize>,
    host: String,
    device: String,
    count: u64,
}

impl Pair<'_> {
    fn compare(&self) -> Option<Differing> {
        let view = self.array.view;
        let len_bytes = self.array.element_bytes as usize;
        if len_bytes == 0 {
            return None;
        }
        let mut found: Option<Differing> = None;
        let mut index = vec![0; view.shape.len()];
        for _ in 0..view.len() {
            let at_bytes = view.offset_at(index.iter().copied()) * len_bytes;
            // SAFETY: the element lies in the view. `acquire_on_host` made the whole copy valid on
            // the host, so the element is initialised. No other code has this copy, so nothing
            // writes the element.
            let host =
                unsafe { std::slice::from_raw_parts(self.host.wrapping_add(at_bytes), len_bytes) };
            // SAFETY: as above, for the other copy.
            let device = unsafe {
                std::slice::from_raw_parts(self.device.wrapping_add(at_bytes), len_bytes)
            };
            if self.comparator.differ(host, device, self.tolerance) {
                let first = found.get_or_insert_with(|| Differing {
                    index: index.clone(),
                    host: self.comparator.show(host),
                    device: self.comparator.show(device),
                    count: 0,
                });
                first.count += 1;
            }
            advance(&mut index, view.shape);
        }
        found
    }
}

/// Moves to the next index in row-major order.
fn advance(index: &mut [usize], shape: &[usize]) {
    for (index, len) in index.iter_mut().zip(shape).rev() {
        *index += 1;
        if *index < *len {
            return;
        }
        *index = 0;
    }
}
