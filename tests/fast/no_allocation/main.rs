//! In the steady state, the calling thread allocates no heap memory.

use std::hint::black_box;

use resident::ndarray::{Axis, Ix2, Order, s};
use resident::{
    Arguments, Device, DeviceArray, Grid, In, InOut, Kernel, Out, PinnedArray, Result, Signature,
    SmartArray, Stream,
};
use support::allocations;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// A stream that no other test uses: work of other tests would make its queue grow at arbitrary
/// times.
fn own_stream() -> Result<Stream> {
    Device::cpu().new_stream()
}

/// The allocations of this thread in 100 rounds, after 200 warm-up rounds in which queues and
/// tables reach their final size. The least of five counts: a queue may become longer than ever
/// because the system is slow to run the worker, which happens once in many rounds.
fn in_steady_state(mut round: impl FnMut() -> Result<()>) -> Result<u64> {
    for _ in 0..200 {
        round()?;
    }
    let mut fewest = u64::MAX;
    for _ in 0..5 {
        let before = allocations::of_this_thread();
        for _ in 0..100 {
            round()?;
        }
        fewest = fewest.min(allocations::of_this_thread() - before);
    }
    Ok(fewest)
}

#[track_caller]
fn assert_none(round: impl FnMut() -> Result<()>) {
    assert_eq!(in_steady_state(round).expect("nothing fails"), 0);
}

type Table = SmartArray<f32, Ix2>;

fn ones() -> Table {
    Table::ones((16, 16))
}

#[test]
fn the_counter_counts() -> Result<()> {
    let allocate = || {
        drop(black_box(Box::new(1)));
        Ok(())
    };
    assert_eq!(in_steady_state(allocate)?, 100);
    Ok(())
}

#[test]
fn views_of_up_to_four_axes() -> Result<()> {
    let mut array = SmartArray::<f32, _>::zeros((4, 6, 5, 3));
    let mut dynamic = SmartArray::<f32, _>::zeros((4, 6, 5, 3)).into_dyn();
    assert_none(|| {
        let view = array.slice(s![1..3, ..;-1, .., 2]);
        black_box((view.t(), view.permuted_axes([1, 0, 2]), view.index_axis(Axis(1), 3)));
        black_box((view.insert_axis(Axis(0)), array.broadcast((4, 6, 5, 3))?));
        black_box((array.reshape((24, 15))?, array.axis_iter(Axis(0)).nth(2)));
        black_box(array.view_mut().reversed_axes().remove_axis(Axis(3)).len());
        black_box(array.axis_chunks_iter_mut(Axis(1), 2).map(|part| part.len()).sum::<usize>());
        black_box((dynamic.t(), dynamic.index_axis(Axis(0), 1)));
        black_box(dynamic.view_mut().reversed_axes().len());
        Ok(())
    });
    Ok(())
}

#[test]
fn views_of_device_arrays_of_up_to_four_axes() -> Result<()> {
    let stream = own_stream()?;
    let mut array = DeviceArray::<f32, _>::zeros_on(&stream, (4, 6, 5, 3))?;
    let mut dynamic = DeviceArray::<f32, _>::zeros_on(&stream, (4, 6, 5, 3))?.into_dyn();
    assert_none(|| {
        let view = array.slice(s![1..3, ..;-1, .., 2]);
        black_box((view.t(), view.permuted_axes([1, 0, 2]), view.index_axis(Axis(1), 3)));
        black_box((view.insert_axis(Axis(0)), array.broadcast((4, 6, 5, 3))?, array.view()));
        black_box((array.reshape((24, 15), Order::C)?, array.axis_iter(Axis(0)).nth(2)));
        black_box((array.ravel(Order::C)?, view.split_at(Axis(0), 1)));
        black_box(array.slice_mut(s![.., 1.., ..;2, 0]).view().len());
        black_box(array.view_mut().reversed_axes().remove_axis(Axis(3)).len());
        black_box(array.view_mut().into_shape((24, 15), Order::C)?.len());
        black_box(array.axis_iter_mut(Axis(0)).map(|part| part.len()).sum::<usize>());
        black_box(array.axis_chunks_iter_mut(Axis(1), 2).map(|part| part.len()).sum::<usize>());
        black_box((dynamic.t(), dynamic.index_axis(Axis(0), 1)));
        black_box(dynamic.view_mut().reversed_axes().len());
        Ok(())
    });
    Ok(())
}

#[test]
fn reading_on_the_host_what_is_valid_there() -> Result<()> {
    let array = ones();
    assert_none(|| array.host().map(drop));
    let part = array.slice(s![2..5, 3..;2]);
    assert_none(|| part.host().map(drop));
    assert_none(|| array.slice(s![1.., ..3]).host().map(drop));
    Ok(())
}

#[test]
fn reading_on_a_device_what_is_valid_there() -> Result<()> {
    let stream = own_stream()?;
    let array = ones();
    assert_none(|| array.gpu_on(&stream).map(drop));
    assert_none(|| array.slice(s![1.., ..3]).gpu_on(&stream).map(drop));
    Ok(())
}

