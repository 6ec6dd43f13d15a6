//! Two parameters, one argument.
use resident::{Device, Grid, InOut, Kernel, Result, SmartArray};

fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    let scale = Kernel::<(f32, InOut<f32>)>::new("scale")
        .host(|_grid, (k, xs)| xs.iter_mut().for_each(|x| *x *= k));
    let mut array = SmartArray::<f32, _>::ones(4);
    scale.launch(Grid::cover(4), (&mut array,))
}
