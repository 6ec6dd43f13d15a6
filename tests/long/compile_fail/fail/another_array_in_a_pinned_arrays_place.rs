//! A pinned array gives no `&mut SmartArray`, so its memory stays pinned.

use resident::{PinnedArray, Result, SmartArray};

fn main() -> Result<()> {
    let mut pinned = PinnedArray::<f32, _>::zeros(8)?;
    *pinned = SmartArray::zeros(8);
    Ok(())
}
