//! The variance: a mean, and then the sum of squares of what differs from it.

use ndarray::Ix1;

use super::arithmetic::{Arithmetic as _, Number, Scalar};
use super::call::Call;
use super::reduction_kernel::Reduction;
use super::{cache, reduce};
use crate::array::{AnyView, Operand, SmartArray};
use crate::error::{Error, Result};
use crate::launch::In;

/// A sum over elements of what they differ from their mean.
type Differences<T> = Reduction<(In<T>, In<<T as Scalar>::Real>), <T as Scalar>::Real>;

/// The variance of all elements, with `ddof` degrees of freedom less than elements. The mean comes
/// first, so that elements far from 0 lose no digits. The mean is rounded, which makes each square
/// too large. The sum of the differences, which would be 0, says by how much.
pub(super) fn variance<T: Number>(
    call: &Call<'_>,
    a: &impl AnyView<T>,
    ddof: T::Real,
) -> Result<T::Real> {
    let operand = &Operand::of(a);
    let len = operand.axes().len();
    let count = T::Real::from_u64(len as u64);
    if !(0.0..=len as f64).contains(&ddof.to::<f64>()) {
        return Err(no_freedom(call, operand, ddof));
    }
    if len == 0 {
        return Ok(T::Real::ZERO.over(count.minus(ddof)));
    }
    let mut mean = SmartArray::<T::Real, Ix1>::uninit_at(1, call.site);
    reduce::mean(call, a, &mut mean)?;
    let sum = |of: &Differences<T>| of.number(call.stream, &(operand, &mean), call.site);
    let (squares, rest) = (sum(squares())?, sum(differences())?);
    let squares = without(squares, rest.times(rest).over(count));
    Ok(squares.over(count.minus(ddof)))
}

/// A sum of squares less what is too much; as it is if it is infinite or NaN.
fn without<R: Scalar>(squares: R, excess: R) -> R {
    match [squares, excess].map(|it| it.to::<f64>()) {
        [sum, _] if !sum.is_finite() => squares,
        [sum, excess] if sum < excess => R::ZERO,
        _ => squares.minus(excess),
    }
}

fn squares<T: Number>() -> &'static Differences<T> {
    let text = "(x - mean) * (x - mean)";
    reduction::<T>("ops::var", text, |difference| difference.times(difference))
}

fn differences<T: Number>() -> &'static Differences<T> {
    reduction::<T>("ops::var (rest)", "x - mean", |difference| difference)
}

/// The sum of `term` of each difference, which is `text` in CUDA C.
fn reduction<T: Number>(
    name: &'static str,
    text: &str,
    term: fn(T::Real) -> T::Real,
) -> &'static Differences<T> {
    cache::value(name, 0, || {
        Differences::<T>::new("ops::var", ["x", "mean"], text, "a + b", T::Real::ZERO).host(
            move |(x, mean): (T, T::Real)| term(x.to::<T::Real>().minus(mean)),
            |one, other| one.plus(other),
        )
    })
}

#[cold]
fn no_freedom<T: Number>(call: &Call<'_>, a: &Operand<'_, T>, ddof: T::Real) -> Error {
    Error::Requirement {
        call: call.at(),
        kernel: format!("ops::{}", call.name),
        requirement: String::from("`ddof` is at least 0 and at most the number of elements"),
        arguments: format!("ddof = {}, for {a}", ddof.to::<f64>()),
    }
}
