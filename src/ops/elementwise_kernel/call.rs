//! One use of an [`Elementwise`]: brings the arguments to one shape, and launches.

use resident_backend::call_site::CallSite;
use resident_backend::grid::Grid;
use resident_documents::quoted;
use smallvec::SmallVec;

use super::source::Form;
use super::{Elementwise, ElementwiseSignature};
use crate::array::Axes;
use crate::device::{Device, Stream};
use crate::error::{Error, Result, fitting};
use crate::launch::{Arguments, BoundArgument, Kernel, Rearranged};
use crate::ops::language::Statements;
use crate::ops::{align, call};

/// The elements that a thread of the embedded device serves, one after the other.
const THREAD_LEN: usize = 128;

/// The threads of a block there. Launches of 8,192 threads, and more, run on all cores, which are
/// those of 1,048,576 elements.
const BLOCK_THREADS: usize = 64;

pub(crate) type Arrays<'a> = SmallVec<[Rearranged<'a>; 8]>;

/// The array arguments, in order.
pub(crate) fn arrays<'a>(bound: &[BoundArgument<'a>]) -> Arrays<'a> {
    let array = |argument: &BoundArgument<'a>| match argument {
        BoundArgument::Array(array) => Some(Rearranged::of(array)),
        BoundArgument::Scalar { .. } | BoundArgument::Temporary(_) => None,
    };
    bound.iter().filter_map(array).collect()
}

/// The arguments with other axes for the arrays.
pub(crate) fn rebound<'a>(
    bound: &'a [BoundArgument<'a>],
    arrays: &'a [Rearranged<'a>],
) -> SmallVec<[BoundArgument<'a>; 8]> {
    let mut arrays = arrays.iter();
    let one = |argument: &BoundArgument<'a>| match argument {
        BoundArgument::Array(_) => arrays.next().map_or(*argument, Rearranged::bound),
        BoundArgument::Scalar { .. } | BoundArgument::Temporary(_) => *argument,
    };
    bound.iter().map(one).collect()
}

/// Enough threads for so many elements: one for each on a GPU.
fn grid(device: &Device, len: usize) -> Grid {
    let is_embedded = device.body_kind().is_on_host();
    let threads = len.div_ceil(THREAD_LEN);
    if !is_embedded || len == 0 {
        call::cover(len)
    } else if threads <= BLOCK_THREADS {
        Grid::new(1, threads as u32)
    } else {
        // More elements than 2³⁰ blocks have are shared by as many threads.
        Grid::new(threads.div_ceil(BLOCK_THREADS).min(1 << 30) as u32, BLOCK_THREADS as u32)
    }
}

impl<S: ElementwiseSignature> Elementwise<S> {
    pub(super) fn apply_at(
        &self,
        stream: &Stream,
        arguments: &impl Arguments<S>,
        site: CallSite,
    ) -> Result<()> {
        let device = stream.device_ref();
        let statements = self.statements(device, site)?;
        let brief_len_max = self.brief_len_max(statements);
        arguments.with_bound(|bound| {
            self.with_kernel(device, statements, bound, site, |kernel, grid, bound| {
                // SAFETY: `S` bound the arguments. `S::Sized` has the same scalars, and arrays of
                // the same elements and access that take any number of axes.
                unsafe { kernel.launch_rearranged(stream, grid, bound, brief_len_max, site) }
            })
        })
    }

    pub(super) fn statements(&self, device: &Device, site: CallSite) -> Result<&Statements> {
        self.inner.statements().map_err(|fault| Error::Compile {
            kernel: quoted(self.name()),
            device: device.name(),
            log: format!("the text of this operation cannot be used: {fault}"),
            call: site.into(),
        })
    }

    /// Calls `serve` with the kernel for arguments that are bound to `S`, its grid, and the
    /// arguments for its signature.
    pub(super) fn with_kernel(
        &self,
        device: &Device,
        statements: &Statements,
        bound: &[BoundArgument<'_>],
        site: CallSite,
        serve: impl FnOnce(&Kernel<S::Sized>, Grid, &[BoundArgument<'_>]) -> Result<()>,
    ) -> Result<()> {
        let mut arrays = arrays(bound);
        let output = self.give_one_shape(&mut arrays, site)?;
        align(&mut arrays, output);
        let len = arrays[output].axes().len();
        let kernel = self.kernel(Form::of(arrays.iter().map(Rearranged::axes)), statements);
        serve(&kernel, grid(device, len), &rebound(bound, &arrays))
    }

    /// The most elements in all arrays that the calling thread serves: none where a loop or code of
    /// the program may take any time.
    fn brief_len_max(&self, statements: &Statements) -> u64 {
        let is_open = statements.has_loops || self.inner.host.is_some();
        if is_open { 0 } else { call::BRIEF_LEN_MAX }
    }

    /// Broadcasts the inputs to the shape of the outputs. Returns the number of an output.
    fn give_one_shape(&self, arrays: &mut [Rearranged<'_>], site: CallSite) -> Result<usize> {
        let named = S::DECLARED.iter().zip(&self.inner.names);
        let declared = named.filter(|(one, _)| one.how != super::Use::Scalar);
        let declared = declared.map(|(one, name)| (one.how.is_output(), &**name));
        let declared: SmallVec<[(bool, &str); 16]> = declared.collect();
        // `statements` has checked that there is one.
        let first = declared.iter().position(|(is_output, _)| *is_output).unwrap_or(0);
        let output = arrays[first].clone();
        for (array, (is_output, name)) in arrays.iter_mut().zip(declared) {
            let shape = output.axes().shape();
            let fits = if is_output {
                array.axes().shape() == shape
            } else {
                array.axes_mut().broadcast(shape)
            };
            if !fits {
                let (how, instead) = if is_output {
                    ("have the shape of the first output,", fitting::to_result(shape))
                } else {
                    ("broadcast to", fitting::to_broadcast(array.axes().shape(), shape))
                };
                let expected = format!("`{name}` to {how} {output}");
                return Err(self.no_fit(expected, array, instead, site));
            }
        }
        Ok(first)
    }

    #[cold]
    fn no_fit(
        &self,
        expected: String,
        array: &Rearranged<'_>,
        instead: String,
        site: CallSite,
    ) -> Error {
        let operation = format!("elementwise operation {}", quoted(self.name()));
        let (seen, instead) = (array.to_string(), instead.into());
        Error::Shape { operation, expected, seen, instead, call: site.into() }
    }
}

/// Gives the arrays as few axes as they can have together, in the order of one of them.
fn align(arrays: &mut [Rearranged<'_>], leader: usize) {
    let mut axes: SmallVec<[&mut Axes; 8]> = arrays.iter_mut().map(Rearranged::axes_mut).collect();
    axes.swap(0, leader);
    align::all_in_any_order(&mut axes);
}
