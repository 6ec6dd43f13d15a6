//! The first, middle and last stage side by side. The device composes the sheet, so that one
//! picture is downloaded instead of three.

use resident::ndarray::{ArrayView2, ArrayView3, ArrayViewMut3, Axis, Ix2, Ix3, Zip, s};
use resident::{In, Kernel, Out, Result, SmartArray, Stream};

use super::steps::{Picture, Plane, cover};

/// Columns between two pictures, and their colour.
pub const GAP: usize = 8;
pub const GAP_COLOUR: u8 = 255;

/// Brightness factor that makes the weak gradients of photographs visible.
pub const STRENGTH_GAIN: f32 = 3.0;

pub type SheetKernel = Kernel<(In<u8, Ix3>, In<f32, Ix2>, In<u8, Ix3>, Out<u8, Ix3>)>;

/// Queues the kernel that composes the sheet from three pictures.
pub fn compose(
    stream: &Stream,
    photo: &Picture,
    strength: &Plane<f32>,
    overlay: &Picture,
) -> Result<Picture> {
    let (rows, columns) = (photo.shape()[0], photo.shape()[1]);
    let mut sheet = SmartArray::uninit((rows, sheet_columns(columns), 3)).named("sheet");
    let grid = cover(&sheet);
    kernel().launch_on(stream, grid, (photo, strength, overlay, &mut sheet))?;
    Ok(sheet)
}

/// Columns of a sheet with three pictures.
pub fn sheet_columns(columns: usize) -> usize {
    3 * columns + 2 * GAP
}

pub fn kernel() -> SheetKernel {
    let kernel = SheetKernel::new("sheet")
        .require("the photograph has three channels", |_grid, (photo, ..)| photo.shape()[2] == 3)
        .require("photograph and gradient have one size", |_grid, (photo, strength, _, _)| {
            photo.shape()[..2] == strength.shape()[..]
        })
        .require("photograph and overlay have one shape", |_grid, (photo, _, overlay, _)| {
            photo.shape() == overlay.shape()
        })
        .require("the sheet holds three pictures and two gaps", |_grid, (photo, _, _, sheet)| {
            sheet.shape()[..] == [photo.shape()[0], sheet_columns(photo.shape()[1]), 3]
        })
        .host(|_grid, (photo, strength, overlay, sheet)| body(photo, strength, overlay, sheet));
    // SAFETY: the kernel writes the sheet within its shape, and the requirements relate its shape
    // to the shapes of the three pictures that the kernel reads.
    unsafe { kernel.cuda(include_str!("sheet.cu")) }
}

pub fn body(
    photo: ArrayView3<'_, u8>,
    strength: ArrayView2<'_, f32>,
    overlay: ArrayView3<'_, u8>,
    mut sheet: ArrayViewMut3<'_, u8>,
) {
    let columns = photo.dim().1;
    let (middle, last) = (columns + GAP, 2 * (columns + GAP));
    sheet.fill(GAP_COLOUR);
    sheet.slice_mut(s![.., ..columns, ..]).assign(&photo);
    let mut shown = sheet.slice_mut(s![.., middle..middle + columns, ..]);
    Zip::from(shown.lanes_mut(Axis(2)))
        .and(strength)
        .for_each(|mut pixel, &strength| pixel.fill(shade(strength)));
    sheet.slice_mut(s![.., last.., ..]).assign(&overlay);
}

fn shade(strength: f32) -> u8 {
    (strength * STRENGTH_GAIN * 255.0).min(255.0) as u8
}
