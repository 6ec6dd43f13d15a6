//! Slices as Rust kernels get them: two arguments, a pointer and a length.

#![allow(private_interfaces, reason = "hidden methods of sealed traits name private types")]

use std::marker::PhantomData;

use super::arguments::Bind;
use super::arguments::bound::{BoundArgument, BoundArray};
use super::arguments::unpack::Unpacker;
use super::each::Walked;
use super::signature::{Described, Flat, In, InOut, Out, Parameter, sealed};
use crate::array::{AnyView, AnyViewMut};
use crate::element::Element;
use resident_backend::ParameterLayout;

/// A flat array that is passed with its length, as two arguments of the compiled kernel: a pointer,
/// and the number of elements as a `u64`. `Slice<In<T>>`, `Slice<InOut<T>>` and `Slice<Out<T>>`
/// otherwise are [`In<T>`](In), [`InOut<T>`](InOut) and [`Out<T>`](Out): what may be passed, what
/// moves, and the slice that the host body gets are the same.
///
/// Kernels that NVIDIA's cuda-oxide compiles get `&[T]` and `DisjointSlice<T>` in this way. In CUDA
/// C a `Slice<In<f32>>` is two parameters: `const float *x, unsigned long long x_len`. The guide
/// has a [kernel in Rust](crate::guide::kernels_in_rust).
///
/// ```
/// use resident::launch::Slice;
/// use resident::{CudaSource, Device, Grid, In, Kernel, Out, SmartArray};
///
/// const DOUBLE: &str = r#"
/// extern "C" __global__ void double_all(const float *x, unsigned long long x_len,
///                                       float *y, unsigned long long y_len) {
///     unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
///     if (i < x_len && i < y_len)
///         y[i] = 2.0f * x[i];
/// }"#;
/// let kernel = Kernel::<(Slice<In<f32>>, Slice<Out<f32>>)>::new("double_all")
///     .host(|_grid, (x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x));
/// // SAFETY: the kernel accesses only the elements whose number it gets.
/// let kernel = unsafe { kernel.cuda(CudaSource::c(DOUBLE)) };
/// assert!(kernel.prototype().ends_with("float *y, unsigned long long y_len)"));
///
/// let _here = Device::cpu().enter();
/// let x = SmartArray::from(vec![1.0_f32, 2.0, 3.0]);
/// let mut y = SmartArray::<f32, _>::uninit(3);
/// kernel.launch(Grid::cover(3), (&x, &mut y))?;
/// assert_eq!(y.to_vec()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Debug)]
pub struct Slice<P>(PhantomData<fn() -> P>);

macro_rules! slice_parameter {
    ($parameter:ident, $borrow:ty, $any_view:ident) => {
        impl<T: Element> sealed::Sealed for Slice<$parameter<T>> {}

        #[diagnostic::do_not_recommend]
        impl<T: Element> Parameter for Slice<$parameter<T>> {
            type Host<'a> = <$parameter<T> as Parameter>::Host<'a>;
            type Described<'a> = Described<'a>;
            type Each = $parameter<T>;

            fn describe<'a>(bound: &BoundArgument<'a>) -> Described<'a> {
                $parameter::<T>::describe(bound)
            }

            fn layout() -> ParameterLayout {
                $parameter::<T>::layout()
            }

            fn add_compiled(layouts: &mut Vec<ParameterLayout>) {
                layouts.extend([Self::layout(), ParameterLayout::Length]);
            }

            unsafe fn unpack<'a>(unpacker: &mut Unpacker<'a>) -> Self::Host<'a> {
                // SAFETY: the caller promises this; `Argument` bound the array as flat, with this
                // access.
                let slice = unsafe { $parameter::<T>::unpack(unpacker) };
                unpacker.skip_length();
                slice
            }

            fn each_view<'a>(host: Self::Host<'a>) -> <Self::Each as Walked>::View<'a> {
                $parameter::<T>::each_view(host)
            }
        }

        impl<T: Element, A: $any_view<T>> Bind<Slice<$parameter<T>>> for $borrow {
            #[inline]
            fn bind(&self) -> BoundArgument<'_> {
                let access = $parameter::<T, Flat>::ACCESS;
                BoundArgument::Array(BoundArray::slice(self.erased(), self.home(), access))
            }
        }
    };
}

slice_parameter!(In, &A, AnyView);
slice_parameter!(InOut, &mut A, AnyViewMut);
slice_parameter!(Out, &mut A, AnyViewMut);
