//! Operations on corresponding elements.

pub(super) mod functions;
pub(super) mod host;
mod unary;

use ndarray::{ArrayViewD, ArrayViewMutD, IxDyn};

use super::align;
use super::arithmetic::{Arithmetic, Number, Ordered, Word};
use super::c_type::CType;
use super::cache;
use super::call::{self, Call};
use super::right::{Described, Right, RightSide, apply};
use super::source::{self, Parameter};
use crate::array::{AnyView, AnyViewMut, Operand, OperandMut};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::launch::{In, InOut, Kernel, Out};

pub use unary::Unary;

type OneKernel<A, U> = Kernel<(In<A, IxDyn>, Out<U, IxDyn>)>;
type ThreeKernel<T> = Kernel<(In<u8, IxDyn>, In<T, IxDyn>, In<T, IxDyn>, Out<T, IxDyn>)>;
type ScaledKernel<T> = Kernel<(T, In<T, IxDyn>, InOut<T, IxDyn>)>;
type ClampKernel<T> = Kernel<(T, T, In<T, IxDyn>, Out<T, IxDyn>)>;

/// An operation on two numbers.
#[derive(Clone, Copy)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    /// Of a number, from which each element is subtracted.
    SubFrom,
    /// Of a number, which is divided by each element.
    DivInto,
}

impl Binary {
    /// The name; where the right operand is a number, another, since the kernel is another.
    fn titles(self) -> [&'static str; 2] {
        match self {
            Self::Add => ["ops::add", "ops::add, of a number"],
            Self::Sub => ["ops::sub", "ops::sub, of a number"],
            Self::Mul => ["ops::mul", "ops::mul, of a number"],
            Self::Div => ["ops::div", "ops::div, of a number"],
            Self::SubFrom => ["ops::sub", "ops::sub, from a number"],
            Self::DivInto => ["ops::div", "ops::div, number by element"],
        }
    }

    /// The name of the operation.
    pub(super) fn name(self) -> &'static str {
        self.titles()[0].trim_start_matches("ops::")
    }

    /// The names in [`of`](Self::of) of the elements and of a number.
    fn names(self) -> [&'static str; 2] {
        if matches!(self, Self::SubFrom | Self::DivInto) { ["y", "x"] } else { ["x", "y"] }
    }

    /// The value in CUDA C. Words wrap around, and so do the results of signed integers.
    fn of(self, c: CType) -> &'static str {
        match self {
            Self::Add => "W(x) + W(y)",
            Self::Sub | Self::SubFrom => "W(x) - W(y)",
            Self::Mul => "W(x) * W(y)",
            Self::Div | Self::DivInto => c.quotient(),
        }
    }

    /// `out = a op b`, in a loop of its own for each operation, so that it is vectorised.
    fn each<T: Arithmetic>(
        self,
        a: ArrayViewD<'_, T>,
        b: RightSide<'_, T>,
        out: ArrayViewMutD<'_, T>,
    ) {
        match self {
            Self::Add => b.each(a, out, T::plus),
            Self::Sub => b.each(a, out, T::minus),
            Self::Mul => b.each(a, out, T::times),
            Self::Div => b.each(a, out, T::over),
            Self::SubFrom => b.each(a, out, |element: T, number| number.minus(element)),
            Self::DivInto => b.each(a, out, |element: T, number| number.over(element)),
        }
    }
}

/// `out = a op b`.
pub(super) fn binary<T: Arithmetic>(
    call: &Call<'_>,
    op: Binary,
    a: &impl AnyView<T>,
    b: &impl Right<T>,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (titles, value, names) = (op.titles(), op.of(T::C), op.names());
    let described = Described { titles, value, names, result: T::C };
    apply(call, &described, a, b, out, move |a, b, out| op.each(a, b, out))
}

/// `y += alpha * x`.
pub(super) fn scaled_add<T: Arithmetic>(
    call: &Call<'_>,
    alpha: T,
    x: &impl AnyView<T>,
    y: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (mut x, mut y) = (Operand::of(x), OperandMut::of(y));
    call.fit("x", &mut x, &y)?;
    align::in_any_order([y.axes_mut(), x.axes_mut()]);
    let kernel = scaled_kernel::<T>(y.axes().shape().len());
    call.launch(kernel, call::cover(y.axes().len()), (alpha, &x, &mut y))
}

