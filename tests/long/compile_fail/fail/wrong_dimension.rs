//! A 1-D array for a parameter with two dimensions.
use resident::{Device, Grid, Kernel, Out, Result, SmartArray, ndarray::Ix2};

fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    let fill =
        Kernel::<(f32, Out<f32, Ix2>)>::new("fill").host(|_grid, (value, mut to)| to.fill(value));
    let mut to = SmartArray::<f32, _>::uninit(4);
    fill.launch(Grid::cover(4), (1.0, &mut to))
}
