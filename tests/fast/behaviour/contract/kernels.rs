//! Kernels.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use resident::ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2};
use support::prelude::*;

type Mixed = Kernel<(f32, In<f32>, InOut<f32, Ix2>, Out<u32, Ix1>)>;

fn mixed() -> Mixed {
    Kernel::<(f32, In<f32>, InOut<f32, Ix2>, Out<u32, Ix1>)>::new("mixed")
        .require("x fills y", |_grid, (_, x, y, _)| x.len() == y.len())
        .require("out is as long as y has rows", |_grid, (_, _, y, out)| {
            out.shape()[0] == y.shape()[0]
        })
        .require("a is positive", |grid, (a, ..)| a > 0.0 && grid.threads().x > 0)
        .host(|_grid, (a, x, y, out)| {
            let (a, x): (f32, &[f32]) = (a, x);
            let (mut y, mut out): (ArrayViewMut2<'_, f32>, ArrayViewMut1<'_, u32>) = (y, out);
            y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
            out.iter_mut().zip(y.rows()).for_each(|(out, row)| *out = row.sum() as u32);
        })
}

#[test]
fn kernels_are_cloned_shared_and_sent() {
    fn shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    let kernel = mixed();
    shared(&kernel);
    assert_eq!(kernel.clone().name(), "mixed");
    assert!(format!("{kernel:?}").contains("mixed"));
}

#[test]
fn a_launch_reads_writes_and_overwrites_as_its_signature_says() -> Result<()> {
    let device = lab();
    let _here = device.enter();
    let x = SmartArray::from(vec![1.0_f32; 6]);
    let mut y = SmartArray::from(Array2::<f32>::zeros((2, 3)));
    let mut out = SmartArray::from(vec![9_u32; 2]);
    mixed().launch(Grid::cover(6), (2.0, &x, &mut y, &mut out))?;
    assert_eq!(
        (moves(x.traffic()), moves(y.traffic())),
        ([(1, 24), (0, 0), (0, 0)], [(1, 24), (0, 0), (0, 0)])
    );
    assert_eq!(moves(out.traffic()), NOTHING, "an Out is not uploaded");
    assert_eq!(
        (x.residency().host(), y.residency().host(), out.residency().host()),
        (Valid, Stale, Stale)
    );
    assert_eq!((out.host()?.to_vec(), y.host()?.sum()), (vec![6, 6], 12.0));
    assert_eq!(device.traffic(), x.traffic() + y.traffic() + out.traffic());
    Ok(())
}

#[test]
fn avoided_is_what_a_copying_launcher_would_have_moved_and_we_did_not() -> Result<()> {
    let device = lab();
    let x = SmartArray::from(vec![1.0_f32; 6]);
    let mut y = SmartArray::from(Array2::<f32>::zeros((2, 3)));
    let mut out = SmartArray::<u32, _>::uninit(2);
    let avoided =
        |device: &Device| (device.traffic().avoided.count, device.traffic().avoided.bytes);
    mixed().launch_on(&device.stream(), Grid::cover(6), (2.0, &x, &mut y, &mut out))?;
    assert_eq!(avoided(&device), (4, 24 + 24 + 8 + 8), "three downloads, and the upload of `out`");
    mixed().launch_on(&device.stream(), Grid::cover(6), (2.0, &x, &mut y, &mut out))?;
    assert_eq!(avoided(&device), (10, 64 + 48 + 48 + 16), "three uploads and three downloads");
    assert_eq!(
        (x.traffic().avoided.bytes, y.traffic().avoided.bytes, out.traffic().avoided.bytes),
        (72, 72, 32)
    );
    Ok(())
}

