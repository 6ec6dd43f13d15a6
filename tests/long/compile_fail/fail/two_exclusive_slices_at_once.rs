//! Two `slice_mut` of one array at once.
use resident::{Result, SmartArray, ndarray::s};

fn main() -> Result<()> {
    let mut array = SmartArray::<f32, _>::zeros(8);
    let mut left = array.slice_mut(s![..5]);
    let mut right = array.slice_mut(s![3..]);
    left.fill(1.0)?;
    right.fill(2.0)
}
