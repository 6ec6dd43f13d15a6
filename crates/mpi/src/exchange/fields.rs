//! One or several arrays that take part in one exchange.

use std::any::type_name;

use resident::ndarray::{Dim, Dimension};
use resident::{Device, Element, PinnedArray, SmartArray, SmartView, SmartViewMut, Stream};

use super::messages::{FieldMessages, Maker};
use crate::error::{Error, Result};
use crate::nccl::Group;
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

/// Arrays of which the halos are exchanged: one array or view, as `&a`, or a tuple of up to four.
/// Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of which the halo can be exchanged",
    label = "expected `&array`, or a tuple of up to four such references",
    note = "arrays and views of `resident` with as many axes as the grid take part"
)]
pub trait Fields<const N: usize>: sealed::Fields<N> {
    /// A tuple of their element types.
    type Elements: Elements<N>;

    /// Checks that they have the shape of a part with its halo.
    #[doc(hidden)]
    fn check(&self, operation: &'static str, expected: [usize; N]) -> Result<()>;

    /// Lets MPI receive: to memory of `device`, if MPI can use it, for arrays with a copy there.
    #[doc(hidden)]
    fn receive(
        &self,
        messages: &mut <Self::Elements as Elements<N>>::Messages,
        device: &Device,
    ) -> Result<()>;

    /// Queues the copies to the messages, and waits for them.
    #[doc(hidden)]
    #[track_caller]
    fn pack(
        &self,
        messages: &mut <Self::Elements as Elements<N>>::Messages,
        stream: &Stream,
    ) -> Result<()>;
}

/// Arrays of which the halos are written: one array or view, as `&mut a`, or a tuple of up to four.
/// Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of which the halo can be written",
    label = "expected `&mut array`, or a tuple of up to four such references",
    note = "arrays and exclusive views of `resident` with as many axes as the grid take part"
)]
pub trait FieldsMut<const N: usize>: sealed::FieldsMut<N> {
    /// A tuple of their element types.
    type Elements: Elements<N>;

    #[doc(hidden)]
    fn check(&self, operation: &'static str, expected: [usize; N]) -> Result<()>;

    /// Waits for the messages of MPI, and queues the copies of what they bring.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    #[track_caller]
    fn unpack(
        &mut self,
        messages: &mut <Self::Elements as Elements<N>>::Messages,
        stream: &Stream,
        world: &World,
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
    pub trait Fields<const N: usize> {}
    pub trait FieldsMut<const N: usize> {}
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

impl<const N: usize, A: Field<N>> sealed::Fields<N> for A where Dim<[usize; N]>: Dimension {}

impl<const N: usize, A: FieldMut<N>> sealed::FieldsMut<N> for A where Dim<[usize; N]>: Dimension {}

impl<const N: usize, A: Field<N>> Fields<N> for A
where
    Dim<[usize; N]>: Dimension,
{
    type Elements = (A::Element,);

    fn check(&self, operation: &'static str, expected: [usize; N]) -> Result<()> {
        check(operation, 0, self.field().shape(), expected)
    }

    fn receive(
        &self,
        messages: &mut <Self::Elements as Elements<N>>::Messages,
        device: &Device,
    ) -> Result<()> {
        messages.0.receive(&self.field(), device)
    }

    #[track_caller]
    fn pack(
        &self,
        messages: &mut <Self::Elements as Elements<N>>::Messages,
        stream: &Stream,
    ) -> Result<()> {
        messages.0.pack(&self.field(), stream)?;
        messages.0.wait_packed()
    }
}

impl<const N: usize, A: FieldMut<N>> FieldsMut<N> for A
where
    Dim<[usize; N]>: Dimension,
{
    type Elements = (A::Element,);

    fn check(&self, operation: &'static str, expected: [usize; N]) -> Result<()> {
        check(operation, 0, self.field().shape(), expected)
    }

    #[allow(private_interfaces)]
    #[track_caller]
    fn unpack(
        &mut self,
        messages: &mut <Self::Elements as Elements<N>>::Messages,
        stream: &Stream,
        world: &World,
    ) -> Result<()> {
        let deadline = world.deadline();
        messages.0.unpack(&mut self.field_mut(), stream, (world, deadline))?;
        messages.0.wait_sent(deadline)
    }
}

/// Implements the traits for tuples.
macro_rules! several {
    ($($array:ident $element:ident $index:tt),+) => {
        impl<$($element: Element),+> sealed::Elements for ($($element,)+) {}
        impl<const N: usize, $($array: Field<N>),+> sealed::Fields<N> for ($($array,)+) where
            Dim<[usize; N]>: Dimension
        {
        }

        impl<const N: usize, $($array: FieldMut<N>),+> sealed::FieldsMut<N> for ($($array,)+) where
            Dim<[usize; N]>: Dimension
        {
        }

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

        impl<const N: usize, $($array: Field<N>),+> Fields<N> for ($($array,)+)
        where
            Dim<[usize; N]>: Dimension,
        {
            type Elements = ($($array::Element,)+);

            fn check(&self, operation: &'static str, expected: [usize; N]) -> Result<()> {
                $(check(operation, $index, self.$index.field().shape(), expected)?;)+
                Ok(())
            }

            fn receive(
                &self,
                messages: &mut <Self::Elements as Elements<N>>::Messages,
                device: &Device,
            ) -> Result<()> {
                $(messages.$index.receive(&self.$index.field(), device)?;)+
                Ok(())
            }

            #[track_caller]
            fn pack(
                &self,
                messages: &mut <Self::Elements as Elements<N>>::Messages,
                stream: &Stream,
            ) -> Result<()> {
                $(messages.$index.pack(&self.$index.field(), stream)?;)+
                $(messages.$index.wait_packed()?;)+
                Ok(())
            }
        }

        impl<const N: usize, $($array: FieldMut<N>),+> FieldsMut<N> for ($($array,)+)
        where
            Dim<[usize; N]>: Dimension,
        {
            type Elements = ($($array::Element,)+);

            fn check(&self, operation: &'static str, expected: [usize; N]) -> Result<()> {
                $(check(operation, $index, self.$index.field().shape(), expected)?;)+
                Ok(())
            }

            #[allow(private_interfaces)]
            #[track_caller]
            fn unpack(
                &mut self,
                messages: &mut <Self::Elements as Elements<N>>::Messages,
                stream: &Stream,
                world: &World,
            ) -> Result<()> {
                let deadline = world.deadline();
                $(
                    let field = &mut self.$index.field_mut();
                    messages.$index.unpack(field, stream, (world, deadline))?;
                )+
                $(messages.$index.wait_sent(deadline)?;)+
                Ok(())
            }
        }
    };
}

several!(A T 0);
several!(A T 0, B U 1);
several!(A T 0, B U 1, C V 2);
several!(A T 0, B U 1, C V 2, D W 3);