fn scaled_kernel<T: Arithmetic>(rank: usize) -> &'static ScaledKernel<T> {
    cache::kernel("ops::scaled_add", rank, || {
        let kernel = ScaledKernel::<T>::new("ops::scaled_add").own_host(|_, (alpha, x, y)| {
            host::each_of_one(x, y, move |x, y| *y = y.plus_scaled(alpha, x));
        });
        let parameters =
            [Parameter::Scalar("alpha", T::C), Parameter::In("x", T::C), Parameter::InOut(T::C)];
        // SAFETY: as in `right::apply`; `scaled_add` passes the views.
        unsafe {
            kernel.cuda(source::elementwise(rank, T::C, &parameters, "W(y) + W(alpha) * W(x)"))
        }
    })
}

/// `out = function(a)`.
pub(super) fn map<T: Number>(
    call: &Call<'_>,
    function: Unary,
    a: &impl AnyView<T>,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let a = Operand::of(a);
    if !T::IS_FLOAT && !function.is_for_integers() {
        return Err(no_integers(call, function, &a));
    }
    let value = || if T::IS_FLOAT { function.of_floats() } else { function.of_integers() }.into();
    of_one(call, function.title(), &a, out, [T::C; 2], value, move |a, out| {
        host::pieces_of_one(a, out, &|a, mut out| match (a.as_slice(), out.as_slice_mut()) {
            (Some(a), Some(out)) => T::map(function, a, out),
            _ => ndarray::Zip::from(&mut out).and(&a).for_each(|out, a| {
                T::map(function, std::slice::from_ref(a), std::slice::from_mut(out));
            }),
        });
    })
}

#[cold]
fn no_integers<T: Element>(call: &Call<'_>, function: Unary, a: &Operand<'_, T>) -> Error {
    Error::Requirement {
        call: call.at(),
        kernel: format!("\"{}\"", function.title()),
        requirement: String::from("elements are `f32` or `f64`"),
        arguments: format!("{} of {a}", std::any::type_name::<T>()),
    }
}

/// `out = min(max(a, low), high)`; NaN if one of the three is.
pub(super) fn clamp<T: Ordered>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    low: T,
    high: T,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (mut a, mut out) = (Operand::of(a), OperandMut::of(out));
    call.fit("a", &mut a, &out)?;
    align::in_any_order([out.axes_mut(), a.axes_mut()]);
    let kernel = clamp_kernel::<T>(out.axes().shape().len());
    call.launch(kernel, call::cover(out.axes().len()), (low, high, &a, &mut out))
}

fn clamp_kernel<T: Ordered>(rank: usize) -> &'static ClampKernel<T> {
    cache::kernel("ops::clamp", rank, || {
        let kernel = ClampKernel::<T>::new("ops::clamp").own_host(|_, (low, high, a, out)| {
            let is_nan = |bound: &T| bound.partial_cmp(bound).is_none();
            let nan = [low, high].into_iter().find(is_nan);
            host::each_of_one(a, out, move |a, out| {
                let raised = if a < low { low } else { a };
                *out = nan.unwrap_or(if raised > high { high } else { raised });
            });
        });
        let parameters = [
            Parameter::Scalar("low", T::C),
            Parameter::Scalar("high", T::C),
            Parameter::In("x", T::C),
            Parameter::Out(T::C),
        ];
        let value = "low != low ? low : high != high ? high : \
                     (x < low ? low : x) > high ? high : x < low ? low : x";
        // SAFETY: as in `right::apply`; `clamp` passes the views.
        unsafe { kernel.cuda(source::elementwise(rank, T::C, &parameters, value)) }
    })
}

