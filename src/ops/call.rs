//! One call of an operation: where it runs, and how it launches and refuses.

use std::borrow::Cow;
use std::fmt::Display;

use ndarray::{Dimension, Order};

use crate::array::{AnyView, Operand, OperandMut, SmartArray};
use crate::device::Stream;
use crate::element::Element;
use crate::error::{AtCall, CalledAt, Error, Result, fitting};
use crate::launch::{Arguments, Kernel, Signature, expect_written};
use resident_backend::BodyKind;
use resident_backend::call_site::CallSite;
use resident_backend::grid::Grid;

/// The stream and the line of the program for which an operation runs.
pub(super) struct Call<'a> {
    pub(super) name: &'static str,
    pub(super) stream: &'a Stream,
    pub(super) site: CallSite,
}

/// The most elements of an operand that repeats some, where no memory of a result limits them. More
/// would take minutes, and work that was queued cannot be stopped.
pub(super) const REPEATED_LEN_MAX: usize = 1 << 34;

/// With up to this many elements in all its arrays, an operation takes less time than waking
/// another thread, or about as much, so that the calling thread runs it if the stream is idle.
pub(super) const BRIEF_LEN_MAX: u64 = 1 << 18;

/// A thread for each of `len` elements, for kernels that count by `resident::thread()`. AMD's
/// runtime takes less than 2³² threads along an axis, so very many have blocks along y too.
pub(super) fn cover(len: usize) -> Grid {
    const THREADS: u32 = 256;
    const BLOCKS_MAX: usize = u32::MAX as usize / THREADS as usize;
    let blocks = len.div_ceil(THREADS as usize);
    let rows = blocks.div_ceil(BLOCKS_MAX);
    if rows < 2 {
        return Grid::cover(len);
    }
    Grid::new((blocks.div_ceil(rows) as u32, rows as u32), THREADS)
}

/// The current stream of this thread, or of the device that alone has the array.
pub(super) fn stream_of<T: Element>(array: &impl AnyView<T>, site: CallSite) -> Result<Stream> {
    match array.home() {
        Some(device) => Ok(device.current_stream()),
        None => Stream::current().at(site),
    }
}

/// The stream of an operation that makes an array: the current stream of the device where an
/// operand is newest. That is the only device that has one of them, if it is a device array; else
/// the current device, if it has one of them; else the device of the first operand that a device
/// has; and the current device, if none has any.
pub(super) fn stream_where_newest<'a, T: Element>(
    operands: impl IntoIterator<Item = &'a Operand<'a, T>> + Clone,
    site: CallSite,
) -> Result<Stream> {
    if let Some(home) = operands.clone().into_iter().find_map(AnyView::<T>::home) {
        return Ok(home.current_stream());
    }
    let current = Stream::current().at(site)?;
    let mut first = None;
    for operand in operands {
        match operand.device_where_newest(current.device_ref()) {
            Some(device) if device == *current.device_ref() => return Ok(current),
            found => first = first.or(found),
        }
    }
    Ok(first.map_or(current, |device| device.current_stream()))
}

/// An array of this shape, with the axes in this order, for the result of an operation.
pub(super) fn result<T: Element, D: Dimension>(
    shape: &[usize],
    order: Order,
    site: CallSite,
) -> Result<SmartArray<T, D>> {
    let mut dim = D::zeros(shape.len());
    dim.slice_mut().copy_from_slice(shape);
    SmartArray::uninit_in_order(dim, order, site)
}

