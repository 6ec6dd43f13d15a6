//! One use of a [`Reduction`]: brings the inputs to one shape, and reduces in stages.

use ndarray::{Axis, IxDyn};
use resident_backend::call_site::CallSite;
use resident_backend::grid::Grid;
use resident_documents::quoted;
use smallvec::SmallVec;

use super::plan::{Key, LANES};
use super::{Checked, Partial, Reduction, ReductionInputs};
use crate::array::{AnyViewMut, Axes, Operand, OperandMut, SmartArray};
use crate::device::Stream;
use crate::error::{Error, Result, fitting};
use crate::launch::{Arguments, BoundArgument, In, Kernel, Out, Rearranged, Signature};
use crate::ops::arithmetic::Scalar;
use crate::ops::call::{BRIEF_LEN_MAX, Call, REPEATED_LEN_MAX, cover};
use crate::ops::elementwise_kernel::call::{Arrays, arrays, rebound};
use crate::ops::elementwise_kernel::source::Form;
use crate::ops::rows::reducer::{Reducer, put_long_axis_last};
use crate::ops::rows::{scratch, shape_of_chunks};
use crate::ops::{align, elementwise};

/// The threads of a block of the embedded device, of which one reduces the block's chunk. Launches
/// of 8,192 threads, and more, run on all cores.
const BLOCK_THREADS: u32 = 64;

/// The most blocks of a launch; each then serves several chunks.
const BLOCKS_MAX: usize = 1 << 20;

type Shape = SmallVec<[usize; 6]>;

impl<I: ReductionInputs, R: Scalar> Reduction<I, R> {
    pub(in crate::ops) fn number(
        &self,
        stream: &Stream,
        arguments: &impl Arguments<I>,
        site: CallSite,
    ) -> Result<R> {
        let call = &Call { name: "Reduction", stream, site };
        let checked = self.checked(call)?;
        let mut out = SmartArray::<R, _>::uninit_at(1, site);
        let has_elements = arguments.with_bound(|bound| {
            let mut inputs = Inputs { bound, arrays: arrays(bound), is_whole: true };
            let shape = self.give_one_shape(&mut inputs.arrays, site)?;
            if shape.contains(&0) {
                return Ok(false);
            }
            let out = &mut OperandMut::of(&mut out);
            self.reduce(call, checked, &mut inputs, out).map(|()| true)
        })?;
        if has_elements { out.get_at(0, site) } else { Ok(self.inner.initial) }
    }

    pub(super) fn along(
        &self,
        stream: &Stream,
        axis: Axis,
        arguments: &impl Arguments<I>,
        out: &mut impl AnyViewMut<R>,
        site: CallSite,
    ) -> Result<()> {
        let call = &Call { name: "Reduction", stream, site };
        let checked = self.checked(call)?;
        arguments.with_bound(|bound| {
            let mut inputs = Inputs { bound, arrays: arrays(bound), is_whole: false };
            let mut shape = self.give_one_shape(&mut inputs.arrays, site)?;
            if axis.0 >= shape.len() {
                let expected = format!("an axis of the inputs' common shape {shape:?}");
                let instead = format!("it has {} axes, numbered from 0", shape.len());
                return Err(self.no_fit(expected, format!("{axis:?}"), instead, site));
            }
            let len = shape.remove(axis.0);
            let results = OperandMut::of(out);
            if results.axes().shape() != &shape[..] {
                let expected = format!("`out` of shape {shape:?}, the inputs' without {axis:?},");
                let instead = fitting::to_result(&shape);
                return Err(self.no_fit(expected, results.to_string(), instead, site));
            }
            if results.axes().len() == 0 {
                return Ok(());
            }
            if len == 0 {
                return self.of_nothing(call, out);
            }
            let mut results = OperandMut::of(out);
            inputs.arrays.iter_mut().for_each(|array| array.axes_mut().move_to_end(axis.0));
            results.axes_mut().insert(shape.len());
            self.reduce(call, checked, &mut inputs, &mut results)
        })
    }

    /// The texts, if they can be used.
    fn checked(&self, call: &Call<'_>) -> Result<&Checked> {
        self.inner.checked().map_err(|fault| Error::Compile {
            kernel: quoted(self.name()),
            device: call.stream.device_ref().name(),
            log: format!("the texts of this reduction cannot be used: {fault}"),
            call: call.at(),
        })
    }

    fn of_nothing(&self, call: &Call<'_>, out: &mut impl AnyViewMut<R>) -> Result<()> {
        let initial = SmartArray::<R, IxDyn>::full_at(IxDyn(&[]), self.inner.initial, call.site);
        elementwise::copy(call, &initial, out)
    }

