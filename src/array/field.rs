//! Views of one field of each record of an array: the macros, and what they expand to.

use std::marker::PhantomData;

use ndarray::Dimension;

use super::layout::Layout;
use super::view::View;
use crate::element::{Element, is_number};

/// A view of one field of an array of records: `field!(array, Record, field)`. Reading it moves
/// only the bytes of that field, as reading a column moves only that column.
///
/// The array is a [`SmartArray`](crate::SmartArray), a [`DeviceArray`](crate::DeviceArray) or a
/// view of one, with any number of axes, none included. It is borrowed as by `slice`. The result is
/// an ordinary view of the array's shape, whose element type is that of the field: a
/// [`SmartView`](crate::SmartView) or [`DeviceView`](crate::DeviceView). Each field has its own
/// state: one can be newest on a device while another is newest on the host, and launches that use
/// different fields are not ordered against each other. A field of a field is `position.x`, and an
/// item of an array is `position[0]`, as the last step. NumPy's `array["mass"]` and the fields of
/// Numba's `DeviceRecord` are like this.
///
/// A kernel takes the view for a sized parameter, such as `In<f32, Ix1>`: its elements are a record
/// apart, so that a flat one, `In<f32>`, is [`NotContiguous`](crate::Error::NotContiguous).
///
/// ```
/// use resident::{Device, Element, Grid, In, Kernel, Out, SmartArray, field, field_mut};
/// use resident::ndarray::Ix1;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Element)]
/// struct Particle { position: [f32; 3], mass: f32 }
///
/// let square = Kernel::<(In<f32, Ix1>, Out<f32, Ix1>)>::new("square")
///     .host(|_grid, (x, mut y)| y.assign(&x.mapv(|x| x * x)));
/// let _here = Device::cpu().enter();
/// let mut cloud = SmartArray::from(vec![Particle { position: [1.0; 3], mass: 2.0 }; 1000]);
/// let mut squares = SmartArray::uninit(1000);
/// square.launch(Grid::cover(1000), (&field!(cloud, Particle, mass), &mut squares))?;
/// assert_eq!(cloud.traffic().to_device.bytes, 4 * 1000);            // of 16,000
///
/// field_mut!(cloud, Particle, mass).gpu_mut()?;                     // a kernel would write it
/// assert_eq!(field!(cloud, Particle, position[2]).host()?.sum(), 1000.0);
/// assert_eq!(cloud.traffic().to_host.bytes, 0);                     // no position was stale
/// # Ok::<(), resident::Error>(())
/// ```
///
/// Strides count elements, so the program does not compile unless the record's size and the field's
/// place in it are multiples of the field's size. If they are not, view the parts of the field, or
/// pad the record. This is found when the program is built; `cargo check` does not find it.
///
/// ```compile_fail,E0080
/// # use resident::{Element, SmartArray, field};
/// # #[repr(C)]
/// # #[derive(Clone, Copy, Element)]
/// # struct Particle { position: [f32; 3], mass: f32 }
/// let cloud = SmartArray::<Particle, _>::zeros(1000);
/// let positions = field!(cloud, Particle, position);   // 12 bytes of 16; position[0] compiles
/// ```
///
/// The field is checked against the array: its type is that of the field in `Record`, and the
/// array's elements must be `Record`s.
#[macro_export]
macro_rules! field {
    (@of $record:ty, $first:tt $(. $field:tt)* [$index:expr]) => {
        $crate::internal::Field::<$record, _>::item(
            ::core::mem::offset_of!($record, $first $(. $field)*),
            $index,
            |record: $record| record.$first $(. $field)*,
        )
    };
    (@of $record:ty, $first:tt $(. $field:tt)*) => {
        $crate::internal::Field::<$record, _>::new(
            ::core::mem::offset_of!($record, $first $(. $field)*),
            |record: $record| record.$first $(. $field)*,
        )
    };
    ($array:expr, $record:ty, $first:tt $(. $field:tt)* $([$index:expr])? $(,)?) => {
        $array.__field(const { $crate::field!(@of $record, $first $(. $field)* $([$index])?) })
    };
}

