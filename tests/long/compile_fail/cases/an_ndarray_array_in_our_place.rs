//! ndarray's arrays, converted to `SmartArray`s.
//! Wrong: ndarray's arrays as arguments that must be `SmartArray`s.
//~ SmartArray::from( => std::convert::identity(
use resident::ndarray::Array1;
use resident::{Device, Grid, In, Kernel, Out, Result, SmartArray};

pub(crate) fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    let copy = Kernel::<(In<f32>, Out<f32>)>::new("copy")
        .host(|_grid, (from, to)| to.copy_from_slice(from));
    let from = SmartArray::from(Array1::<f32>::ones(4));
    let mut to = SmartArray::<f32, _>::uninit(4);
    to.assign(&from)?;
    copy.launch(Grid::cover(4), (&from, &mut to))
}
