//! Views of the same bytes as elements of another type.

use ndarray::Dimension;

use super::layout::{AxisLayout, Layout, fits};
use super::view::View;
use crate::element::Element;
use crate::error::{AtCall, CalledAt, Error, Result};
use crate::storage::Storage;
use resident_backend::call_site::CallSite;
use resident_backend::short_type;

impl<'a, H: Copy, T: Element, D: Dimension> View<'a, H, &'a T, D> {
    pub(super) fn reinterpreted<U: Element>(self, site: CallSite) -> Result<View<'a, H, &'a U, D>> {
        let (storage, home, layout) = self.into_parts();
        let layout = layout.reinterpreted::<T, U>(storage).at(site)?;
        Ok(View::new(storage, home, layout))
    }
}

impl<'a, H: Copy, T: Element, D: Dimension> View<'a, H, &'a mut T, D> {
    pub(super) fn reinterpreted_mut<U: Element>(
        self,
        site: CallSite,
    ) -> Result<View<'a, H, &'a mut U, D>> {
        let (storage, home, layout) = self.into_parts();
        let layout = layout.reinterpreted::<T, U>(storage).at(site)?;
        Ok(View::new(storage, home, layout))
    }
}

impl<D: Dimension> Layout<D> {
    /// The same bytes, as elements of type `U`.
    fn reinterpreted<T: Element, U: Element>(&self, storage: &Storage) -> Result<Self> {
        let refused = |expected: String, instead: String| Error::Shape {
            call: CalledAt::UNKNOWN,
            operation: format!("{} as elements of type {}", storage.named(), name::<U>()),
            expected,
            seen: format!(
                "shape {:?}, strides {:?} and offset {} of {}",
                self.shape(),
                self.strides(),
                self.offset(),
                name::<T>()
            ),
            instead: instead.into(),
        };
        if !are_related::<U>(storage.memory_order().unit_bytes() as usize) {
            let element = storage.element_name();
            return Err(refused(
                format!("elements as large as a whole number of {element}, or the reverse,"),
                format!("reinterpret an array of other elements than {element}"),
            ));
        }
        let layout = self.scaled::<T, U>().ok_or_else(|| {
            refused(
                format!(
                    "elements next to each other along the last axis, and {} everywhere",
                    whole::<T, U>()
                ),
                String::from(
                    "reinterpret a part for which this holds, `t()` of column-major elements, or \
                     the copy that `to_contiguous()` makes",
                ),
            )
        })?;
        if !storage.is_aligned(align_of::<U>()) {
            return Err(refused(
                format!("memory that is aligned to {} bytes", align_of::<U>()),
                format!(
                    "make the array of elements of type {}, and reinterpret it as {}",
                    name::<U>(),
                    name::<T>()
                ),
            ));
        }
        Ok(layout)
    }

    /// With the last axis in elements of type `U`, and all distances too. `None` if these are no
    /// whole numbers, or the elements along the last axis are not next to each other.
    fn scaled<T, U>(&self) -> Option<Self> {
        let (from, to) = (size_of::<T>(), size_of::<U>());
        let whole = |count: usize| {
            let bytes = count.checked_mul(from)?;
            bytes.is_multiple_of(to).then_some(bytes / to)
        };
        let Some(last) = self.shape().len().checked_sub(1) else {
            return (from == to).then(|| self.clone());
        };
        let mut scaled = self.clone();
        for axis in 0..last {
            let AxisLayout { len, stride } = self.axis(axis);
            if len > 1 {
                let stride = whole(stride.unsigned_abs())? as isize * stride.signum();
                scaled.set_axis(axis, AxisLayout { len, stride });
            }
        }
        let AxisLayout { len, stride } = self.axis(last);
        if len > 1 && stride != 1 && self.len() > 0 {
            return None;
        }
        scaled.set_axis(last, AxisLayout { len: whole(len)?, stride: 1 });
        let offset = whole(self.offset())?;
        fits::<U>(scaled.shape()).then(|| scaled.with_offset_unless_empty(offset))
    }
}

/// Whether elements of type `U` are whole numbers of units, or units of them.
fn are_related<U>(unit_bytes: usize) -> bool {
    let len_bytes = size_of::<U>();
    let are_related = |larger: usize, smaller| larger.is_multiple_of(smaller);
    let is_sized = len_bytes > 0 && unit_bytes > 0;
    is_sized && (are_related(len_bytes, unit_bytes) || are_related(unit_bytes, len_bytes))
}

/// Which lengths and strides can be scaled.
fn whole<T, U>() -> String {
    let (from, to) = (size_of::<T>(), size_of::<U>());
    format!("lengths, strides and offsets of {from} bytes that are multiples of {to} bytes")
}

/// A type's name without its path.
fn name<T>() -> String {
    short_type(std::any::type_name::<T>())
}
