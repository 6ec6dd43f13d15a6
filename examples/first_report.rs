//! A program that copies three times, and its report. The README shows both.

#![allow(unreachable_pub, reason = "a test calls it too")]

use resident::{Result, SmartArray, audit, ndarray::Array2, ops, prelude::s};

pub fn main() -> Result<()> {
    let (sum, report) = audit::capture(|| -> Result<f32> {
        let mut photo = SmartArray::from(Array2::<f32>::ones((1024, 768))).named("photo");
        let light = SmartArray::full((1024, 768), 0.25); // each memory fills its own copy
        ops::scaled_add(2.0, &light, &mut photo)?; // photo += 2 light; uploads `photo`
        photo.slice_mut(s![0, ..]).fill(0.0)?; // where the newest contents are: on the device
        photo.slice_mut(s![7, ..]).host_overwrite()?.fill(1.0); // on the host; copies nothing
        ops::scaled_add(2.0, &light, &mut photo)?; // uploads row 7
        Ok(photo.slice(s![.., 99]).host()?.sum()) // downloads column 99
    });
    println!("{}\n{report}", sum?);
    Ok(())
}
