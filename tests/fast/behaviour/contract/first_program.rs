//! The program `examples/first_array.rs`, with its comments as assertions.

use resident::{
    Device, Grid, In, InOut, Kernel, Out, Result, SmartArray, Validity,
    ndarray::{Array2, ArrayView2, ArrayViewMut2, Ix2},
};

use support::moves::{NOTHING, moves};

const BYTES: u64 = 1024 * 768 * 4;

#[test]
fn the_first_program_moves_what_its_comments_say() -> Result<()> {
    let _here = Device::cpu().enter();
    let blur = Kernel::<(In<f32, Ix2>, Out<f32, Ix2>)>::new("blur")
        .require("both pictures have one shape", |_grid, (src, dst)| src.shape() == dst.shape())
        .host(|_grid, (src, mut dst)| {
            let (src, dst): (ArrayView2<'_, f32>, &mut ArrayViewMut2<'_, f32>) = (src, &mut dst);
            dst.assign(&src);
        });
    let scale = Kernel::<(f32, InOut<f32>)>::new("scale")
        .host(|_grid, (k, xs)| xs.iter_mut().for_each(|x| *x *= k));

    let pixels = Array2::<f32>::ones((1024, 768));
    let address = pixels.as_ptr();
    let photo = SmartArray::from(pixels);
    assert_eq!(photo.host()?.as_ptr(), address, "adopts the allocation, copies nothing");
    let mut soft = SmartArray::<f32, _>::uninit((1024, 768));
    assert_eq!(soft.residency().host(), Validity::Absent, "no memory anywhere yet");
    blur.launch(Grid::cover(photo.len()), (&photo, &mut soft))?;
    assert_eq!(
        (moves(photo.traffic()), moves(soft.traffic())),
        ([(1, BYTES), (0, 0), (0, 0)], NOTHING)
    );
    scale.launch(Grid::cover(soft.len()), (0.5, &mut soft))?;
    assert_eq!(moves(soft.traffic()), NOTHING, "moves nothing");
    assert_eq!(soft.host()?.sum(), 1024.0 * 768.0 * 0.5);
    assert_eq!(soft.host()?[[0, 0]], 0.5);
    assert_eq!(moves(soft.traffic()), [(0, 0), (1, BYTES), (0, 0)], "downloads `soft`, once");
    assert_eq!(moves(photo.traffic()), [(1, BYTES), (0, 0), (0, 0)]);
    let avoided = photo.traffic().avoided.bytes + soft.traffic().avoided.bytes;
    assert_eq!(avoided, 4 * BYTES, "of six copies, two were made");
    Ok(())
}

#[test]
fn the_prelude_and_the_re_exports_name_what_a_program_needs() {
    use resident::prelude::*;
    let _here = Device::cpu().enter();
    let array: SmartArray<u8, ndarray::Ix1> = SmartArray::zeros(3);
    let _grid: Grid = Grid::cover(array.len());
    let _bytes: &[u8] = bytemuck::bytes_of(&1_u32);
    let _kernel = Kernel::<(f32, In<f32>, InOut<f32>, Out<f32>)>::new("named");
    let _view: SmartView<'_, u8, _> = array.view();
}