impl Call<'_> {
    /// Launches a kernel that reads all elements of its `In` and `InOut` arrays.
    pub(super) fn launch<S: Signature>(
        &self,
        kernel: &Kernel<S>,
        grid: Grid,
        arguments: impl Arguments<S>,
    ) -> Result<()> {
        self.expect_written(&arguments)?;
        self.launch_on_some(kernel, grid, arguments)
    }

    /// A device that checks kernels would find a read of what a launch left out only once it is
    /// made, and lose the result.
    #[inline]
    fn expect_written<S: Signature>(&self, arguments: &impl Arguments<S>) -> Result<()> {
        if !self.stream.device_ref().properties().knows_left_out {
            return Ok(());
        }
        arguments.with_bound(|bound| expect_written(bound, self.name, self.stream, self.site))
    }

    /// As [`launch`](Self::launch), for a kernel that reads elements or not as others say.
    pub(super) fn launch_on_some<S: Signature>(
        &self,
        kernel: &Kernel<S>,
        grid: Grid,
        arguments: impl Arguments<S>,
    ) -> Result<()> {
        kernel.launch_from(self.stream, grid, &arguments, BRIEF_LEN_MAX, self.site)
    }

    /// As [`launch`](Self::launch), where elements take longer than to be read once.
    pub(super) fn launch_long<S: Signature>(
        &self,
        kernel: &Kernel<S>,
        grid: Grid,
        arguments: impl Arguments<S>,
    ) -> Result<()> {
        self.expect_written(&arguments)?;
        kernel.launch_from(self.stream, grid, &arguments, 0, self.site)
    }

    /// Whether the bodies in Rust run, not those in CUDA C.
    pub(super) fn runs_rust(&self) -> bool {
        self.stream.device_ref().body_kind() == BodyKind::Host
    }

    /// Repeats an operand, the parameter `name`, along the axes of the result, or says that it does
    /// not fit.
    pub(super) fn fit<T: Element, U: Element>(
        &self,
        name: &str,
        operand: &mut Operand<'_, T>,
        to: &OperandMut<'_, U>,
    ) -> Result<()> {
        self.fit_shape(name, operand, to.axes().shape(), to)
    }

    /// As [`fit`](Self::fit), for the shape of `to`.
    pub(super) fn fit_shape<T: Element>(
        &self,
        name: &str,
        operand: &mut Operand<'_, T>,
        shape: &[usize],
        to: impl Display,
    ) -> Result<()> {
        if operand.broadcast(shape) {
            return Ok(());
        }
        let expected = format!("`{name}` to broadcast to {to}");
        let instead = fitting::to_broadcast(operand.axes().shape(), shape);
        Err(self.shape(expected, operand, instead))
    }

    /// Refuses a result, the parameter `name`, whose shape is not the expected one: `why`.
    pub(super) fn expect_result<T: Element>(
        &self,
        name: &str,
        out: &OperandMut<'_, T>,
        expected: &[usize],
        why: &str,
    ) -> Result<()> {
        if *out.axes().shape() == *expected {
            return Ok(());
        }
        let instead = fitting::to_result(expected);
        Err(self.shape(format!("`{name}` of shape {expected:?}, {why},"), out, instead))
    }

    /// Refuses an operand, the parameter `name`, whose shape is not the expected one: `why`.
    pub(super) fn expect_shape<T: Element>(
        &self,
        name: &str,
        operand: &Operand<'_, T>,
        expected: &[usize],
        why: &str,
    ) -> Result<()> {
        let seen = operand.axes().shape();
        if *seen == *expected {
            return Ok(());
        }
        let instead = fitting::to_shape(seen, expected);
        Err(self.shape(format!("`{name}` of shape {expected:?}, {why},"), operand, instead))
    }

    /// Refuses an operand that is too long because it repeats elements, which take no memory.
    pub(super) fn expect_end<T: Element>(&self, operand: &Operand<'_, T>) -> Result<()> {
        if !operand.axes().repeats_beyond(REPEATED_LEN_MAX) {
            return Ok(());
        }
        let expected = format!("at most {REPEATED_LEN_MAX} elements where some are repeated");
        Err(self.shape(expected, operand, "pass it before it is broadcast, or a part of it"))
    }

    #[cold]
    pub(super) fn shape(
        &self,
        expected: String,
        seen: impl Display,
        instead: impl Into<Cow<'static, str>>,
    ) -> Error {
        let (operation, seen) = (format!("ops::{}", self.name), seen.to_string());
        Error::Shape { operation, expected, seen, instead: instead.into(), call: self.at() }
    }

    pub(super) fn at(&self) -> CalledAt {
        self.site.into()
    }
}

#[cfg(test)]
mod tests {
    use super::cover;

    #[test]
    fn no_axis_has_more_threads_than_32_bits_count() {
        for len in [0, 1, 1 << 31, (1 << 31) + 1, (1 << 32) - 1, 1 << 32, 5_000_000_000, 1 << 40] {
            let (blocks, threads) = (cover(len).blocks(), cover(len).threads());
            let rows = [(blocks.x, threads.x), (blocks.y, threads.y)];
            let [columns, rows] = rows.map(|(blocks, threads)| blocks as usize * threads as usize);
            assert!(columns < 1 << 32 && rows < 1 << 16, "{len}");
            assert!((len..len + 256 + 256 * rows).contains(&(columns * rows)), "{len}");
            assert!(threads.y == 1 && blocks.z == 1, "{len}");
        }
    }
}
