//! The arguments of one launch with their types erased, and their encoding as words.

use std::fmt;

use smallvec::SmallVec;

use crate::array::Axes;
use crate::device::Device;
use crate::element::Element;
use crate::storage::Storage;
use crate::transfer::StoredView;
use resident_backend::ElementLayout;
use resident_core::Access;
use resident_core::layout::{Selection, Strided};

/// Words of a launch, as [`BoundArgument::pack`] writes them and `Unpacker` reads them.
pub(in crate::launch) type Words = SmallVec<[u64; 128]>;

/// An argument bound to its parameter, with its type erased.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BoundArgument<'a> {
    /// A value's bytes, and a function that formats them for a message.
    Scalar {
        bytes: &'a [u8],
        show: fn(&[u8]) -> String,
    },
    Array(BoundArray<'a>),
    /// The shape of an array that lives within a chain. Kernels get an array instead.
    Temporary(Strided<'a>),
}

/// How an array is passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArrayForm {
    /// As an ndarray view; with its shape and strides.
    Sized,
    /// As a slice; by its pointer alone.
    Flat,
    /// As a slice; by its pointer and its length.
    Slice,
}

/// An array or view bound to an array parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundArray<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) view: Strided<'a>,
    /// The size of the view's elements.
    pub(crate) element_bytes: u32,
    /// The device that alone has the elements, for a device array.
    pub(crate) home: Option<&'a Device>,
    /// The number of elements of the view.
    pub(crate) len: u64,
    /// Whether the view covers all elements of the array.
    pub(crate) is_whole: bool,
    pub(crate) access: Access,
    pub(crate) form: ArrayForm,
    /// Whether the elements lie row by row without gaps, as a flat parameter usually gets them.
    pub(crate) is_c_contiguous: bool,
}

impl<'a> BoundArgument<'a> {
    #[inline(always)]
    pub(in crate::launch) fn scalar<E: Element>(value: &'a E) -> Self {
        Self::Scalar { bytes: bytemuck::bytes_of(value), show: show::<E> }
    }

    /// Appends what the body needs besides the pointer: the bytes of a scalar; the length of a flat
    /// array (a slice), once more if compiled code gets it too; the number of dimensions, shape and
    /// strides of a sized array (an ndarray view).
    #[inline(always)]
    pub(in crate::launch) fn pack(&self, words: &mut Words) {
        match self {
            Self::Scalar { bytes, .. } => pack_scalar(bytes, words),
            Self::Array(BoundArray { len, form: ArrayForm::Flat, .. }) => words.push(*len),
            Self::Array(BoundArray { view, form: ArrayForm::Sized, .. }) => {
                pack_sized(view.shape, view.strides, words);
            }
            Self::Array(BoundArray { len, form: ArrayForm::Slice, .. }) => {
                words.extend_from_slice(&[*len, *len]);
            }
            Self::Temporary(_) => {}
        }
    }

    /// Whether this is an argument without rules about its axes, or a flat one that is row-major.
    #[inline]
    pub(in crate::launch) fn needs_no_axis_check(&self) -> bool {
        match self {
            Self::Scalar { .. } | Self::Temporary(_) => true,
            Self::Array(array) => array.is_c_contiguous || !array.is_flat(),
        }
    }

    /// The argument, formatted for a message.
    pub(in crate::launch) fn describe(&self) -> String {
        match self {
            Self::Scalar { bytes, show } => show(bytes),
            Self::Array(array) => {
                format!("{} of shape {:?}", array.storage.named(), array.view.shape)
            }
            Self::Temporary(view) => format!("a temporary of shape {:?}", view.shape),
        }
    }
}

impl<'a> BoundArray<'a> {
    /// An array bound to a sized parameter.
    #[inline(always)]
    pub(in crate::launch) fn sized(
        stored: StoredView<'a>,
        home: Option<&'a Device>,
        access: Access,
    ) -> Self {
        let StoredView { storage, view, element_bytes } = stored;
        Self {
            storage,
            view,
            element_bytes,
            home,
            len: view.len(),
            is_whole: stored.is_whole(),
            access,
            form: ArrayForm::Sized,
            is_c_contiguous: false,
        }
    }

    /// An array bound to a flat parameter.
    #[inline(always)]
    pub(in crate::launch) fn flat(
        view: StoredView<'a>,
        home: Option<&'a Device>,
        access: Access,
    ) -> Self {
        let is_c_contiguous = view.view.is_c_contiguous();
        Self { form: ArrayForm::Flat, is_c_contiguous, ..Self::sized(view, home, access) }
    }

    /// An array bound to a parameter that is a slice.
    #[inline(always)]
    pub(in crate::launch) fn slice(
        view: StoredView<'a>,
        home: Option<&'a Device>,
        access: Access,
    ) -> Self {
        Self { form: ArrayForm::Slice, ..Self::flat(view, home, access) }
    }

