//! A step of a chain reads its input.
//! Wrong: the chain declares only that it reads the array.
//~ (a.read(), b.write()) => (b.read(), a.write())
use resident::ndarray::Ix1;
use resident::{Chain, Device, In, InOut, Result, SmartArray};

pub(crate) fn main() -> Result<()> {
    let copy = Chain::<(In<f32, Ix1>, InOut<f32, Ix1>)>::record("copy", |r, (a, b)| {
        r.copy(a.read(), b.write())
    })?;
    let (a, mut b) = (SmartArray::from([1.0_f32]), SmartArray::from([2.0_f32]));
    copy.launch_on(&Device::cpu().stream(), (&a, &mut b))?;
    assert_eq!(b.get(0)?, 1.0);
    Ok(())
}
