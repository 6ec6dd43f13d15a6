//! Grids.

use resident::{Error, Extent3, Grid, InOut, Kernel, Out, Result, SmartArray};

use support::lab::lab;

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
    assert!(
        matches!(array.host().map(drop), Err(Error::Uninitialised { .. })),
        "nothing marked written"
    );
    fill.call(Grid::cover(0), (&mut array,))?;
    assert!(matches!(array.host().map(drop), Err(Error::Uninitialised { .. })));
    Ok(())
}

#[test]
fn a_zero_in_a_grid_is_an_error() {
    let add = Kernel::<(InOut<f32>,)>::new("add").host(|_grid, (_,)| {});
    let mut array = SmartArray::<f32, _>::zeros(10);
    let impossible = [
        Grid::new(0, 1),
        Grid::new(1, 0),
        Grid::new((1, 0), (1, 1)),
        Grid::new((1, 1, 1), (1, 1, 0)),
        Grid::cover_2d((4, 4), (0, 8)),
    ];
    for grid in impossible {
        let refused = add.launch_on(&lab().stream(), grid, (&mut array,)).expect_err("a zero");
        assert!(matches!(refused, Error::Grid { .. }), "{refused:?}");
    }
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
