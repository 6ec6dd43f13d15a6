//! Temporaries: arrays that live within a chain.

#![allow(
    private_bounds,
    private_interfaces,
    reason = "hidden methods of sealed traits name private types"
)]

use std::fmt;
use std::marker::PhantomData;

use ndarray::{Dimension, IxDyn, ShapeBuilder};

use super::super::arguments::Bind;
use super::super::arguments::bound::{BoundArgument, BoundArray};
use crate::array::{AnyView, Layout, SmartArray, WithDimension};
use crate::element::Element;
use crate::error::Result;
use crate::storage::Storage;
use resident_backend::call_site::CallSite;
use resident_core::Access;
use resident_core::layout::Strided;

/// An array that lives within a [`Chain`](crate::Chain): a parameter of its signature, and the
/// argument for it, which is a shape without contents. Each replay must write it before reading it.
///
/// The chain allocates its memory on the device at the first replay with arguments of these shapes
/// on a stream, and keeps it for later ones. If the device is full, the memory gives way to other
/// arrays while no replay uses it. The host gets no copy then, but of the temporary that
/// [`Recorder::repeat_while`](super::Recorder::repeat_while) names.
///
/// ```
/// use resident::{SmartArray, Temp, ndarray::Ix2};
///
/// let image = SmartArray::<u8, _>::zeros((480, 640));
/// let (one, other) = (Temp::<f32, _>::like(&image), Temp::<f32, Ix2>::shape((480, 640)));
/// assert_eq!(format!("{one:?}"), format!("{other:?}"));
/// ```
pub struct Temp<T, D> {
    layout: Layout<D>,
    element: PhantomData<fn() -> T>,
}

impl<T: Element, D: Dimension> Temp<T, D> {
    /// A temporary in the shape and axis order of another array or view, of any element type.
    #[must_use]
    pub fn like<U, A>(other: &A) -> Self
    where
        U: Element,
        A: WithDimension<U, D> + AnyView<U>,
    {
        let Strided { shape, strides, .. } = other.erased().view;
        let mut dim = D::zeros(shape.len());
        dim.slice_mut().copy_from_slice(shape);
        Self { layout: Layout::new(dim, strides, 0).packed(), element: PhantomData }
    }

    /// A temporary of this shape, row-major, or column-major with `.f()`.
    ///
    /// # Panics
    ///
    /// As [`SmartArray::uninit`](crate::SmartArray::uninit).
    #[track_caller]
    #[must_use]
    pub fn shape(shape: impl ShapeBuilder<Dim = D>) -> Self {
        Self { layout: Layout::of_shape::<T>(shape), element: PhantomData }
    }
}

impl<T, D: Copy> Copy for Temp<T, D> {}

impl<T, D: Clone> Clone for Temp<T, D> {
    fn clone(&self) -> Self {
        Self { layout: self.layout.clone(), element: PhantomData }
    }
}

impl<T, D: Dimension> fmt::Debug for Temp<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Temp({:?})", self.layout.shape())
    }
}

impl<T: Element, D: Dimension> Bind<Self> for Temp<T, D> {
    fn bind(&self) -> BoundArgument<'_> {
        BoundArgument::Temporary(self.layout.strided())
    }
}

impl<T: Element, D: Dimension> Bind<Temp<T, D>> for &Temp<T, D> {
    fn bind(&self) -> BoundArgument<'_> {
        BoundArgument::Temporary(self.layout.strided())
    }
}

/// The memory of a temporary, with its type erased.
pub(super) type Temporary = Box<dyn TemporaryArray>;

pub(super) trait TemporaryArray: Send + Sync {
    fn storage(&self) -> &Storage;
    fn bound(&self) -> BoundArray<'_>;
}

impl<T: Element> TemporaryArray for SmartArray<T, IxDyn> {
    fn storage(&self) -> &Storage {
        self.erased().storage
    }

    fn bound(&self) -> BoundArray<'_> {
        BoundArray::sized(self.erased(), None, Access::Overwrite)
    }
}

/// Who reads a temporary.
#[derive(Clone, Copy)]
pub(super) enum ReadBy {
    /// Its contents end with the replay: a full device discards them.
    Steps,
    /// Also the host, after the replay, to see whether there are to be more.
    Host,
}

/// Makes an array for a temporary. It has no memory yet.
pub(super) fn allocate<T: Element>(
    view: &Strided<'_>,
    read_by: ReadBy,
    site: CallSite,
) -> Result<Temporary> {
    let layout = Layout::new(IxDyn(view.shape), view.strides, view.offset);
    let array = match read_by {
        ReadBy::Steps => SmartArray::<T, IxDyn>::temporary_in(&layout, site)?,
        ReadBy::Host => SmartArray::uninit_in(&layout, site)?,
    };
    Ok(Box::new(array))
}
