//! Grids.

use resident::{Extent3, GridLimits};
use support::prelude::*;

fn extents(grid: Grid) -> [(u32, u32, u32); 2] {
    [grid.blocks(), grid.threads()].map(|Extent3 { x, y, z }| (x, y, z))
}

#[test]
fn covering_grids_count_columns_along_x() {
    assert_eq!(extents(Grid::cover(1000)), [(4, 1, 1), (256, 1, 1)]);
    assert_eq!(extents(Grid::cover_2d((100, 300), (8, 32))), [(10, 13, 1), (32, 8, 1)]);
    assert_eq!(extents(Grid::cover_3d((5, 100, 300), (2, 8, 32))), [(10, 13, 3), (32, 8, 2)]);
    assert_eq!(extents(Grid::new(3, 128)), [(3, 1, 1), (128, 1, 1)]);
    assert_eq!(extents(Grid::new((3, 2), (16, 16))), [(3, 2, 1), (16, 16, 1)]);
    assert_eq!(extents(Grid::new((3, 2, 1), (16, 4, 2))), [(3, 2, 1), (16, 4, 2)]);
}

#[test]
fn a_number_or_a_shape_is_the_grid_that_covers_it() -> Result<()> {
    let device = lab();
    let _here = device.enter();
    let note = Kernel::<(u64, InOut<u64>)>::new("note")
        .require("all threads", |grid, (threads, _)| {
            let Extent3 { x, y, z } = grid.blocks();
            let of_block = grid.threads();
            u64::from(x * of_block.x * y * of_block.y * z * of_block.z) == threads
        })
        .host(|_grid, (threads, xs)| xs.fill(threads));
    let mut array = SmartArray::<u64, _>::zeros(1);
    note.launch(8, (256, &mut array))?;
    note.launch((16, 16), (16 * 32, &mut array))?;
    note.launch_on(&device.stream(), (2, 3, 40), (2 * 8 * 64, &mut array))?;
    assert_eq!(array.get(0)?, 1024);
    note.call(1000, (1024, &mut array))?;
    assert_eq!(Grid::from(8), Grid::cover(8));
    assert_eq!(Grid::from((16, 16)), Grid::cover_2d((16, 16), (8, 32)));
    assert_eq!(Grid::from((2, 3, 40)), Grid::cover_3d((2, 3, 40), (1, 8, 32)));
    Ok(())
}

#[test]
fn a_grid_keeps_its_shared_bytes_and_auto_changes_nothing_here() {
    let grid = Grid::cover(1000).shared_bytes(4096).auto();
    assert_eq!(grid.dynamic_shared_bytes(), 4096);
    assert_eq!(extents(grid), extents(Grid::cover(1000)));
}

#[test]
fn covering_nothing_queues_nothing_and_marks_nothing_written() -> Result<()> {
    let device = lab();
    let fill = Kernel::<(Out<f32>,)>::new("fill").host(|_grid, (xs,)| xs.fill(1.0));
    let mut array = SmartArray::<f32, _>::uninit(10);
    for empty in [
        Grid::cover(0),
        Grid::cover_2d((0, 5), (8, 8)),
        Grid::cover_3d((4, 0, 5), (1, 8, 8)),
        Grid::cover(0).auto(),
    ] {
        fill.launch_on(&device.stream(), empty, (&mut array,))?;
    }
    assert!(device.emulation().is_some_and(|log| log.calls().is_empty()), "nothing queued");
    assert!(matches!(array.host().map(drop), Err(Error::Uninitialised { .. })), "not written");
    fill.call(Grid::cover(0), (&mut array,))?;
    assert!(matches!(array.host().map(drop), Err(Error::Uninitialised { .. })));
    Ok(())
}

