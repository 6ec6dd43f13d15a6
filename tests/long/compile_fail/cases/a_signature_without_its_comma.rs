//! A tuple of one parameter has a comma.
//! Wrong: one parameter in parentheses without a comma is not a tuple.
//~ <(InOut<f32>,)> => <(InOut<f32>)>
use resident::{Device, Grid, InOut, Kernel, Result, SmartArray};

pub(crate) fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    let same = Kernel::<(InOut<f32>,)>::new("same").host(|_grid, _| ());
    let mut array = SmartArray::<f32, _>::ones(4);
    same.launch(Grid::cover(4), (&mut array,))
}