#[test]
fn requirements_are_checked_before_anything_moves() -> Result<()> {
    let device = lab();
    let x = SmartArray::from(vec![1.0_f32; 5]);
    let mut y = SmartArray::from(Array2::<f32>::zeros((2, 3)));
    let mut out = SmartArray::<u32, _>::uninit(2);
    let refused = mixed()
        .launch_on(&device.stream(), Grid::cover(6), (2.0, &x, &mut y, &mut out))
        .expect_err("5 are not 6");
    assert!(matches!(refused, Error::Requirement { .. }), "{refused:?}");
    let good = SmartArray::<f32, _>::ones(6);
    assert!(
        mixed()
            .launch_on(&device.stream(), Grid::cover(6), (-1.0, &good, &mut y, &mut out))
            .is_err()
    );
    assert!(mixed().call(Grid::cover(6), (2.0, &x, &mut y, &mut out)).is_err(), "by `call` too");
    assert!(device.emulation().is_some_and(|log| log.calls().is_empty()));
    assert_eq!((moves(x.traffic()), x.traffic().avoided.count), (NOTHING, 0));
    Ok(())
}

#[test]
fn requirements_see_the_length_of_arrays() -> Result<()> {
    let some = Kernel::<(InOut<f32>,)>::new("some")
        .require("there are elements", |_grid, (x,)| !x.is_empty() && x.len() == x.shape()[0])
        .host(|_grid, (_,)| {});
    some.launch_on(&lab().stream(), Grid::cover(3), (&mut SmartArray::<f32, _>::ones(3),))?;
    let mut none = SmartArray::<f32, _>::ones(0);
    let refused = some.launch_on(&lab().stream(), Grid::cover(3), (&mut none,));
    assert!(matches!(refused, Err(Error::Requirement { .. })), "{refused:?}");
    Ok(())
}

#[test]
fn a_call_runs_the_host_body_on_the_host_copies_here_and_now() -> Result<()> {
    let device = lab();
    let mut x = SmartArray::from(vec![1.0_f32; 6]);
    drop(x.gpu_mut_on(&device.stream())?);
    let mut y = SmartArray::from(Array2::<f32>::zeros((2, 3)));
    let mut out = SmartArray::<u32, _>::uninit(2);
    let caller = std::thread::current().id();
    let here = Kernel::<(In<f32>, Out<u32>)>::new("here").host(move |_grid, (_, out)| {
        out.fill(u32::from(std::thread::current().id() == caller));
    });
    here.call(Grid::cover(2), (&x, &mut out))?;
    assert_eq!(out.host()?.to_vec(), [1, 1]);
    mixed().call(Grid::cover(6), (2.0, &x, &mut y, &mut out))?;
    assert_eq!((out.residency().host(), y.host()?.sum()), (Valid, 12.0));
    assert_eq!(moves(x.traffic()), [(1, 24), (1, 24), (0, 0)]);
    assert_eq!(moves(y.traffic()), NOTHING);
    let panicking =
        Kernel::<(InOut<f32>,)>::new("panicking").host(|_grid, (_,)| panic!("in the body"));
    let unwound = catch_unwind(AssertUnwindSafe(|| panicking.call(Grid::cover(6), (&mut y,))));
    assert!(unwound.is_err(), "in `call` a panic propagates");
    assert_eq!(y.host()?.sum(), 12.0);
    Ok(())
}

#[test]
fn a_body_runs_once_for_a_whole_launch() -> Result<()> {
    let runs = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&runs);
    let kernel = Kernel::<(InOut<f32>,)>::new("once").host(move |_grid, (_,)| {
        seen.fetch_add(1, Ordering::SeqCst);
    });
    let device = lab();
    kernel.launch_on(
        &device.stream(),
        Grid::new(100, 100),
        (&mut SmartArray::<f32, _>::zeros(10_000),),
    )?;
    device.synchronize()?;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    Ok(())
}

