//! A pinned array gives no `&mut SmartArray`, so its memory stays pinned.
//! Wrong: another array in its place.
//~ pinned.assign(&SmartArray::zeros(8))? => *pinned = SmartArray::zeros(8)
use resident::{PinnedArray, Result, SmartArray};

pub(crate) fn main() -> Result<()> {
    let mut pinned = PinnedArray::<f32, _>::zeros(8)?;
    pinned.assign(&SmartArray::zeros(8))?;
    Ok(())
}
