//! ndarray's arrays as arguments that must be `SmartArray`s.
use resident::ndarray::Array1;
use resident::{Device, Grid, In, Kernel, Out, Result, SmartArray};

fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    let copy = Kernel::<(In<f32>, Out<f32>)>::new("copy")
        .host(|_grid, (from, to)| to.copy_from_slice(from));
    let from = std::convert::identity(Array1::<f32>::ones(4));
    let mut to = SmartArray::<f32, _>::uninit(4);
    to.assign(&from)?;
    copy.launch(Grid::cover(4), (&from, &mut to))
}