#[test]
fn sized_parameters_take_any_layout_and_strided_parts() -> Result<()> {
    let device = lab();
    let copy =
        Kernel::<(In<i32, Ix2>, Out<i32, Ix2>)>::new("copy").host(|_grid, (from, mut to)| {
            let from: ArrayView2<'_, i32> = from;
            to.assign(&from);
        });
    let plain = Array2::from_shape_fn((6, 8), |(i, j)| (i * 8 + j) as i32);
    let mut source = SmartArray::from(plain.clone());
    drop(source.gpu_mut_on(&device.stream())?);
    let mut target = SmartArray::<i32, _>::full((6, 8).f(), -1);
    macro_rules! copies {
        ($($from:expr => $to:expr),+) => {$({
            let arguments = (&source.slice($from), &mut target.slice_mut($to));
            copy.launch_on(&device.stream(), Grid::cover(1), arguments)?;
            let what = stringify!($from => $to);
            assert_eq!(*target.slice($to).host()?, plain.slice($from), "{what}");
        })+};
    }
    copies!(
        s![.., ..] => s![.., ..],
        s![..;-1, ..] => s![.., ..],
        s![1..4, ..;3] => s![..;2, 5..8],
        s![..;-2, ..;-1] => s![3..;-1, ..],
        s![2..3, 1..2] => s![5.., 7..],
        s![0..0, ..] => s![3..3, ..]
    );
    assert_ordered(&device);
    Ok(())
}

#[test]
fn flat_parameters_come_in_memory_order() -> Result<()> {
    let device = lab();
    let number = Kernel::<(Out<u32>,)>::new("number")
        .host(|_grid, (xs,)| xs.iter_mut().zip(0..).for_each(|(x, number)| *x = number));
    let mut columns = SmartArray::<u32, _>::uninit((2, 3).f());
    number.launch_on(&device.stream(), Grid::cover(6), (&mut columns,))?;
    assert_eq!(*columns.host()?, ndarray::array![[0, 2, 4], [1, 3, 5]]);
    let mut rows = SmartArray::<u32, _>::uninit((4, 3));
    rows.fill(7)?;
    number.launch_on(&device.stream(), Grid::cover(6), (&mut rows.slice_mut(s![1..3, ..]),))?;
    assert_eq!(
        rows.host()?.iter().copied().collect::<Vec<_>>(),
        [7, 7, 7, 0, 1, 2, 3, 4, 5, 7, 7, 7]
    );
    Ok(())
}

#[test]
fn flat_parameters_want_unbroken_memory() -> Result<()> {
    let device = lab();
    let touch = Kernel::<(InOut<u32>,)>::new("touch").host(|_grid, (_,)| {});
    let mut array = SmartArray::<u32, _>::zeros((4, 6));
    for refused in [
        touch.launch_on(&device.stream(), Grid::cover(1), (&mut array.slice_mut(s![.., ..3]),)),
        touch.launch_on(&device.stream(), Grid::cover(1), (&mut array.slice_mut(s![.., 2]),)),
        touch.call(Grid::cover(1), (&mut array.slice_mut(s![..;2, ..]),)),
    ] {
        assert!(matches!(refused, Err(Error::NotContiguous { .. })), "{refused:?}");
    }
    touch.launch_on(&device.stream(), Grid::cover(1), (&mut array.slice_mut(s![1..2, 2..5]),))?;
    touch.launch_on(&device.stream(), Grid::cover(1), (&mut array.slice_mut(s![2, ..]),))?;
    touch.launch_on(&device.stream(), Grid::cover(1), (&mut array.slice_mut(s![3, 3]),))?;
    Ok(())
}

/// Elements at one position in memory have one index if the views run alike.
#[test]
fn flat_arguments_may_run_backwards_alike() -> Result<()> {
    let stream = lab().stream();
    let add = Kernel::<(In<u32>, InOut<u32>)>::new("add")
        .host(|_grid, (x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y += x));
    let numbers = || Array2::from_shape_fn((3, 4), |(i, j)| (10 * i + j) as u32);
    let (x, mut y) = (SmartArray::from(numbers()), SmartArray::from(numbers()));
    let both = s![..;-1, ..;-1];
    add.launch_on(&stream, Grid::cover(12), (&x.slice(both), &mut y.slice_mut(both)))?;
    let rows = s![..;-1, ..];
    add.launch_on(&stream, Grid::cover(12), (&x.slice(rows), &mut y.slice_mut(rows)))?;
    let turned = (&x.slice(rows).reversed_axes(), &mut y.slice_mut(rows).reversed_axes());
    add.launch_on(&stream, Grid::cover(12), turned)?;
    assert_eq!(*y.host()?, numbers() * 4);
    for (one, other) in [(both, rows), (rows, both), (s![.., ..;-1], both), (rows, s![..;1, ..;1])]
    {
        let refused =
            add.launch_on(&stream, Grid::cover(12), (&x.slice(one), &mut y.slice_mut(other)));
        assert!(matches!(refused, Err(Error::LayoutMismatch { .. })), "{one:?} {other:?}");
    }
    let refused = add.launch_on(&stream, Grid::cover(12), (&x, &mut y.slice_mut(rows)));
    assert!(matches!(refused, Err(Error::LayoutMismatch { .. })), "{refused:?}");
    Ok(())
}

