//! `multi_slice_mut` returns several slices, and checks that they are disjoint.
//! Wrong: two `slice_mut` of one array at once.
//~ (mut left, mut right) = => mut left = array.slice_mut(s![..5]);\n    let mut right =
//~ multi_slice_mut((s![..4], s![4..])) => slice_mut(s![3..])
use resident::{Result, SmartArray, ndarray::s};

pub(crate) fn main() -> Result<()> {
    let mut array = SmartArray::<f32, _>::zeros(8);
    let (mut left, mut right) = array.multi_slice_mut((s![..4], s![4..]));
    left.fill(1.0)?;
    right.fill(2.0)
}
