//! One or several arrays that take part in one exchange.

use std::any::type_name;
use std::time::Instant;

use resident::ndarray::{Dim, Dimension};
use resident::{Element, PinnedArray, SmartArray, SmartView, SmartViewMut, Stream};

use super::messages::{FINISH, FieldMessages, Maker};
use crate::error::{Error, Result};
use crate::nccl::Group;
use crate::packed::is_on_host;
use crate::world::World;

/// The element types of the arrays of an exchange: a tuple of one to four. Sealed.
pub trait Elements<const N: usize>: sealed::Elements {
    /// The messages of all arrays.
    #[doc(hidden)]
    type Messages;

    /// Names and sizes: types of one name may have several sizes.
    #[doc(hidden)]
    fn description() -> String;

    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn messages(maker: &mut Maker<'_, N>) -> Result<Self::Messages>;

    /// Waits until all are packed.
    #[doc(hidden)]
    #[track_caller]
    fn wait_packed(messages: &Self::Messages) -> Result<()>;

    /// Hands the messages to MPI.
    #[doc(hidden)]
    #[track_caller]
    fn send(messages: &mut Self::Messages) -> Result<()>;

    /// Adds the messages to those that NCCL gets together.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn add_to<'a>(messages: &'a mut Self::Messages, group: &mut Group<'a>) -> Result<()>;

    /// Records what NCCL sends.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    #[track_caller]
    fn record_sent(messages: &Self::Messages, world: &World);
}

/// The messages of arrays.
type Messages<A, const N: usize> = <<A as Arrays<N>>::Elements as Elements<N>>::Messages;

/// One array or a tuple of arrays, read or written.
#[doc(hidden)]
pub trait Arrays<const N: usize>: sealed::Arrays<N> {
    /// A tuple of their element types.
    type Elements: Elements<N>;

    /// Whether all of them are on the host only.
    fn are_on_host(&self) -> bool;

    /// Checks that they have the shape of a part with its halo.
    fn check(&self, operation: &'static str, expected: [usize; N]) -> Result<()>;
}

/// Arrays of which the halos are exchanged: one array or view, as `&a`, or a tuple of up to four.
/// Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of which the halo can be exchanged",
    label = "expected `&array`, or a tuple of up to four such references",
    note = "arrays and views of `resident` with as many axes as the grid take part"
)]
pub trait Fields<const N: usize>: Arrays<N> {
    /// Begins the receives, and queues the copies to the messages.
    #[doc(hidden)]
    #[track_caller]
    fn prepare(&self, messages: &mut Messages<Self, N>, stream: &Stream) -> Result<()>;
}

/// Arrays of which the halos are written: one array or view, as `&mut a`, or a tuple of up to four.
/// Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of which the halo can be written",
    label = "expected `&mut array`, or a tuple of up to four such references",
    note = "arrays and exclusive views of `resident` with as many axes as the grid take part"
)]
pub trait FieldsMut<const N: usize>: Fields<N> {
    /// Waits for the messages, and queues the copies of what they bring.
    #[doc(hidden)]
    #[track_caller]
    #[allow(private_interfaces)]
    fn unpack(
        &mut self,
        messages: &mut Messages<Self, N>,
        stream: &Stream,
        world: &World,
    ) -> Result<()>;

    /// The whole exchange, of arrays that are on the host only.
    #[doc(hidden)]
    #[track_caller]
    #[allow(private_interfaces)]
    fn update(
        &mut self,
        world: &World,
        messages: &mut Messages<Self, N>,
        deadline: Instant,
    ) -> Result<()>;
}

/// One array or view. Sealed.
pub trait Field<const N: usize>: sealed::Field<N>
where
    Dim<[usize; N]>: Dimension,
{
    #[doc(hidden)]
    type Element: Element;

    #[doc(hidden)]
    fn field(&self) -> SmartView<'_, Self::Element, Dim<[usize; N]>>;
}

/// One array or view that is written. Sealed.
pub trait FieldMut<const N: usize>: Field<N>
where
    Dim<[usize; N]>: Dimension,
{
    #[doc(hidden)]
    fn field_mut(&mut self) -> SmartViewMut<'_, Self::Element, Dim<[usize; N]>>;
}

mod sealed {
    pub trait Elements {}
    pub trait Field<const N: usize> {}
    pub trait Arrays<const N: usize> {}
}

/// Implements [`Field`] for references to arrays and views.
macro_rules! field {
    ($($reference:ty),+) => {$(
        impl<T: Element, const N: usize> sealed::Field<N> for $reference where
            Dim<[usize; N]>: Dimension
        {
        }

        impl<T: Element, const N: usize> Field<N> for $reference
        where
            Dim<[usize; N]>: Dimension,
        {
            type Element = T;

            fn field(&self) -> SmartView<'_, T, Dim<[usize; N]>> {
                self.view()
            }
        }
    )+};
}

/// Implements [`FieldMut`] for exclusive references.
macro_rules! field_mut {
    ($($reference:ty),+) => {$(
        impl<T: Element, const N: usize> FieldMut<N> for $reference
        where
            Dim<[usize; N]>: Dimension,
        {
            fn field_mut(&mut self) -> SmartViewMut<'_, T, Dim<[usize; N]>> {
                self.view_mut()
            }
        }
    )+};
}

