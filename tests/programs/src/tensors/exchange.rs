//! One tensor: passed to the library, compared with the oracle, used, and given back.

use std::any::Any;

use resident::bytemuck::{bytes_of, pod_read_unaligned};
use resident::dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use resident::dlpark::versioned::Dlpack;
use resident::dlpark::{DlpackFlags, Managed};
use resident::ndarray::Dimension;
use resident::{DeviceArray, Error, ReadOnlyDeviceArray, Result, Stream, TensorElement};

use super::describe::{Described, Fields, TensorForm};
use super::oracle::{Call, Elements, Verdict, verdict};
use super::{Bench, Kept, MEMORY_BYTES, ROUND_TRIPS_MAX, Step};

/// An array over a tensor.
enum Taken<T: TensorElement, D: Dimension> {
    Writable(DeviceArray<T, D>),
    ReadOnly(ReadOnlyDeviceArray<T, D>),
}

/// Passes the step's tensor to the library.
pub(super) fn take_over<T: TensorElement, D: Dimension + 'static>(bench: &mut Bench, step: &Step) {
    let start = bench.memory.as_mut_ptr().cast::<u8>();
    let fields = step.tensor.fields(T::DTYPE, start);
    bench.made += usize::from(fields.has_deleter);
    if step.is_legacy {
        pass::<T, D, DLManagedTensor>(bench, step, fields);
    } else {
        pass::<T, D, DLManagedTensorVersioned>(bench, step, fields);
    }
}

fn pass<T: TensorElement, D: Dimension + 'static, M: TensorForm>(
    bench: &mut Bench,
    step: &Step,
    fields: Fields,
) {
    let has_deleter = fields.has_deleter;
    let call = Call { is_legacy: step.is_legacy, is_read_only: step.is_read_only, ndim: D::NDIM };
    let expected = verdict::<T>(&fields, call);
    let made = Described::<M>::made(fields.clone(), &bench.freed);
    // SAFETY: the tensor was made for this call, and its pointers lead to its own memory.
    let seen = match unsafe { Managed::from_raw(Described::managed(made)) } {
        Ok(tensor) => Some(imported::<T, D, M>(bench, step, tensor)),
        Err(_of_another_version) => None,
    };
    // A tensor without a deleter lives as long as the memory that it describes.
    let is_kept = step.is_kept && has_deleter;
    let array = checked(bench, seen, &expected, &fields);
    if let (Some(array), Verdict::Taken(elements)) = (array, expected) {
        use_array(bench, step, array, elements, is_kept);
    }
    if !has_deleter {
        bench.settle();
        // SAFETY: `made` leaked the box, no deleter frees it, and the array is gone.
        drop(unsafe { Box::from_raw(made) });
    }
}

fn imported<T: TensorElement, D: Dimension, M: TensorForm>(
    bench: &Bench,
    step: &Step,
    tensor: Managed<M>,
) -> Result<Taken<T, D>> {
    let stream = bench.device.stream();
    if step.is_read_only {
        // SAFETY: nothing writes the memory while the array lives; if the tensor describes other
        // memory than there is, the array is dropped at once.
        unsafe { ReadOnlyDeviceArray::from_dlpack_on(&stream, tensor) }.map(Taken::ReadOnly)
    } else {
        // SAFETY: as above, and nothing else reads the memory.
        unsafe { DeviceArray::from_dlpack_on(&stream, tensor) }.map(Taken::Writable)
    }
}

/// The array, if the memory that it describes is there; panics unless the oracle agrees.
fn checked<T: TensorElement, D: Dimension>(
    bench: &Bench,
    seen: Option<Result<Taken<T, D>>>,
    expected: &Verdict,
    fields: &Fields,
) -> Option<Taken<T, D>> {
    let (is_in_use, is_there) = match expected {
        Verdict::Taken(Elements { bytes, .. }) => (bench.is_in_use(bytes), bench.has(bytes)),
        Verdict::Refused | Verdict::Empty => (false, true),
    };
    match (seen, expected) {
        (None, Verdict::Refused) => None,
        (Some(Err(Error::Foreign { .. } | Error::Shape { .. })), Verdict::Refused) => None,
        (Some(Ok(taken)), Verdict::Empty) => {
            assert!(taken.array().is_empty());
            None
        }
        (Some(Err(Error::Backend { .. })), Verdict::Taken(_)) if is_in_use || !is_there => None,
        // Arrays of other tests may lie in a range that is not there.
        (Some(Ok(_)), Verdict::Taken(_)) if !is_there && !is_in_use => None,
        (Some(Ok(taken)), Verdict::Taken(_)) if !is_in_use => Some(taken),
        (Some(Ok(_)), _) => panic!("taken over, where {expected:?} is expected: {fields:?}"),
        (seen, _) => {
            let seen = seen.map(|seen| seen.err());
            panic!("{seen:?}, where {expected:?} is expected: {fields:?}")
        }
    }
}

