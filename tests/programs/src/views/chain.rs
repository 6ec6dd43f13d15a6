//! Random chains of rearrangements, as ndarray's, on arrays of both kinds.

use resident::ndarray::{
    ArrayD, ArrayViewD, Axis, AxisDescription, Dimension, IxDyn, Order, ShapeBuilder, Slice,
    SliceInfo, SliceInfoElem,
};
use resident::{DeviceView, DeviceViewMut, Element, Error, Result, SmartView, SmartViewMut};

pub const AXES_MAX: usize = 5;

/// One step of a chain, with numbers from which its operands are made.
pub type Step = (u8, [u8; 8]);

/// A slice of this shape: ranges, steps in both directions and beyond the axis, empty ranges.
pub fn slice_of(shape: &[usize], numbers: [u8; 8]) -> SliceInfo<Vec<SliceInfoElem>, IxDyn, IxDyn> {
    let axis = |(axis, len): (usize, &usize)| {
        let (number, len) = (usize::from(numbers[axis]), *len);
        let (start, keep) = (number % (len + 1), number / 16 % 4);
        let end = if keep == 0 { start + (len - start) / 2 } else { len };
        let step = step_of(numbers[axis + 3], len);
        // Indices from the end are others for the same element.
        let start = if keep == 1 { start as isize - len as isize } else { start as isize };
        let start = if keep == 1 && start == 0 { len as isize } else { start };
        SliceInfoElem::Slice { start, end: Some(end as isize), step }
    };
    let elements: Vec<_> = shape.iter().enumerate().map(axis).collect();
    SliceInfo::try_from(elements).expect("as many axes in as out")
}

/// The slice of each axis.
fn slices_of(info: &SliceInfo<Vec<SliceInfoElem>, IxDyn, IxDyn>) -> Vec<Slice> {
    let of_axis = |element: &SliceInfoElem| match *element {
        SliceInfoElem::Slice { start, end, step } => Slice { start, end, step },
        _ => unreachable!("`slice_of` makes slices"),
    };
    info.iter().map(of_axis).collect()
}

/// Any step but 0, up to one that is longer than the axis.
fn step_of(number: u8, len: usize) -> isize {
    let indices = 1 + isize::from(number / 2) % (len as isize + 1);
    if number.is_multiple_of(2) { indices } else { -indices }
}

/// An order of the axes.
fn order_of(ndim: usize, numbers: [u8; 8]) -> IxDyn {
    let mut axes: Vec<usize> = (0..ndim).collect();
    axes.sort_by_key(|axis| numbers[*axis]);
    IxDyn(&axes)
}

/// Another shape of as many elements.
fn shape_of(shape: &[usize], numbers: [u8; 8]) -> IxDyn {
    let len: usize = shape.iter().product();
    let at = usize::from(numbers[1]) % (shape.len() + 1);
    match numbers[0] % 3 {
        0 => IxDyn(&[len]),
        1 if at + 1 < shape.len() => {
            let mut joined = shape.to_vec();
            let next = joined.remove(at + 1);
            joined[at] *= next;
            IxDyn(&joined)
        }
        _ if at < shape.len() && shape[at].is_multiple_of(2) => {
            let mut split = shape.to_vec();
            split[at] /= 2;
            split.insert(at + 1, 2);
            IxDyn(&split)
        }
        _ => IxDyn(shape),
    }
}

/// The operation of a step, with operands that fit a shape.
pub enum Operation {
    Permute(IxDyn),
    Transpose,
    Slice(SliceInfo<Vec<SliceInfoElem>, IxDyn, IxDyn>),
    SliceAxis(Axis, Slice),
    SliceEachAxis(Vec<Slice>),
    Index(Axis, usize),
    Insert(Axis),
    Remove(Axis),
    Reshape(IxDyn, Order),
    Broadcast(IxDyn),
    Split(Axis, usize, bool),
    Chunk(Axis, usize, usize),
}

/// The result of an operation on a shared view. Returns `Ok(None)` if a copy would be needed.
macro_rules! on_shared {
    ($operation:expr, $view:expr, $reshape:expr) => {
        match $operation {
            Operation::Permute(axes) => $view.permuted_axes(axes.clone()),
            Operation::Transpose => $view.t(),
            Operation::Slice(info) => $view.slice(info),
            Operation::SliceAxis(axis, indices) => $view.slice_axis(*axis, *indices),
            Operation::SliceEachAxis(indices) => {
                $view.slice_each_axis(|axis| indices[axis.axis.index()])
            }
            Operation::Index(axis, index) => match index % 2 {
                0 => $view.index_axis(*axis, *index),
                _ => $view.axis_iter(*axis).nth(*index).expect("there is such an index"),
            },
            Operation::Insert(axis) => $view.insert_axis(*axis),
            Operation::Remove(axis) => $view.remove_axis(*axis),
            Operation::Reshape(shape, order) => match $reshape(shape, *order) {
                Err(Error::Shape { .. }) => return Ok(None),
                reshaped => reshaped?,
            },
            Operation::Broadcast(shape) => $view.broadcast(shape.clone())?,
            Operation::Split(axis, index, is_first) => {
                let (first, second) = $view.clone().split_at(*axis, *index);
                if *is_first { first } else { second }
            }
            Operation::Chunk(axis, size, number) => {
                let mut chunks = $view.axis_chunks_iter(*axis, *size);
                let from_end = chunks.len() - 1 - number;
                match number % 2 {
                    0 => chunks.nth(*number),
                    _ => chunks.nth_back(from_end),
                }
                .expect("there is such a chunk")
            }
        }
    };
}

