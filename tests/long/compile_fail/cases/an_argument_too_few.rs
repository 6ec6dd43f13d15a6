//! Two parameters, two arguments.
//! Wrong: two parameters, one argument.
//~ (2.0, &mut array) => (&mut array,)
use resident::{Device, Grid, InOut, Kernel, Result, SmartArray};

pub(crate) fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    let scale = Kernel::<(f32, InOut<f32>)>::new("scale")
        .host(|_grid, (k, xs)| xs.iter_mut().for_each(|x| *x *= k));
    let mut array = SmartArray::<f32, _>::ones(4);
    scale.launch(Grid::cover(4), (2.0, &mut array))
}
