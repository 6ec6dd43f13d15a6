//! The variance: a mean, and then the sum of squares of what differs from it.

use ndarray::Ix1;

use super::arithmetic::{Arithmetic as _, Number, Scalar};
use super::call::Call;
use super::reduction_kernel::Reduction;
use super::{cache, reduce};
use crate::array::{AnyView, Operand, SmartArray};
use crate::error::{Error, Result};
use crate::launch::In;

/// Elements, and their mean.
type Squares<T> = Reduction<(In<T>, In<<T as Scalar>::Real>), <T as Scalar>::Real>;

/// The variance of all elements, with `ddof` degrees of freedom less than elements. Two passes, so
/// that elements far from 0 lose no digits.
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
    let squares = squares::<T>().number(call.stream, &(operand, &mean), call.site)?;
    Ok(squares.over(count.minus(ddof)))
}

fn squares<T: Number>() -> &'static Squares<T> {
    cache::value("ops::var", 0, || {
        let term = |(x, mean): (T, T::Real)| {
            let difference = x.to::<T::Real>().minus(mean);
            difference.times(difference)
        };
        let text = "(x - mean) * (x - mean)";
        Squares::<T>::new("ops::var", ["x", "mean"], text, "a + b", T::Real::ZERO)
            .host(term, |one, other| one.plus(other))
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