#[test]
fn the_first_read_on_a_stream_of_what_is_valid_on_its_device() -> Result<()> {
    let stream = own_stream()?;
    let arrays: Vec<_> = (0..700).map(|_| ones()).collect();
    for array in &arrays {
        array.prefetch(&stream)?;
    }
    stream.synchronize()?;
    let mut fresh = arrays.iter();
    assert_none(|| fresh.next().expect("700 rounds").gpu_on(&stream).map(drop));
    Ok(())
}

/// Launches return when they are queued, so each round waits; otherwise the queue would grow.
#[track_caller]
fn assert_none_launched<S: Signature>(kernel: &Kernel<S>)
where
    for<'a> (f32, &'a Table, &'a Table, &'a mut Table, &'a mut Table): Arguments<S>,
{
    let (stream, a, b) = (own_stream().expect("a stream"), ones(), ones());
    let (mut c, mut d) = (Table::zeros((16, 16)), Table::uninit((16, 16)));
    assert_none(|| {
        kernel.launch_on(&stream, Grid::cover(1), (1.0, &a, &b, &mut c, &mut d))?;
        stream.synchronize()
    });
}

type Four<D> = (f32, In<f32, D>, In<f32, D>, InOut<f32, D>, Out<f32, D>);

#[test]
fn a_sized_launch_of_four_arrays() {
    let kernel = Kernel::<Four<Ix2>>::new("four")
        .require("sizes", |_, (_, a, b, ..)| a.len() == b.len())
        .host(|_grid, _| {});
    assert_none_launched(&kernel);
}

#[test]
fn a_flat_launch_of_four_arrays() {
    type Flat = (f32, In<f32>, In<f32>, InOut<f32>, Out<f32>);
    let kernel = Kernel::<Flat>::new("four")
        .require("sizes", |_, (_, a, b, ..)| a.len() == b.len())
        .host(|_grid, _| {});
    assert_none_launched(&kernel);
}

#[test]
fn a_launch_on_parts_of_arrays() -> Result<()> {
    let kernel = Kernel::<Four<Ix2>>::new("four").host(|_grid, _| {});
    let stream = own_stream()?;
    let (a, b) = (ones(), ones());
    let (mut c, mut d) = (Table::zeros((16, 16)), Table::zeros((16, 16)));
    assert_none(|| {
        let (inner, mut c, mut d) =
            (s![1..15, 1..15], c.slice_mut(s![1..15, 1..15]), d.slice_mut(s![1..15, 1..15]));
        let arguments = (1.0, &a.slice(inner), &b.slice(inner), &mut c, &mut d);
        kernel.launch_on(&stream, Grid::cover(1), arguments)?;
        stream.synchronize()
    });
    Ok(())
}

/// What is allocated is the description of the copy, its place in the queue and its event. It does
/// not grow with the contents.
#[test]
fn a_snapshot_into_pinned_memory() -> Result<()> {
    let stream = own_stream()?;
    let copied = |len: usize| -> Result<(u64, i64)> {
        let mut array = SmartArray::<f32, _>::zeros(len);
        let mut memory = PinnedArray::<f32, _>::uninit(len)?;
        let mut largest = 0;
        let allocations = in_steady_state(|| {
            drop(array.gpu_overwrite_on(&stream)?);
            let before = allocations::live_bytes_of_this_thread();
            array.snapshot_into(&stream, &mut memory)?;
            largest = largest.max(allocations::live_bytes_of_this_thread() - before);
            memory.host().map(drop)
        })?;
        Ok((allocations, largest))
    };
    let (small, large) = (copied(16)?, copied(1 << 16)?);
    assert!(small.0 <= 300 && large.0 <= 300, "allocations: {small:?} {large:?}");
    assert!(large.1 < 4096, "live bytes: {small:?} {large:?}");
    Ok(())
}

#[test]
fn a_flip_of_sides_without_a_copy() -> Result<()> {
    let stream = own_stream()?;
    let mut array = ones();
    assert_none(|| {
        drop(array.gpu_overwrite_on(&stream)?);
        drop(array.host_overwrite()?);
        Ok(())
    });
    Ok(())
}

#[test]
fn a_single_element_written_on_the_host() -> Result<()> {
    let mut array = ones();
    assert_none(|| array.set((3, 4), 2.0));
    Ok(())
}

/// The launch between the accesses represents foreign work (work that other code queues while the
/// guard lives).
#[test]
fn a_flip_of_sides_of_a_part() -> Result<()> {
    let stream = own_stream()?;
    let touch = Kernel::<(InOut<f32>,)>::new("touch").host(|_grid, _| {});
    let (mut array, mut other) = (ones(), SmartArray::<f32, _>::zeros(4));
    let mut part = array.slice_mut(s![4..8, 2..]);
    assert_none(|| {
        let guard = part.gpu_overwrite_on(&stream)?;
        touch.launch_on(&stream, Grid::cover(4), (&mut other,))?;
        stream.synchronize()?;
        drop(guard);
        drop(part.host_overwrite()?);
        Ok(())
    });
    Ok(())
}