/// `out = mask != 0 ? a : b`.
pub(super) fn select<T: Arithmetic>(
    call: &Call<'_>,
    mask: &impl AnyView<u8>,
    a: &impl AnyView<T>,
    b: &impl AnyView<T>,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let mut mask = Operand::of(mask);
    let (a, b, out) = (Operand::of(a), Operand::of(b), OperandMut::of(out));
    let (mut a, mut b) = (a.reinterpreted::<T::Word>(), b.reinterpreted::<T::Word>());
    let mut out = out.reinterpreted::<T::Word>();
    call.fit("mask", &mut mask, &out)?;
    call.fit("a", &mut a, &out)?;
    call.fit("b", &mut b, &out)?;
    align::in_any_order([out.axes_mut(), mask.axes_mut(), a.axes_mut(), b.axes_mut()]);
    let kernel = select_kernel::<T::Word>(out.axes().shape().len());
    call.launch_on_some(kernel, call::cover(out.axes().len()), (&mask, &a, &b, &mut out))
}

fn select_kernel<T: Word>(rank: usize) -> &'static ThreeKernel<T> {
    cache::kernel("ops::select", rank, || {
        let kernel = ThreeKernel::<T>::new("ops::select").own_host(|_, (mask, a, b, out)| {
            host::each_of_three(mask, a, b, out, |mask, a, b, out| {
                *out = if mask != 0 { a } else { b };
            });
        });
        let parameters = [
            Parameter::In("mask", CType::U8),
            Parameter::In("x", T::C),
            Parameter::In("y", T::C),
            Parameter::Out(T::C),
        ];
        // SAFETY: as in `right::apply`; `select` passes the views.
        unsafe { kernel.cuda(source::elementwise(rank, T::C, &parameters, "mask != 0 ? x : y")) }
    })
}

/// `out = a as U`.
pub(super) fn cast<T: Arithmetic, U: Arithmetic>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    out: &mut impl AnyViewMut<U>,
) -> Result<()> {
    of_one(
        call,
        "ops::cast",
        a,
        out,
        [T::C, U::C],
        || U::C.cast_of_x(T::C),
        |a, out| {
            host::each_of_one(a, out, |a, out| *out = a.to::<U>());
        },
    )
}

/// `out = a`: elements of one size are copied, whatever they are.
pub(super) fn copy<T: Arithmetic>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    out: &mut impl AnyViewMut<T>,
) -> Result<()> {
    let (mut a, out) = (Operand::of(a), OperandMut::of(out));
    // Before their types are others, which an error would name.
    call.fit("a", &mut a, &out)?;
    let (a, mut out) = (a.reinterpreted::<T::Word>(), out.reinterpreted::<T::Word>());
    of_one(
        call,
        "ops::copy",
        &a,
        &mut out,
        [<T::Word as Word>::C; 2],
        || "x".into(),
        |a, out| {
            host::pieces_of_one(a, out, &|a, out| host::assign(a, out));
        },
    )
}

/// `out` of the elements of `a`: by `value` of `x` in CUDA C, with these types, and by a body in
/// Rust that computes the same.
pub(super) fn of_one<A: Element, U: Element>(
    call: &Call<'_>,
    title: &'static str,
    a: &impl AnyView<A>,
    out: &mut impl AnyViewMut<U>,
    [from, to]: [CType; 2],
    value: impl FnOnce() -> String,
    body: impl Fn(ArrayViewD<'_, A>, ArrayViewMutD<'_, U>) + Send + Sync + 'static,
) -> Result<()> {
    let (mut a, mut out) = (Operand::of(a), OperandMut::of(out));
    call.fit("a", &mut a, &out)?;
    align::in_any_order([out.axes_mut(), a.axes_mut()]);
    let rank = out.axes().shape().len();
    let kernel = cache::kernel(title, rank, || {
        let kernel = OneKernel::<A, U>::new(title).own_host(move |_, (a, out)| body(a, out));
        let parameters = [Parameter::In("x", from), Parameter::Out(to)];
        // SAFETY: each thread reads and writes one element of each view, which have one shape and
        // this rank.
        unsafe { kernel.cuda(source::elementwise(rank, to, &parameters, &value())) }
    });
    call.launch(kernel, call::cover(out.axes().len()), (&a, &mut out))
}
