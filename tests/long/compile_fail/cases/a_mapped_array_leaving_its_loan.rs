//! The view of a mapped array lives no longer than the call that lends it.
//! Wrong: the view leaves the call.
//~ mapped.try_clone() => Ok(mapped)
use resident::ndarray::Array1;
use resident::{Result, with_mapped};

pub(crate) fn main() -> Result<()> {
    let mut samples = Array1::<f32>::ones(8);
    let kept = with_mapped(&mut samples, |mapped| mapped.try_clone())?;
    kept.host().map(drop)
}
