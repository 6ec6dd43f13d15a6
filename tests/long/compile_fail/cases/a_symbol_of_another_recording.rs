//! The symbols of a recording stand for its parameters.
//! Wrong: a symbol leaves its recording, where it would stand for another array.
//~ assert!(kept.is_none()) => kept = Some(a)
use resident::launch::Symbol;
use resident::ndarray::Ix1;
use resident::{Chain, Device, InOut, Result, SmartArray};

pub(crate) fn main() -> Result<()> {
    #[allow(unused_mut)]
    let mut kept: Option<Symbol<'_, InOut<f32, Ix1>>> = None;
    let clear = Chain::<(InOut<f32, Ix1>,)>::record("clear", |r, (a,)| {
        assert!(kept.is_none());
        r.fill(a.write(), 0.0)
    })?;
    let mut array = SmartArray::from([1.0_f32]);
    clear.launch_on(&Device::cpu().stream(), (&mut array,))?;
    assert_eq!(array.get(0)?, 0.0);
    Ok(())
}