#[test]
fn a_zero_in_a_grid_is_an_error() {
    let add = Kernel::<(InOut<f32>,)>::new("add").host(|_grid, (_,)| {});
    let mut array = SmartArray::<f32, _>::zeros(10);
    let impossible = [
        (Grid::new(0, 1), "0 blocks"),
        (Grid::new(1, 0), "blocks of 0 threads"),
        (Grid::new((2, 0), 64), "2x0x1 blocks of 64x1x1 threads"),
        (Grid::new((1, 1, 1), (1, 1, 0)), "1x1x0 threads"),
        (Grid::cover_2d((4, 4), (0, 8)), "blocks of 0 threads"),
    ];
    for (grid, words) in impossible {
        let launched = add.launch_on(&lab().stream(), grid, (&mut array,));
        for refused in [launched, add.call(grid, (&mut array,))] {
            let Err(refused @ Error::Grid { .. }) = refused else { panic!("{refused:?}") };
            let text = refused.to_string();
            let said = [words, "\"add\"", "Grid::cover"].iter().all(|word| text.contains(word));
            assert!(said, "{words}: {text}");
        }
    }
}

#[test]
fn the_embedded_device_refuses_grids_that_no_gpu_launches() {
    let note = Kernel::<(InOut<f32>,)>::new("note").host(|_grid, (_,)| {});
    let mut array = SmartArray::<f32, _>::zeros(10);
    let cases = [
        (Grid::new(1, 1025), "1025 threads in a block, where 1024 is the most"),
        (Grid::new(1, (64, 32)), "2048 threads in a block"),
        (Grid::new(1, (1, 1, 65)), "65 threads in a block along z, where 64"),
        (Grid::new(1 << 31, 32), "2147483648 blocks along x"),
        (Grid::new((1, 65_536), 32), "65536 blocks along y"),
        (Grid::new((1, 1, 65_536), 32), "65536 blocks along z"),
        (Grid::new(1, 32).shared_bytes(232_449), "232449 bytes of dynamic shared memory"),
        (Grid::cover_2d((10, 10), (64, 64)), "4096 threads"),
    ];
    for (grid, words) in cases {
        for device in [lab(), Device::cpu()] {
            let refused = note.launch_on(&device.stream(), grid, (&mut array,));
            let refused = refused.expect_err("too large");
            assert!(matches!(refused, Error::Grid { .. }), "{refused:?}");
            assert!(refused.to_string().contains(words), "{refused}");
        }
        assert!(matches!(note.call(grid, (&mut array,)), Err(Error::Grid { .. })));
    }
    assert_eq!(array.traffic().to_device.count, 0);
    let most = Grid::new((i32::MAX as u32, 65_535, 65_535), (16, 1, 64)).shared_bytes(232_448);
    note.launch_on(&Device::cpu().stream(), most, (&mut array,)).expect("at the limits");
}

#[test]
fn an_emulated_device_has_the_limits_that_it_is_given() -> Result<()> {
    let seen = Kernel::<(Out<u32>,)>::new("seen").host(|grid, (out,)| {
        out.copy_from_slice(&[grid.threads().x, grid.threads().y, grid.blocks().y]);
    });
    let threads_max = Extent3 { x: 2048, y: 8, z: 1 };
    let limits = GridLimits { block_threads_max: 2048, threads_max, ..GridLimits::default() };
    let device = Device::emulated(Emulation::new().limits(limits));
    let mut array = SmartArray::<u32, _>::uninit(3);
    seen.launch_on(&device.stream(), Grid::new(1, 2048), (&mut array,))?;
    assert_eq!(array.to_vec()?, [2048, 1, 1]);
    assert_eq!(seen.attributes(&device)?.block_threads_max, 2048);
    let high = Grid::cover_2d((32, 100), (16, 100));
    let refused = seen.launch_on(&device.stream(), high, (&mut array,)).expect_err("too high");
    assert!(refused.to_string().contains("16 threads in a block along y, where 8"), "{refused}");
    // Automatic blocks become as small as the device needs them.
    seen.launch_on(&device.stream(), high.auto(), (&mut array,))?;
    assert_eq!(array.to_vec()?, [100, 8, 4]);
    Ok(())
}

#[test]
fn the_body_gets_the_grid_of_the_launch() -> Result<()> {
    let note = Kernel::<(Out<u32>,)>::new("note").host(|grid, (out,)| {
        out[0] = grid.blocks().x;
        out[1] = grid.threads().x;
        out[2] = grid.dynamic_shared_bytes();
    });
    let mut array = SmartArray::<u32, _>::uninit(3);
    note.launch_on(&lab().stream(), Grid::new(5, 64).shared_bytes(12), (&mut array,))?;
    assert_eq!(array.host()?.to_vec(), [5, 64, 12]);
    Ok(())
}
