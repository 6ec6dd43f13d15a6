//! The view of a mapped array lives no longer than the call that lends it.

use resident::ndarray::Array1;
use resident::{Result, with_mapped};

fn main() -> Result<()> {
    let mut samples = Array1::<f32>::ones(8);
    let kept = with_mapped(&mut samples, |mapped| Ok(mapped))?;
    kept.host().map(drop)
}
