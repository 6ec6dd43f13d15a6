//! A 2-D array for a parameter with two dimensions.
//! Wrong: a 1-D array for a parameter with two dimensions.
//~ (2, 2) => 4
use resident::{Device, Grid, Kernel, Out, Result, SmartArray, ndarray::Ix2};

pub(crate) fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    let fill =
        Kernel::<(f32, Out<f32, Ix2>)>::new("fill").host(|_grid, (value, mut to)| to.fill(value));
    let mut to = SmartArray::<f32, _>::uninit((2, 2));
    fill.launch(Grid::cover(4), (1.0, &mut to))
}
