//! What most tests of the suite name.

pub(crate) use support::prelude::*;

pub(crate) use super::gates::Gate;
pub(crate) use super::kernels::{over, over_2d};
pub(crate) use super::lab::{Lab, with_checked_totals};
pub(crate) use super::values::{
    LARGE, Sample, bytes, copies, counting, make_newest, numbered, numbers, runner, value,
};