/// An exclusive view of one field of an array of records, or of several at once: the mutable
/// counterpart of [`field!`](crate::field!). The result is a [`SmartViewMut`](crate::SmartViewMut)
/// or [`DeviceViewMut`](crate::DeviceViewMut). Writing it makes only the bytes of the field stale
/// elsewhere.
///
/// Several fields, up to six, give a tuple of views that may be used at once, as
/// `multi_slice_mut` does. They must not overlap, which is checked when the program is compiled.
///
/// ```
/// use resident::ndarray::Ix1;
/// use resident::{Device, Element, Grid, In, InOut, Kernel, SmartArray, Validity, field_mut};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Element)]
/// struct Body { place: f32, speed: f32, mass: f64 }
///
/// let step = Kernel::<(f32, In<f32, Ix1>, InOut<f32, Ix1>)>::new("step")
///     .host(|_grid, (time, speed, mut place)| place.scaled_add(time, &speed));
/// let _here = Device::cpu().enter();
/// let mut bodies = SmartArray::from(vec![Body { place: 1.0, speed: 4.0, mass: 1.0 }; 100]);
/// let (mut place, speed) = field_mut!(bodies, Body, place, speed);
/// step.launch(Grid::cover(100), (0.5, &speed, &mut place))?;
/// assert_eq!(bodies.residency().host(), Validity::Partial { valid_bytes: 12 * 100 });
/// assert_eq!(bodies.get(7)?.place, 3.0);
///
/// field_mut!(bodies, Body, mass).fill(2.0)?;
/// assert_eq!(bodies.get(7)?.mass, 2.0);
/// # Ok::<(), resident::Error>(())
/// ```
#[macro_export]
macro_rules! field_mut {
    ($array:expr, $record:ty, $first:tt $(. $field:tt)* $([$index:expr])? $(,)?) => {
        $array.__field_mut(const { $crate::field!(@of $record, $first $(. $field)* $([$index])?) })
    };
    ($array:expr, $record:ty, $($first:tt $(. $field:tt)* $([$index:expr])?),+ $(,)?) => {
        $array.__fields_mut(
            ($(const { $crate::field!(@of $record, $first $(. $field)* $([$index])?) },)+),
            const {
                $crate::internal::Disjoint::check(&[
                    $($crate::field!(@of $record, $first $(. $field)* $([$index])?).bytes()),+
                ])
            },
        )
    };
}

/// The field of type `F` at one place in records of type `R`. Every place within the record is
/// safe: the bytes of an element may be read and written as any element type.
#[derive(Debug)]
pub struct Field<R, F> {
    /// The place, counted in fields.
    index: usize,
    types: PhantomData<fn(R) -> F>,
}

/// Says that fields were found not to overlap when the program was compiled.
#[derive(Debug)]
pub struct Disjoint(());

impl<R, F> Clone for Field<R, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, F> Copy for Field<R, F> {}

impl<R: Element, F: Element> Field<R, F> {
    /// The number of fields that would fill a record.
    const PER_RECORD: usize = size_of::<R>() / size_of::<F>();

    /// The type of `_get`, which reads the field, is the field's.
    #[must_use]
    pub const fn new(offset_bytes: usize, _get: fn(R) -> F) -> Self {
        Self::at(offset_bytes)
    }

    const fn at(offset_bytes: usize) -> Self {
        let (record, field) = (size_of::<R>(), size_of::<F>());
        assert!(field > 0, "field!: a field without bytes has no view");
        assert!(
            align_of::<F>() <= align_of::<R>(),
            "field!: the record is packed, so the field is not aligned; copy the records with \
             `host` or `to_vec`, or give the record the alignment of its fields"
        );
        assert!(
            record.is_multiple_of(field),
            "field!: the record's size is no multiple of the field's size, so a view of the field \
             has no stride; view a part of the field (`position[0]`, `position.x`), or pad the \
             record"
        );
        assert!(
            offset_bytes.is_multiple_of(field) && offset_bytes < record,
            "field!: the field does not start at a multiple of its size, so a view of the field \
             has no offset; view a part of the field (`position[0]`, `position.x`), or move it"
        );
        Self { index: offset_bytes / field, types: PhantomData }
    }