/// The result of an operation on an exclusive view, which no copy is needed for.
macro_rules! on_exclusive {
    ($operation:expr, $view:expr, $reshape:expr) => {{
        let mut view = $view;
        match $operation {
            Operation::Permute(axes) => view.permuted_axes(axes.clone()),
            Operation::Transpose => view.reversed_axes(),
            Operation::Slice(info) => view.slice_move(info),
            Operation::SliceAxis(axis, indices) => {
                let shape = view.slice_axis_mut(*axis, *indices).shape().to_vec();
                let part = view.slice_axis_move(*axis, *indices);
                assert_eq!(part.shape(), shape);
                part
            }
            Operation::SliceEachAxis(indices) => {
                let of = |axis: AxisDescription| indices[axis.axis.index()];
                let shape = view.slice_each_axis_mut(of).shape().to_vec();
                let part = view.slice_each_axis_move(of);
                assert_eq!(part.shape(), shape);
                part
            }
            Operation::Index(axis, index) => view.index_axis_move(*axis, *index),
            Operation::Insert(axis) => view.insert_axis(*axis),
            Operation::Remove(axis) => view.remove_axis(*axis),
            Operation::Reshape(shape, order) => $reshape(view, shape.clone(), *order)?,
            Operation::Broadcast(_) => unreachable!("not made for exclusive views"),
            Operation::Split(axis, index, is_first) => {
                let (first, second) = view.split_at(*axis, *index);
                if *is_first { first } else { second }
            }
            Operation::Chunk(axis, size, number) => {
                let len = view.shape()[axis.index()];
                let seen = view.axis_chunks_iter_mut(*axis, *size).nth(*number).expect("a chunk");
                let (from, to) = (number * size, len.min((number + 1) * size));
                assert_eq!(seen.shape()[axis.index()], to - from);
                view.split_at(*axis, to).0.split_at(*axis, from).1
            }
        }
    }};
}

impl Operation {
    pub fn of((kind, numbers): Step, shape: &[usize], may_repeat: bool) -> Option<Self> {
        let ndim = shape.len();
        let number = |at: usize, below: usize| usize::from(numbers[at]) % below.max(1);
        let axis = number(7, ndim);
        let order = if numbers[6] % 2 == 0 { Order::RowMajor } else { Order::ColumnMajor };
        let is_small = ndim < AXES_MAX && shape.iter().product::<usize>() < 200;
        Some(match kind % 10 {
            0 => Self::Permute(order_of(ndim, numbers)),
            1 => Self::Transpose,
            2 => Self::Slice(slice_of(shape, numbers)),
            3 => {
                let slices = slices_of(&slice_of(shape, numbers));
                match slices.get(axis) {
                    Some(indices) if numbers[6] % 2 == 0 => Self::SliceAxis(Axis(axis), *indices),
                    _ => Self::SliceEachAxis(slices),
                }
            }
            4 if ndim < AXES_MAX => Self::Insert(Axis(number(0, ndim + 1))),
            5 => {
                let shape = shape_of(shape, numbers);
                (shape.ndim() <= AXES_MAX).then_some(Self::Reshape(shape, order))?
            }
            6 if may_repeat && is_small => {
                let mut shape: Vec<usize> =
                    shape.iter().map(|len| if *len == 1 { 3 } else { *len }).collect();
                shape.insert(0, 1 + number(0, 3));
                Self::Broadcast(IxDyn(&shape))
            }
            _ if ndim == 0 => return None,
            7 => Self::Split(Axis(axis), number(0, shape[axis] + 1), numbers[1] % 2 == 0),
            8 if shape[axis] > 0 => match numbers[0] % 4 {
                0 => Self::Remove(Axis(axis)),
                _ => Self::Index(Axis(axis), number(0, shape[axis])),
            },
            9 if shape[axis] > 0 => {
                let size = 1 + number(0, shape[axis]);
                Self::Chunk(Axis(axis), size, number(1, shape[axis].div_ceil(size)))
            }
            _ => return None,
        })
    }

