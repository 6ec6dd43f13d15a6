//! The guard is dropped before the launch.
//! Wrong: a host guard that is alive while a launch writes its array.
//~     println!("{}", to.host()?.sum()) =>     let seen = to.host()?
//~ &mut to)) => &mut to))?;\n    println!("{}", seen.sum());\n    Ok(())
use resident::{Device, Grid, In, Kernel, Out, Result, SmartArray};

pub(crate) fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    let copy = Kernel::<(In<f32>, Out<f32>)>::new("copy")
        .host(|_grid, (from, to)| to.copy_from_slice(from));
    let from = SmartArray::<f32, _>::ones(4);
    let mut to = SmartArray::<f32, _>::uninit(4);
    to.fill(0.0)?;
    println!("{}", to.host()?.sum());
    copy.launch(Grid::cover(4), (&from, &mut to))
}