    /// Whether the body gets a slice.
    #[inline(always)]
    pub(in crate::launch) fn is_flat(&self) -> bool {
        self.form != ArrayForm::Sized
    }

    /// The view that was bound.
    pub(in crate::launch) fn stored(&self) -> StoredView<'a> {
        let Self { storage, view, element_bytes, .. } = *self;
        StoredView { storage, view, element_bytes }
    }

    /// The elements of the array that the view covers.
    pub(in crate::launch) fn selection(&self) -> Selection {
        if self.is_whole {
            return Selection::Whole;
        }
        self.storage.memory_order().select(&self.view, self.element_bytes)
    }

    /// The offset in bytes, from the start of the array's memory, of the element to which the
    /// body's pointer leads. For a flat argument (a slice) it is the lowest element; for a sized
    /// argument (an ndarray view) it is the element with index 0, 0, ...
    #[inline(always)]
    pub(in crate::launch) fn origin_bytes(&self) -> u64 {
        let is_first = !self.is_flat() || self.is_c_contiguous;
        let origin = if is_first { self.view.offset as u64 } else { self.view.lowest() };
        u64::from(self.element_bytes) * origin
    }
}

/// An array of a flat parameter that is passed for a sized one, by axes that lead to its elements.
#[derive(Clone, Debug)]
pub(crate) struct Rearranged<'a> {
    array: BoundArray<'a>,
    axes: Axes,
}

impl<'a> Rearranged<'a> {
    pub(crate) fn of(array: &BoundArray<'a>) -> Self {
        Self { array: *array, axes: Axes::of(&array.view) }
    }

    pub(crate) fn axes(&self) -> &Axes {
        &self.axes
    }

    pub(crate) fn axes_mut(&mut self) -> &mut Axes {
        &mut self.axes
    }

    /// The argument for a sized parameter with the same element and access.
    pub(crate) fn bound(&self) -> BoundArgument<'_> {
        let BoundArray { storage, element_bytes, home, access, .. } = self.array;
        let view = StoredView { storage, view: self.axes.strided(), element_bytes };
        BoundArgument::Array(BoundArray::sized(view, home, access))
    }
}

/// The array's name, and the shape.
impl fmt::Display for Rearranged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of shape {:?}", self.array.storage.named(), self.axes.shape())
    }
}

/// Appends a scalar, padded with zeros to whole words.
#[inline(always)]
fn pack_scalar(bytes: &[u8], words: &mut Words) {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        words.push(u64::from_ne_bytes(padded(&bytes)));
    } else if let Ok(bytes) = <[u8; 8]>::try_from(bytes) {
        words.push(u64::from_ne_bytes(bytes));
    } else {
        pack_bytes(bytes, words);
    }
}

fn pack_bytes(bytes: &[u8], words: &mut Words) {
    let (wholes, rest) = bytes.as_chunks::<8>();
    wholes.iter().for_each(|whole| words.push(u64::from_ne_bytes(*whole)));
    if !rest.is_empty() {
        words.push(u64::from_ne_bytes(padded(rest)));
    }
}

/// Up to eight bytes, followed by zeros.
#[inline(always)]
fn padded(bytes: &[u8]) -> [u8; 8] {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded
}

/// Appends one to three dimensions with a single capacity check.
#[inline]
fn pack_sized(shape: &[usize], strides: &[isize], words: &mut Words) {
    match (shape, strides) {
        (&[a], &[s]) => words.extend_from_slice(&[1, a as u64, s as u64]),
        (&[a, b], &[s, t]) => words.extend_from_slice(&[2, a as u64, b as u64, s as u64, t as u64]),
        (&[a, b, c], &[s, t, u]) => words
            .extend_from_slice(&[3, a as u64, b as u64, c as u64, s as u64, t as u64, u as u64]),
        _ => {
            words.push(shape.len() as u64);
            words.extend(shape.iter().map(|len| *len as u64));
            words.extend(strides.iter().map(|stride| *stride as u64));
        }
    }
}

/// The scalar whose bytes are in `words`.
pub(in crate::launch) fn scalar_from<E: Element>(words: &[u64]) -> E {
    bytemuck::pod_read_unaligned(&bytemuck::cast_slice::<u64, u8>(words)[..size_of::<E>()])
}

/// A number as Rust prints it; for another scalar, the name of its type.
fn show<E: Element>(bytes: &[u8]) -> String {
    let value: E = bytemuck::pod_read_unaligned(bytes);
    let value: &dyn std::any::Any = &value;
    macro_rules! number {
        ($($type:ty),+) => {
            $(if let Some(number) = value.downcast_ref::<$type>() {
                return number.to_string();
            })+
        };
    }
    number!(f32, f64, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);
    format!("a {}", ElementLayout::of::<E>().rust_name)
}
