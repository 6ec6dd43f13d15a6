//! One parameter in parentheses without a comma is not a tuple.
use resident::{Device, Grid, InOut, Kernel, Result, SmartArray};

fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    let same = Kernel::<(InOut<f32>)>::new("same").host(|_grid, _| ());
    let mut array = SmartArray::<f32, _>::ones(4);
    same.launch(Grid::cover(4), (&mut array,))
}