    /// Whether an exclusive view can be rearranged without a copy.
    pub fn fits(&self, view: &SmartView<'_, u32, IxDyn>) -> bool {
        match self {
            Self::Reshape(shape, order) => view.reshape((shape.clone(), *order)).is_ok(),
            _ => true,
        }
    }

    /// As [`fits`](Self::fits), on a device.
    pub fn fits_on_device(&self, view: &DeviceView<'_, u32, IxDyn>) -> bool {
        match self {
            Self::Reshape(shape, order) => view.reshape(shape.clone(), *order).is_ok(),
            _ => true,
        }
    }

    /// ndarray's result.
    pub fn expected(&self, array: &ArrayD<u32>) -> ArrayD<u32> {
        match self {
            Self::Permute(axes) => owned(array.view().permuted_axes(axes.clone())),
            Self::Transpose => owned(array.t()),
            Self::Slice(info) => owned(array.slice(info)),
            Self::SliceAxis(axis, indices) => owned(array.slice_axis(*axis, *indices)),
            Self::SliceEachAxis(indices) => {
                owned(array.slice_each_axis(|axis| indices[axis.axis.index()]))
            }
            Self::Index(axis, index) => owned(array.index_axis(*axis, *index)),
            Self::Insert(axis) => owned(array.view().insert_axis(*axis)),
            Self::Remove(axis) => owned(array.view().remove_axis(*axis)),
            Self::Reshape(shape, order) => {
                owned(array.to_shape((shape.clone(), *order)).expect("as many elements").view())
            }
            Self::Broadcast(shape) => owned(array.broadcast(shape.clone()).expect("it fits")),
            Self::Split(axis, index, is_first) => {
                let (first, second) = array.view().split_at(*axis, *index);
                owned(if *is_first { first } else { second })
            }
            Self::Chunk(axis, size, number) => {
                owned(array.axis_chunks_iter(*axis, *size).nth(*number).expect("a chunk"))
            }
        }
    }

    /// `None` if a copy would be needed.
    pub fn on_view<'a, T: Element>(
        &self,
        view: &SmartView<'a, T, IxDyn>,
    ) -> Result<Option<SmartView<'a, T, IxDyn>>> {
        let reshape = |shape: &IxDyn, order| view.reshape((shape.clone(), order));
        Ok(Some(on_shared!(self, view, reshape)))
    }

    /// `None` if a copy would be needed.
    pub fn on_device_view<'a>(
        &self,
        view: &DeviceView<'a, u32, IxDyn>,
    ) -> Result<Option<DeviceView<'a, u32, IxDyn>>> {
        let reshape = |shape: &IxDyn, order| view.reshape(shape.clone(), order);
        Ok(Some(on_shared!(self, view, reshape)))
    }

    pub fn on_view_mut<'a>(
        &self,
        view: SmartViewMut<'a, u32, IxDyn>,
    ) -> Result<SmartViewMut<'a, u32, IxDyn>> {
        let reshape = |view: SmartViewMut<'a, _, _>, shape, order| view.reshape((shape, order));
        Ok(on_exclusive!(self, view, reshape))
    }

    pub fn on_device_view_mut<'a>(
        &self,
        view: DeviceViewMut<'a, u32, IxDyn>,
    ) -> Result<DeviceViewMut<'a, u32, IxDyn>> {
        let reshape = |view: DeviceViewMut<'a, _, _>, shape, order| view.into_shape(shape, order);
        Ok(on_exclusive!(self, view, reshape))
    }
}

/// The elements of a view. ndarray's own `to_owned` panics in debug builds for some empty views.
pub fn owned<T: Copy>(view: ArrayViewD<'_, T>) -> ArrayD<T> {
    let elements: Vec<T> = view.iter().copied().collect();
    ArrayD::from_shape_vec(view.raw_dim(), elements).expect("as many elements")
}

/// An array whose elements are their own positions in row-major order, in some axis order.
pub fn positions(shape: &[usize], is_fortran: bool) -> ArrayD<u32> {
    let mut array = ArrayD::zeros(IxDyn(shape).set_f(is_fortran));
    array.iter_mut().zip(0..).for_each(|(element, position)| *element = position);
    array
}

/// The number of different elements.
pub fn distinct(array: &ArrayD<u32>) -> u64 {
    let mut elements: Vec<u32> = array.iter().copied().collect();
    elements.sort_unstable();
    elements.dedup();
    elements.len() as u64
}

/// Writes values into the elements of an array of [`positions`] that its rearranged part has, in
/// the part's row-major order.
pub fn write(positions: &mut ArrayD<u32>, part: &ArrayD<u32>, values: &[u32]) {
    let elements = positions.as_slice_memory_order_mut().expect("contiguous");
    let place = |element: &u32| {
        elements.iter().position(|seen| seen == element).expect("it was not written")
    };
    let places: Vec<usize> = part.iter().map(place).collect();
    places.iter().zip(values).for_each(|(at, value)| elements[*at] = *value);
}
