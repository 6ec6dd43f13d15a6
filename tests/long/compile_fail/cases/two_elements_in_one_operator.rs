//! Both operands of an operator have elements of one type.
//! Wrong: an array of `f64` beside one of `f32`, and a number of another type.
//~ SmartArray::from([4.0_f32, 5.0]) => SmartArray::from([4.0_f64, 5.0])
//~ 2.0_f32 => 2
use resident::{Device, Result, SmartArray};

pub(crate) fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    let a = SmartArray::from([1.0_f32, 2.0]);
    let b = SmartArray::from([4.0_f32, 5.0]);
    let sum = (&a + &b)?;
    let twice = (sum * 2.0_f32)?;
    assert_eq!(twice.to_vec()?, [10.0, 14.0]);
    Ok(())
}
