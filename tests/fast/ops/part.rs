//! Random parts of random arrays, of ndarray's and of this library's.

use std::fmt::Debug;

use half::{bf16, f16};
use ndarray::{ArrayD, ArrayViewD, ArrayViewMutD, IxDyn, SliceInfo, SliceInfoElem};
use num_complex::Complex;
use resident::{DeviceArray, Element, SmartArray, SmartView, SmartViewMut};

/// Numbers that look random and are the same in each run.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// A number below `len`.
    pub(crate) fn below(&mut self, len: usize) -> usize {
        (self.next() % len as u64) as usize
    }
}

/// How a part of an array is chosen: for each axis of the array the length, the gap before the part
/// and the step; then the order of the axes.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) whole: Vec<usize>,
    slices: Vec<SliceInfoElem>,
    order: Vec<usize>,
}

impl Part {
    /// A part of a new array, with this shape.
    pub(crate) fn of_shape(shape: &[usize], random: &mut Random) -> Self {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if random.below(2) == 0 {
            for axis in (1..order.len()).rev() {
                order.swap(axis, random.below(axis + 1));
            }
        }
        let (mut whole, mut slices) = (vec![0; shape.len()], Vec::new());
        for (axis, from) in order.iter().enumerate() {
            whole[*from] = shape[axis];
        }
        let is_plain = random.below(3) == 0;
        for len in &mut whole {
            let kinds: [isize; 6] = [1, 1, 1, -1, 2, -3];
            let step = if is_plain { 1 } else { kinds[random.below(kinds.len())] };
            let before = if is_plain { 0 } else { random.below(3) };
            let span = match *len {
                0 => 0,
                len => (len - 1) * step.unsigned_abs() + 1,
            };
            let end = Some((before + span) as isize);
            slices.push(SliceInfoElem::Slice { start: before as isize, end, step });
            *len = before + span + if is_plain { 0 } else { random.below(2) };
        }
        Self { whole, slices, order }
    }

    /// A random shape of at most this many axes.
    pub(crate) fn shape(axes_max: usize, random: &mut Random) -> Vec<usize> {
        let axes = random.below(axes_max + 1);
        (0..axes).map(|_| [0, 1, 2, 3, 5, 8, 8, 3, 4, 7, 6, 9][random.below(12)]).collect()
    }

    fn info(&self) -> SliceInfo<Vec<SliceInfoElem>, IxDyn, IxDyn> {
        SliceInfo::try_from(self.slices.clone()).expect("only slices")
    }

    pub(crate) fn of<'a, T>(&self, array: &'a ArrayD<T>) -> ArrayViewD<'a, T> {
        let part = array.view().slice_move(self.info());
        part.permuted_axes(self.order.clone())
    }

    #[allow(dead_code, reason = "the texts of the package `kernels` are written to such a part")]
    pub(crate) fn of_mut<'a, T>(&self, array: &'a mut ArrayD<T>) -> ArrayViewMutD<'a, T> {
        let part = array.view_mut().slice_move(self.info());
        part.permuted_axes(self.order.clone())
    }

    pub(crate) fn of_ours<'a, T: Element>(
        &self,
        array: &'a SmartArray<T, IxDyn>,
    ) -> SmartView<'a, T, IxDyn> {
        array.slice(self.info()).permuted_axes(IxDyn(&self.order))
    }

    pub(crate) fn of_ours_mut<'a, T: Element>(
        &self,
        array: &'a mut SmartArray<T, IxDyn>,
    ) -> SmartViewMut<'a, T, IxDyn> {
        array.slice_mut(self.info()).permuted_axes(IxDyn(&self.order))
    }

    /// A new array with random elements, of which this is a part.
    pub(crate) fn array<T: Sample>(&self, random: &mut Random) -> ArrayD<T> {
        ArrayD::from_shape_simple_fn(self.whole.clone(), || T::sample(random))
    }
}

/// A device array with the elements of an array.
pub(crate) fn on_device<T: Element>(array: &ArrayD<T>) -> DeviceArray<T, IxDyn> {
    DeviceArray::from_host(array).expect("the device has room")
}

/// Elements at random. No float is 0, so that all quotients are numbers.
pub(crate) trait Sample: Element + PartialEq + Debug {
    fn sample(random: &mut Random) -> Self;
}

macro_rules! sample {
    ($($type:ty: |$bits:ident| $value:expr),+ $(,)?) => {
        $(impl Sample for $type {
            fn sample(random: &mut Random) -> Self {
                let $bits = random.next();
                $value
            }
        })+
    };
}

sample! {
    f32: |bits| (bits % 2001) as f32 / 64.0 - 15.01,
    f64: |bits| (bits % 200_001) as f64 / 64.0 - 1500.01,
    i32: |bits| if bits.is_multiple_of(5) { bits as i32 } else { (bits % 21) as i32 - 10 },
    i64: |bits| if bits.is_multiple_of(5) { (bits << 17) as i64 } else { (bits % 21) as i64 - 10 },
    u32: |bits| if bits.is_multiple_of(5) { bits as u32 } else { (bits % 21) as u32 },
    u64: |bits| if bits.is_multiple_of(5) { bits << 17 } else { bits % 21 },
    u8: |bits| (bits % 256) as u8,
    f16: |bits| f16::from_f32((bits % 2001) as f32 / 64.0 - 15.01),
    bf16: |bits| bf16::from_f32((bits % 2001) as f32 / 64.0 - 15.01),
    Complex<f32>: |bits| {
        let part = |bits: u64| (bits % 2001) as f32 / 64.0 - 15.01;
        Complex::new(part(bits), part(bits / 2001))
    },
    Complex<f64>: |bits| {
        let part = |bits: u64| (bits % 200_001) as f64 / 64.0 - 1500.01;
        Complex::new(part(bits), part(bits / 200_001))
    },
}