impl Bench {
    fn start(&self) -> i128 {
        self.memory.as_ptr().addr() as i128
    }

    fn has(&self, bytes: &std::ops::Range<i128>) -> bool {
        self.start() <= bytes.start && bytes.end <= self.start() + MEMORY_BYTES as i128
    }

    fn is_in_use(&self, bytes: &std::ops::Range<i128>) -> bool {
        let overlaps = |kept: &Kept| kept.bytes.start < bytes.end && bytes.start < kept.bytes.end;
        self.kept.iter().any(overlaps)
    }
}

/// Reads and writes the array, hands it out and takes it over again, and keeps it or drops it.
fn use_array<T: TensorElement, D: Dimension + 'static>(
    bench: &mut Bench,
    step: &Step,
    mut array: Taken<T, D>,
    elements: Elements,
    is_kept: bool,
) {
    expect_elements(bench, &array, &elements);
    if let Taken::Writable(array) = &mut array {
        write(bench, step, array, &elements);
    }
    let round_trips = step.round_trips % (ROUND_TRIPS_MAX + 1);
    for _ in 0..round_trips {
        array = array.round_trip(&bench.device.stream());
        expect_elements(bench, &array, &elements);
    }
    bench.expect_model();
    if is_kept {
        let array: Box<dyn Any> = Box::new(array);
        bench.kept.push(Kept { bytes: elements.bytes, _array: array });
    } else if round_trips > 0 {
        drop(array);
        // The array that was handed out first uses the memory until the deleter of its tensor has
        // run; one that was not is no longer in use at once.
        bench.settle();
    }
}

/// Each element has the bytes that the model has at its address.
fn expect_elements<T: TensorElement, D: Dimension>(
    bench: &Bench,
    taken: &Taken<T, D>,
    elements: &Elements,
) {
    let copy = taken.array().copy_to_host().expect("no call fails").into_dyn();
    let shape: Vec<i128> = copy.shape().iter().map(|len| *len as i128).collect();
    assert_eq!(shape, elements.shape);
    for (index, value) in copy.indexed_iter() {
        let steps = index.as_array_view().to_vec();
        let along = steps.iter().zip(&elements.strides).map(|(at, stride)| *at as i128 * stride);
        let address = elements.first + along.sum::<i128>() * size_of::<T>() as i128;
        let position = (address - bench.start()) as usize;
        assert_eq!(bytes_of(value), &bench.model[position..][..size_of::<T>()], "{steps:?}");
    }
}

/// Writes all elements, and the first one again.
fn write<T: TensorElement, D: Dimension>(
    bench: &mut Bench,
    step: &Step,
    array: &mut DeviceArray<T, D>,
    elements: &Elements,
) {
    let value = |byte: u8| pod_read_unaligned::<T>(&vec![byte; size_of::<T>()]);
    let stream = bench.device.stream();
    array.fill_on(&stream, value(step.byte)).expect("no call fails");
    array.set(D::zeros(array.ndim()), value(!step.byte)).expect("no call fails");
    let position = |address: i128| (address - bench.start()) as usize;
    let (start, end) = (position(elements.bytes.start), position(elements.bytes.end));
    let first = position(elements.first);
    bench.model[start..end].fill(step.byte);
    bench.model[first..first + size_of::<T>()].fill(!step.byte);
}

impl<T: TensorElement, D: Dimension> Taken<T, D> {
    fn array(&self) -> &DeviceArray<T, D> {
        match self {
            Self::Writable(array) => array,
            Self::ReadOnly(array) => array,
        }
    }

    /// The array, handed out to other code, which hands it back.
    fn round_trip(self, stream: &Stream) -> Self {
        match self {
            Self::Writable(array) => {
                let tensor: Dlpack = array.into_dlpack_on(stream).expect("no call fails");
                assert!(!tensor.flags().contains(DlpackFlags::READ_ONLY));
                // SAFETY: nothing else has the tensor.
                let back = unsafe { DeviceArray::from_dlpack_on(stream, tensor) };
                Self::Writable(back.expect("it was handed out"))
            }
            Self::ReadOnly(array) => {
                let tensor = array.to_dlpack_on(stream).expect("no call fails");
                assert!(tensor.flags().contains(DlpackFlags::READ_ONLY));
                // SAFETY: nothing writes the memory.
                let back = unsafe { ReadOnlyDeviceArray::from_dlpack_on(stream, tensor) };
                let back = back.expect("it was handed out");
                assert_eq!(back.shape(), array.shape());
                Self::ReadOnly(back)
            }
        }
    }
}