field!(&SmartArray<T, Dim<[usize; N]>>, &mut SmartArray<T, Dim<[usize; N]>>);
field!(&SmartView<'_, T, Dim<[usize; N]>>, &SmartViewMut<'_, T, Dim<[usize; N]>>);
field!(&mut SmartViewMut<'_, T, Dim<[usize; N]>>);
field!(&PinnedArray<T, Dim<[usize; N]>>, &mut PinnedArray<T, Dim<[usize; N]>>);
field_mut!(&mut SmartArray<T, Dim<[usize; N]>>, &mut SmartViewMut<'_, T, Dim<[usize; N]>>);
field_mut!(&mut PinnedArray<T, Dim<[usize; N]>>);

fn check<const N: usize>(
    operation: &'static str,
    index: usize,
    shape: &[usize],
    expected: [usize; N],
) -> Result<()> {
    if shape == expected {
        return Ok(());
    }
    let text = format!(
        "array {index} has shape {shape:?}, expected {expected:?}: this process's part with its \
         halo; make arrays by `array` or `zeros` of the grid"
    );
    Err(Error::Argument { operation, text })
}

/// Implements the traits of arrays for a type, of which each array is an expression.
macro_rules! arrays {
    (
        [$($parameter:ident),+] $type:ty:
        $(($self:ident => $array:expr, $array_type:ident, $index:tt))+
    ) => {
        impl<const N: usize, $($parameter: Field<N>),+> sealed::Arrays<N> for $type where
            Dim<[usize; N]>: Dimension
        {
        }

        impl<const N: usize, $($parameter: Field<N>),+> Arrays<N> for $type
        where
            Dim<[usize; N]>: Dimension,
        {
            type Elements = ($($array_type::Element,)+);

            fn are_on_host(&self) -> bool {
                true $(&& {
                    let $self = self;
                    is_on_host(&$array.field())
                })+
            }

            fn check(&self, operation: &'static str, expected: [usize; N]) -> Result<()> {
                $(
                    let $self = self;
                    check(operation, $index, $array.field().shape(), expected)?;
                )+
                Ok(())
            }
        }

        impl<const N: usize, $($parameter: Field<N>),+> Fields<N> for $type
        where
            Dim<[usize; N]>: Dimension,
        {
            #[track_caller]
            fn prepare(&self, messages: &mut Messages<Self, N>, stream: &Stream) -> Result<()> {
                $(
                    let $self = self;
                    messages.$index.prepare(&$array.field(), stream)?;
                )+
                Ok(())
            }
        }

        impl<const N: usize, $($parameter: FieldMut<N>),+> FieldsMut<N> for $type
        where
            Dim<[usize; N]>: Dimension,
        {
            #[allow(private_interfaces)]
            #[track_caller]
            fn unpack(
                &mut self,
                messages: &mut Messages<Self, N>,
                stream: &Stream,
                world: &World,
            ) -> Result<()> {
                let deadline = world.deadline();
                $(
                    let $self = &mut *self;
                    messages.$index.unpack(&mut $array.field_mut(), stream, world, deadline)?;
                )+
                $(messages.$index.wait_sent(FINISH, deadline)?;)+
                Ok(())
            }

            #[allow(private_interfaces)]
            #[track_caller]
            fn update(
                &mut self,
                world: &World,
                messages: &mut Messages<Self, N>,
                deadline: Instant,
            ) -> Result<()> {
                $(
                    let $self = &mut *self;
                    messages.$index.update(world, &mut $array.field_mut(), deadline)?;
                )+
                Ok(())
            }
        }
    };
}

/// Implements the traits of element types, and those of arrays for tuples.
macro_rules! tuples {
    ($($array:ident $element:ident $index:tt),+) => {
        impl<$($element: Element),+> sealed::Elements for ($($element,)+) {}

        impl<const N: usize, $($element: Element),+> Elements<N> for ($($element,)+)
        where
            Dim<[usize; N]>: Dimension,
        {
            type Messages = ($(FieldMessages<$element, N>,)+);

            fn description() -> String {
                let elements = [$((type_name::<$element>(), size_of::<$element>())),+];
                elements.map(|(name, bytes)| format!("{name} ({bytes} bytes)")).join(", ")
            }

            #[allow(private_interfaces)]
            fn messages(maker: &mut Maker<'_, N>) -> Result<Self::Messages> {
                Ok(($(maker.field::<$element>()?,)+))
            }

            #[track_caller]
            fn wait_packed(messages: &Self::Messages) -> Result<()> {
                $(messages.$index.wait_packed()?;)+
                Ok(())
            }

            #[track_caller]
            fn send(messages: &mut Self::Messages) -> Result<()> {
                $(messages.$index.send()?;)+
                Ok(())
            }

            #[allow(private_interfaces)]
            fn add_to<'a>(messages: &'a mut Self::Messages, group: &mut Group<'a>) -> Result<()> {
                $(messages.$index.add_to(group)?;)+
                Ok(())
            }

            #[allow(private_interfaces)]
            #[track_caller]
            fn record_sent(messages: &Self::Messages, world: &World) {
                $(messages.$index.record_sent(world);)+
            }
        }

        arrays!([$($array),+] ($($array,)+): $((all => all.$index, $array, $index))+);
    };
}

arrays!([A] A: (array => array, A, 0));
tuples!(A T 0);
tuples!(A T 0, B U 1);
tuples!(A T 0, B U 1, C V 2);
tuples!(A T 0, B U 1, C V 2, D W 3);
