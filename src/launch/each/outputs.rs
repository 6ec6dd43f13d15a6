//! What the index of an element is, by the types of a signature's outputs.

use ndarray::{Dimension, Ix1};
use std::marker::PhantomData;

/// The outputs among the last parameters of a signature, to which those before add theirs.
pub trait Outputs {
    type WithFlat: Outputs;
    type WithSized<D: Dimension>: Outputs;
}

/// Outputs whose elements have an index in common.
#[diagnostic::on_unimplemented(
    message = "a body of `host_each` is called for each element of the outputs, but these are \
               `{Self}`",
    label = "these outputs have no index in common",
    note = "give the signature an `InOut` or an `Out`; if it has several, make all flat (`Out<T>`) \
            or all sized (`Out<T, Ix2>`), or use `host`"
)]
pub trait Indexed: Outputs {
    type Dimension: Dimension;
}

#[derive(Debug)]
pub enum NoOutputs {}

#[derive(Debug)]
pub enum FlatOutputs {}

#[derive(Debug)]
pub struct SizedOutputs<D>(PhantomData<D>);

#[derive(Debug)]
pub enum FlatAndSizedOutputs {}

impl Outputs for NoOutputs {
    type WithFlat = FlatOutputs;
    type WithSized<D: Dimension> = SizedOutputs<D>;
}

impl Outputs for FlatOutputs {
    type WithFlat = Self;
    type WithSized<D: Dimension> = FlatAndSizedOutputs;
}

impl<First: Dimension> Outputs for SizedOutputs<First> {
    type WithFlat = FlatAndSizedOutputs;
    type WithSized<D: Dimension> = SizedOutputs<D>;
}

impl Outputs for FlatAndSizedOutputs {
    type WithFlat = Self;
    type WithSized<D: Dimension> = Self;
}

#[diagnostic::do_not_recommend]
impl Indexed for FlatOutputs {
    type Dimension = Ix1;
}

#[diagnostic::do_not_recommend]
impl<D: Dimension> Indexed for SizedOutputs<D> {
    type Dimension = D;
}
