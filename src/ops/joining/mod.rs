//! Arrays side by side: each is copied to its part of a new array.

pub(super) mod functions;

use ndarray::{Axis, Dimension, Order};
use resident_backend::call_site::CallSite;
use smallvec::SmallVec;

use super::arithmetic::Arithmetic;
use super::call::{self, Call, stream_where_newest};
use super::elementwise;
use crate::array::{AnyView, Operand, OperandMut, SmartArray};
use crate::device::Stream;
use crate::error::{Error, Result, fitting};

/// Along which axis arrays are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    /// One that they have.
    Own(Axis),
    /// One that only the result has.
    New(Axis),
}

impl Join {
    fn axis(self) -> Axis {
        let (Self::Own(axis) | Self::New(axis)) = self;
        axis
    }

    fn name(self) -> &'static str {
        match self {
            Self::Own(_) => "concatenate",
            Self::New(_) => "stack",
        }
    }
}

/// The arrays side by side, on the stream, or where they are newest.
fn join<T: Arithmetic, E: Dimension>(
    join: Join,
    stream: Option<&Stream>,
    arrays: &[impl AnyView<T>],
    site: CallSite,
) -> Result<SmartArray<T, E>> {
    let mut operands: Vec<Operand<'_, T>> = arrays.iter().map(Operand::of).collect();
    let newest;
    let stream = match stream {
        Some(stream) => stream,
        None => {
            newest = stream_where_newest(&operands, site)?;
            &newest
        }
    };
    let call = &Call { name: join.name(), stream, site };
    let shape = joined_shape(call, join, &operands)?;
    let (mut out, axis) = (call::result(&shape, Order::RowMajor, site)?, join.axis().0);
    let mut first = 0;
    for operand in &mut operands {
        if let Join::New(_) = join {
            operand.axes_mut().insert(axis);
        }
        let len = operand.axes().shape()[axis];
        let mut part = OperandMut::of(&mut out);
        part.axes_mut().narrow(axis, first, len);
        elementwise::copy(call, &*operand, &mut part)?;
        first += len;
    }
    Ok(out)
}

/// The shape of the result of arrays that fit each other.
fn joined_shape<T: Arithmetic>(
    call: &Call<'_>,
    join: Join,
    operands: &[Operand<'_, T>],
) -> Result<SmallVec<[usize; 6]>> {
    let Some(first) = operands.first() else {
        let instead = "pass the arrays as a slice of views: `&[a.view(), b.view()]`";
        return Err(call.shape(String::from("at least one array"), "none", instead));
    };
    let mut shape: SmallVec<[usize; 6]> = SmallVec::from_slice(first.axes().shape());
    let axis = join.axis().0;
    if let Join::New(_) = join {
        if axis > shape.len() {
            let expected = format!("an axis up to Axis({})", shape.len());
            let instead = "pass the place of the new axis among those of the arrays";
            return Err(call.shape(expected, format!("Axis({axis}) for {first}"), instead));
        }
        shape.insert(axis, 0);
    }
    if axis >= shape.len() {
        let instead = "pass an axis that they have, or make one: `ops::stack`";
        return Err(call.shape(format!("arrays with Axis({axis})"), first, instead));
    }
    shape[axis] = 0;
    for (position, operand) in operands.iter().enumerate() {
        let own = operand.axes().shape();
        let len = match join {
            Join::Own(_) => own.get(axis).copied().unwrap_or(0),
            Join::New(_) => 1,
        };
        shape[axis] = shape[axis].saturating_add(len);
        if !fits(join, first.axes().shape(), own) {
            return Err(no_fit(call, join, first, position, operand));
        }
    }
    Ok(shape)
}

/// Whether an array fits the first.
fn fits(join: Join, first: &[usize], own: &[usize]) -> bool {
    let mut pairs = first.iter().zip(own).enumerate();
    let is_equal = |(axis, (one, other))| join == Join::Own(Axis(axis)) || one == other;
    first.len() == own.len() && pairs.all(is_equal)
}

#[cold]
fn no_fit<T: Arithmetic>(
    call: &Call<'_>,
    join: Join,
    first: &Operand<'_, T>,
    position: usize,
    operand: &Operand<'_, T>,
) -> Error {
    let but = match join {
        Join::Own(Axis(axis)) => format!(", except along Axis({axis})"),
        Join::New(_) => String::new(),
    };
    let expected = format!("arrays of the shape of array 0, {first}{but}");
    let mut wanted = SmallVec::<[usize; 6]>::from_slice(first.axes().shape());
    if let (Join::Own(Axis(axis)), own) = (join, operand.axes().shape())
        && own.len() == wanted.len()
    {
        wanted[axis] = own[axis];
    }
    let instead = fitting::to_shape(operand.axes().shape(), &wanted);
    call.shape(expected, format!("array {position}, {operand}"), instead)
}