    /// An item of a field that is an array.
    #[must_use]
    pub const fn item<const N: usize>(
        offset_bytes: usize,
        index: usize,
        _get: fn(R) -> [F; N],
    ) -> Self {
        assert!(index < N, "field!: the index is beyond the end of the field");
        Self::at(offset_bytes + index * size_of::<F>())
    }

    /// The bytes of a record that the field takes: the first, and the one after the last.
    #[must_use]
    pub const fn bytes(self) -> (usize, usize) {
        (self.index * size_of::<F>(), (self.index + 1) * size_of::<F>())
    }

    /// The view of this field, given one of the records.
    pub(super) fn view<'a, H: Copy, D: Dimension>(
        self,
        records: View<'a, H, &'a R, D>,
    ) -> View<'a, H, &'a F, D> {
        let (storage, home, records) = records.into_parts();
        View::new(storage, home, self.of(&records))
    }

    /// As [`view`](Self::view), exclusive.
    pub(super) fn view_mut<'a, H: Copy, D: Dimension>(
        self,
        records: View<'a, H, &'a mut R, D>,
    ) -> View<'a, H, &'a mut F, D> {
        let (storage, home, records) = records.into_parts();
        View::new(storage, home, self.of(&records))
    }

    fn of<D: Dimension>(self, records: &Layout<D>) -> Layout<D> {
        // The macros cannot name a part of a number, whose bytes no array tracks apart.
        assert!(Self::PER_RECORD == 1 || !is_number::<R>(), "field!: a number has no fields");
        records.field(Self::PER_RECORD, self.index)
    }
}

impl Disjoint {
    /// Given the bytes of a record that each field takes.
    #[must_use]
    pub const fn check(fields: &[(usize, usize)]) -> Self {
        assert!(are_disjoint(fields), "field_mut!: two of the fields overlap");
        Self(())
    }
}

const fn are_disjoint(fields: &[(usize, usize)]) -> bool {
    let mut one = 0;
    while one < fields.len() {
        let mut other = one + 1;
        while other < fields.len() {
            if fields[one].0 < fields[other].1 && fields[other].0 < fields[one].1 {
                return false;
            }
            other += 1;
        }
        one += 1;
    }
    true
}

/// A tuple of two to six fields. Sealed, since only tuples in this module have it.
pub trait FieldTuple<R: Element, D: Dimension>: sealed::Sealed {
    /// A tuple with a view for each field, where `H` is the home of the elements.
    type Output<'a, H>;

    /// The views of these fields.
    fn views<'a, H: Copy>(self, records: View<'a, H, &'a mut R, D>) -> Self::Output<'a, H>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! field_tuple {
    ($($field:ident $index:tt),+) => {
        impl<R, $($field),+> sealed::Sealed for ($(Field<R, $field>,)+) {}

        impl<R: Element, D: Dimension, $($field: Element),+> FieldTuple<R, D>
            for ($(Field<R, $field>,)+)
        {
            type Output<'a, H> = ($(View<'a, H, &'a mut $field, D>,)+);

            fn views<'a, H: Copy>(self, records: View<'a, H, &'a mut R, D>) -> Self::Output<'a, H> {
                // The fields that were checked when the program was compiled may be others.
                assert!(are_disjoint(&[$(self.$index.bytes()),+]), "fields overlap");
                let (storage, home, records) = records.into_parts();
                ($(View::new(storage, home, self.$index.of(&records)),)+)
            }
        }
    };
}

field_tuple!(F0 0, F1 1);
field_tuple!(F0 0, F1 1, F2 2);
field_tuple!(F0 0, F1 1, F2 2, F3 3);
field_tuple!(F0 0, F1 1, F2 2, F3 3, F4 4);
field_tuple!(F0 0, F1 1, F2 2, F3 3, F4 4, F5 5);