/// One line: alike is all that counts.
#[test]
fn flat_lines_may_run_backwards_alike() -> Result<()> {
    let stream = lab().stream();
    let add = Kernel::<(In<u32>, InOut<u32>)>::new("add")
        .host(|_grid, (x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y += x));
    let (x, mut y) = (SmartArray::from([1_u32, 2, 3]), SmartArray::from([10_u32, 20, 30]));
    let backwards = s![..;-1];
    add.launch_on(&stream, Grid::cover(3), (&x.slice(backwards), &mut y.slice_mut(backwards)))?;
    assert_eq!(y.to_vec()?, [11, 22, 33]);
    let refused = add.launch_on(&stream, Grid::cover(3), (&x, &mut y.slice_mut(backwards)));
    assert!(matches!(refused, Err(Error::LayoutMismatch { .. })), "{refused:?}");
    let refused = add.launch_on(&stream, Grid::cover(3), (&x.slice(backwards), &mut y));
    assert!(matches!(refused, Err(Error::LayoutMismatch { .. })), "{refused:?}");
    // A single element runs nowhere.
    let last = s![2..;-1];
    add.launch_on(&stream, Grid::cover(1), (&x.slice(last), &mut y.slice_mut(s![..1])))?;
    assert_eq!(y.to_vec()?, [14, 22, 33]);
    Ok(())
}

#[test]
fn flat_arguments_of_one_launch_have_one_axis_order() -> Result<()> {
    let device = lab();
    let add = Kernel::<(In<u32>, InOut<u32>)>::new("add")
        .host(|_grid, (x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y += x));
    let rows = SmartArray::<u32, _>::ones((2, 3));
    let line = SmartArray::<u32, _>::ones(6);
    let mut columns = SmartArray::<u32, _>::zeros((2, 3).f());
    let refused = add.launch_on(&device.stream(), Grid::cover(6), (&rows, &mut columns));
    assert!(matches!(refused, Err(Error::LayoutMismatch { .. })), "{refused:?}");
    assert!(add.call(Grid::cover(6), (&rows, &mut columns)).is_err());
    add.launch_on(&device.stream(), Grid::cover(6), (&line, &mut columns))?;
    let sized = Kernel::<(In<u32, Ix2>, InOut<u32>)>::new("sized").host(|_grid, (_, _)| {});
    sized.launch_on(&device.stream(), Grid::cover(6), (&rows, &mut columns))?;
    assert_eq!(columns.host()?.sum(), 6);
    Ok(())
}

#[test]
fn flat_arguments_without_elements_have_any_order() -> Result<()> {
    let copy = Kernel::<(In<u32>, Out<u32>)>::new("copy")
        .host(|_grid, (from, to)| to.copy_from_slice(from));
    let from = SmartArray::<u32, _>::ones((2, 3));
    let mut to = SmartArray::<u32, _>::zeros((2, 3));
    copy.launch_on(
        &lab().stream(),
        Grid::cover(1),
        (&from.slice(s![1..1, ..]), &mut to.slice_mut(s![2..2, ..;-1])),
    )?;
    copy.call(Grid::cover(1), (&from.slice(s![1..1, ..;-1]), &mut to.slice_mut(s![.., 3..])))
}