    /// Broadcasts the inputs with each other.
    fn give_one_shape(&self, arrays: &mut [Rearranged<'_>], site: CallSite) -> Result<Shape> {
        let mut shape = Shape::new();
        for array in &*arrays {
            let own = array.axes().shape();
            while shape.len() < own.len() {
                shape.insert(0, 1);
            }
            let more = shape.len() - own.len();
            let pairs = shape[more..].iter_mut().zip(own);
            pairs.filter(|(common, _)| **common == 1).for_each(|(common, own)| *common = *own);
        }
        for array in arrays.iter_mut() {
            if !array.axes_mut().broadcast(&shape) {
                let expected = format!("inputs that broadcast with each other to {shape:?}");
                let instead = fitting::to_broadcast(array.axes().shape(), &shape);
                return Err(self.no_fit(expected, array.to_string(), instead, site));
            }
        }
        self.expect_end(arrays, site)?;
        Ok(shape)
    }

    /// Refuses inputs whose elements are so many because all are repeated.
    fn expect_end(&self, arrays: &[Rearranged<'_>], site: CallSite) -> Result<()> {
        let is_long = |array: &Rearranged<'_>| array.axes().repeats_beyond(REPEATED_LEN_MAX);
        match arrays.iter().find(|array| is_long(array)) {
            Some(array) if arrays.iter().all(is_long) => {
                let expected =
                    format!("at most {REPEATED_LEN_MAX} elements where all are repeated");
                let instead = String::from("pass one of them before it is broadcast, or a part");
                Err(self.no_fit(expected, array.to_string(), instead, site))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn no_fit(&self, expected: String, seen: String, instead: String, site: CallSite) -> Error {
        let operation = format!("reduction {}", quoted(self.name()));
        Error::Shape { operation, expected, seen, instead: instead.into(), call: site.into() }
    }

    /// Reduces the values of the elements; there are some.
    fn reduce(
        &self,
        call: &Call<'_>,
        checked: &Checked,
        inputs: &mut Inputs<'_, '_>,
        out: &mut OperandMut<'_, R>,
    ) -> Result<()> {
        self.reduce_by::<I>(call, checked, &|key| self.inner.first(key, checked), inputs, out)
    }

    /// Reduces chunks, and then their results.
    fn reduce_by<J: ReductionInputs>(
        &self,
        call: &Call<'_>,
        checked: &Checked,
        kernel: &dyn Fn(Key) -> Kernel<J::Kernel<R>>,
        inputs: &mut Inputs<'_, '_>,
        out: &mut OperandMut<'_, R>,
    ) -> Result<()> {
        let stage = Stage::begin(inputs, out.axes_mut());
        let kernel = kernel(stage.key);
        // Expressions have no loops, but code of the program may take any time.
        let brief_len_max = if self.inner.host.is_some() { 0 } else { BRIEF_LEN_MAX };
        if stage.is_last() {
            return stage.launch(call, &kernel, brief_len_max, inputs, out);
        }
        let reducer = stage.key.reducer;
        let mut partial = scratch::<R>(call, &reducer.in_memory(stage.shape.clone()));
        let mut results = OperandMut::of(&mut partial);
        reducer.put_chunks_last(results.axes_mut());
        stage.launch(call, &kernel, brief_len_max, inputs, &mut results)?;
        let mut results = Operand::of(&partial);
        reducer.put_chunks_last(results.axes_mut());
        let is_whole = inputs.is_whole;
        let rest = |key| self.inner.rest(key, checked);
        Arguments::<(In<R, IxDyn>,)>::with_bound(&(&results,), |bound| {
            let inputs = &mut Inputs { bound, arrays: arrays(bound), is_whole };
            self.reduce_by::<Partial<R>>(call, checked, &rest, inputs, out)
        })
    }
}

/// What a stage reduces.
struct Inputs<'b, 'a> {
    bound: &'b [BoundArgument<'a>],
    arrays: Arrays<'a>,
    /// Whether all rows are reduced to one result.
    is_whole: bool,
}

/// How a stage reduces its inputs.
struct Stage {
    key: Key,
    /// The results of chunks: the last axis runs along the chunks of each row.
    shape: Shape,
}

impl Stage {
    /// Gives the inputs as few axes as they can have together, and chooses what serves a chunk.
    fn begin(inputs: &mut Inputs<'_, '_>, out: &mut Axes) -> Self {
        let is_whole = inputs.is_whole;
        let arrays = inputs.arrays.iter_mut();
        let mut all: SmallVec<[&mut Axes; 8]> = arrays.map(Rearranged::axes_mut).collect();
        if is_whole {
            align::all_in_any_order(&mut all);
            put_long_axis_last(&mut all);
        } else {
            all.push(out);
            align::all_rows(&mut all);
            all.pop();
        }
        let reducer = Reducer::of(all[0]);
        let shape = shape_of_chunks(all[0], reducer.chunk());
        let form = Form::of(all.iter().map(|axes| &**axes));
        Self { key: Key { form, reducer, is_whole }, shape }
    }

    /// Whether there is one result: of all elements, or of each row.
    fn is_last(&self) -> bool {
        if self.key.is_whole {
            self.shape.iter().product::<usize>() == 1
        } else {
            self.shape.last() == Some(&1)
        }
    }

    fn grid(&self, stream: &Stream) -> Grid {
        let chunks = self.shape.iter().product::<usize>();
        if self.key.reducer == Reducer::Thread {
            return cover(chunks);
        }
        let is_embedded = stream.device_ref().body_kind().is_on_host();
        let threads = if is_embedded { BLOCK_THREADS } else { LANES as u32 };
        Grid::new(chunks.min(BLOCKS_MAX) as u32, threads)
    }

    fn launch<S: Signature, R: Scalar>(
        &self,
        call: &Call<'_>,
        kernel: &Kernel<S>,
        brief_len_max: u64,
        inputs: &Inputs<'_, '_>,
        out: &mut OperandMut<'_, R>,
    ) -> Result<()> {
        let grid = self.grid(call.stream);
        Arguments::<(Out<R, IxDyn>,)>::with_bound(&(out,), |results| {
            let mut bound = rebound(inputs.bound, &inputs.arrays);
            bound.extend_from_slice(results);
            // SAFETY: the signature has the parameters that bound the inputs, with any number of
            // axes, and then the results.
            unsafe { kernel.launch_rearranged(call.stream, grid, &bound, brief_len_max, call.site) }
        })
    }
}
