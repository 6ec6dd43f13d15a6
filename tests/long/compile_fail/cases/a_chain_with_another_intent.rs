//! A kernel that updates an array gets it to read and write.
//! Wrong: it would update what the chain thinks is only read.
//~ a.read_write() => a.read()
use resident::ndarray::Ix1;
use resident::{Chain, Device, InOut, Kernel, Result, SmartArray};

pub(crate) fn main() -> Result<()> {
    let double = Kernel::<(InOut<f32>,)>::new("double")
        .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
    let twice = Chain::<(InOut<f32, Ix1>,)>::record("twice", |r, (a,)| {
        (0..2).try_for_each(|_| r.launch(&double, 1, (a.read_write(),)))
    })?;
    let mut array = SmartArray::from([1.0_f32]);
    twice.launch_on(&Device::cpu().stream(), (&mut array,))?;
    assert_eq!(array.get(0)?, 4.0);
    Ok(())
}
