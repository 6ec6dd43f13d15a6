//! Elements of the parameter's type.
//! Wrong: an array of `f64` for a parameter of `f32`.
//~ <f32, _>::ones => <f64, _>::ones
use resident::{Device, Grid, In, Kernel, Out, Result, SmartArray};

pub(crate) fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    let copy = Kernel::<(In<f32>, Out<f32>)>::new("copy")
        .host(|_grid, (from, to)| to.copy_from_slice(from));
    let from = SmartArray::<f32, _>::ones(4);
    let mut to = SmartArray::<f32, _>::uninit(4);
    copy.launch(Grid::cover(4), (&from, &mut to))
}
