//! A host guard that is alive while a launch writes its array.
use resident::{Device, Grid, In, Kernel, Out, Result, SmartArray};

fn main() -> Result<()> {
    let _here = Device::cpu().enter();
    let copy = Kernel::<(In<f32>, Out<f32>)>::new("copy")
        .host(|_grid, (from, to)| to.copy_from_slice(from));
    let from = SmartArray::<f32, _>::ones(4);
    let mut to = SmartArray::<f32, _>::uninit(4);
    to.fill(0.0)?;
    let seen = to.host()?;
    copy.launch(Grid::cover(4), (&from, &mut to))?;
    println!("{}", seen.sum());
    Ok(())
}
