//! A wave on 1,024 by 1,024 points: 500 steps, and a picture of every 50th, which is copied and
//! written while a device computes the next steps. The argument is the folder for the pictures.

use std::path::PathBuf;
use std::{mem::swap, thread};

use resident::audit;
use resident::ndarray::{Array2, Ix2};
use resident::prelude::*;
use resident_example_programs::live::picture::write_png;

type Failure = Box<dyn std::error::Error>;

fn main() -> std::result::Result<(), Failure> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or("wave".into()));
    std::fs::create_dir_all(&folder)?;
    let wave = Kernel::<(f32, In<f32, Ix2>, InOut<f32, Ix2>)>::new("wave")
        .require("both have one shape", |_, (_, now, before)| now.shape() == before.shape());
    // SAFETY: the code accesses only points inside both views, which have the same shape.
    let wave = unsafe { wave.cuda(include_str!("wave.cu")) };
    let start = Array2::from_shape_fn((1024, 1024), |(i, j)| {
        let square = (i as f32 - 400.0).powi(2) + (j as f32 - 512.0).powi(2);
        (-square / 200.0).exp()
    });
    let (work, copies) = (Device::current()?.stream(), Device::current()?.new_stream()?);
    let mut before = SmartArray::from(start.clone()).named("before");
    let mut now = SmartArray::from(start).named("now");
    let (done, report) = audit::capture(|| {
        thread::scope(|scope| -> Result<()> {
            for step in 1..=500 {
                wave.launch_on(&work, Grid::cover(now.len()), (0.25, &now, &mut before))?;
                swap(&mut now, &mut before);
                if step % 50 == 0 {
                    let picture = now.snapshot_on(&copies)?;
                    let path = folder.join(format!("{step:03}.png"));
                    scope.spawn(move || {
                        write_png(&picture.wait().expect("a copy"), &path).expect("a file");
                    });
                }
            }
            Ok(())
        })
    });
    done?;
    println!("the squares sum up to {:.3}\n{report}", now.norm_l2()?.powi(2));
    Ok(())
}
