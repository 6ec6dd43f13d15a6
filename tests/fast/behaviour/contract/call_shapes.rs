//! Calls in the forms that programs use. Most of these tests check only that the calls compile.

use resident::bytemuck::{Pod, Zeroable};
use resident::ndarray::{Array0, Ix0, Ix3};
use support::prelude::*;

fn axpy() -> Kernel<(f32, In<f32>, InOut<f32>)> {
    Kernel::<(f32, In<f32>, InOut<f32>)>::new("axpy").host(|_grid, (a, x, y)| {
        for (y, x) in y.iter_mut().zip(x) {
            *y += a * x;
        }
    })
}

#[test]
fn scalars_come_by_value_and_by_reference_and_literals_infer() -> Result<()> {
    let stream = lab().stream();
    let (x, mut y) = (SmartArray::<f32, _>::ones(4), SmartArray::<f32, _>::zeros(4));
    let factor = 3.0;
    let (typed, borrowed): (f32, &f32) = (1.0, &2.0);
    axpy().launch_on(&stream, Grid::cover(4), (2.0, &x, &mut y))?;
    axpy().launch_on(&stream, Grid::cover(4), (factor, &x, &mut y))?;
    axpy().launch_on(&stream, Grid::cover(4), (&factor, &x, &mut y))?;
    axpy().launch_on(&stream, Grid::cover(4), (typed, &x, &mut y))?;
    axpy().launch_on(&stream, Grid::cover(4), (borrowed, &x, &mut y))?;
    axpy().launch_on(&stream, Grid::cover(4), (&-1.0, &x, &mut y))?;
    axpy().launch_on(&stream, Grid::cover(4), (factor * 2.0 - 1.0, &x, &mut y))?;
    axpy().launch_on(&stream, Grid::cover(4), (f32::from(1_i16), &x, &mut y))?;
    assert_eq!(y.host()?.to_vec(), [2.0 + 3.0 + 3.0 + 1.0 + 2.0 - 1.0 + 5.0 + 1.0; 4]);
    let count =
        Kernel::<(u32, usize, i8, u8, Out<u64>)>::new("count").host(|_grid, (a, b, c, d, out)| {
            out[0] = u64::from(a) + b as u64 + c as u64 + u64::from(d);
        });
    let mut out = SmartArray::<u64, _>::uninit(1);
    count.launch_on(&stream, Grid::cover(1), (1, x.len(), 3, b'a', &mut out))?;
    assert_eq!(out.host()?[0], 1 + 4 + 3 + 97);
    Ok(())
}

#[test]
fn arguments_may_be_temporaries_and_views() -> Result<()> {
    let device = lab();
    let mut y = SmartArray::<f32, _>::zeros((4, 5));
    axpy().launch_on(
        &device.stream(),
        Grid::cover(5),
        (1.0, &SmartArray::from(vec![1.0; 5]), &mut y.slice_mut(s![0, ..])),
    )?;
    let (upper, mut lower) = y.split_at_mut(Axis(0), 2);
    axpy().launch_on(&device.new_stream()?, Grid::cover(10), (1.0, &upper.view(), &mut lower))?;
    axpy().launch_on(
        &device.stream(),
        Grid::cover(5),
        (1.0, &upper.slice(s![0, ..]), &mut lower.reborrow()),
    )?;
    axpy().launch_on(&device.stream(), Grid::cover(5), (1.0, &upper, &mut lower))?;
    assert_eq!(y.host()?.row(2).to_vec(), [3.0; 5]);
    Ok(())
}

fn through_references(
    stream: &Stream,
    x: &SmartArray<f32, Ix1>,
    view: SmartView<'_, f32, Ix1>,
    y: &mut SmartArray<f32, Ix1>,
    mut part: SmartViewMut<'_, f32, Ix1>,
    exclusive: &mut SmartViewMut<'_, f32, Ix1>,
) -> Result<()> {
    axpy().launch_on(stream, Grid::cover(x.len()), (1.0, x, &mut *y))?;
    axpy().launch_on(stream, Grid::cover(x.len()), (1.0, &view, &mut *y))?;
    axpy().launch_on(stream, Grid::cover(x.len()), (1.0, x, y))?;
    axpy().launch_on(stream, Grid::cover(x.len()), (1.0, x, &mut part))?;
    axpy().launch_on(stream, Grid::cover(x.len()), (1.0, x, &mut *exclusive))?;
    axpy().launch_on(stream, Grid::cover(x.len()), (1.0, x, exclusive))
}

#[test]
fn arguments_pass_through_functions() -> Result<()> {
    let stream = lab().stream();
    let x = SmartArray::<f32, _>::ones(4);
    let (mut y, mut both) = (SmartArray::<f32, _>::zeros(4), SmartArray::<f32, _>::zeros(8));
    let (part, mut exclusive) = both.split_at_mut(Axis(0), 4);
    through_references(&stream, &x, x.view(), &mut y, part, &mut exclusive)?;
    assert_eq!(
        (y.host()?[0], both.host()?.to_vec()),
        (3.0, vec![1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0])
    );
    Ok(())
}

#[test]
fn streams_may_be_temporaries() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1_u8; 4]);
    let guard = array.gpu_on(&device.stream())?;
    assert_eq!(guard.len(), 4);
    let guard = array.gpu_mut_on(&device.new_stream()?)?;
    assert_eq!(guard.len(), 4);
    drop(guard);
    assert_eq!(array.snapshot_on(&device.stream())?.wait()?.len(), 4);
    array.fill_on(&Device::cpu().stream(), 2)
}

/// Kernels with 16 parameters, which is the maximum, and with one.
#[test]
fn a_kernel_has_up_to_sixteen_parameters() -> Result<()> {
    type I = In<u32>;
    let sum = Kernel::<(I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, Out<u32>)>::new("sum")
        .require("all are as long", |_grid, (a, .., out)| a.len() == out.len())
        .host(|_grid, (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, out)| {
            let all = [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o];
            out.iter_mut()
                .enumerate()
                .for_each(|(index, out)| *out = all.iter().map(|xs| xs[index]).sum());
        });
    let x = SmartArray::from(vec![1_u32, 2]);
    let mut out = SmartArray::<u32, _>::uninit(2);
    sum.launch_on(
        &lab().stream(),
        Grid::cover(2),
        (&x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &x, &mut out),
    )?;
    assert_eq!(out.host()?.to_vec(), [15, 30]);
    let one = Kernel::<(Out<u32>,)>::new("one").host(|_grid, (out,)| out.fill(1));
    one.launch_on(&lab().stream(), Grid::cover(2), (&mut out,))?;
    assert_eq!(out.host()?.to_vec(), [1, 1]);
    Ok(())
}

#[test]
fn scalars_without_arrays_are_a_signature() -> Result<()> {
    let (send, receive) = std::sync::mpsc::channel();
    let tell = Kernel::<(u32, f64)>::new("tell")
        .host(move |_grid, (count, value)| send.send((count, value)).expect("the test listens"));
    tell.launch_on(&lab().stream(), Grid::cover(1), (3, 0.5))?;
    assert_eq!(receive.recv(), Ok((3, 0.5)));
    Ok(())
}

#[test]
fn dimensions_may_be_dynamic_or_none() -> Result<()> {
    let stream = lab().stream();
    let mut dynamic = SmartArray::from(ArrayD::<f32>::ones(IxDyn(&[2, 3, 4])));
    let double = Kernel::<(InOut<f32, IxDyn>,)>::new("double").host(|_grid, (mut xs,)| xs *= 2.0);
    double.launch_on(&stream, Grid::cover(24), (&mut dynamic,))?;
    assert_eq!(dynamic.host()?[[1, 2, 3].as_slice()], 2.0);
    assert_eq!((dynamic.get(IxDyn(&[0, 1, 2]))?, dynamic.get(vec![0, 1, 2])?), (2.0, 2.0));
    let mut one: SmartArray<f32, Ix0> = SmartArray::from(Array0::from_elem((), 3.0));
    let square =
        Kernel::<(InOut<f32, Ix0>, InOut<f32>)>::new("square").host(|_grid, (mut x, xs)| {
            x[()] *= 3.0;
            xs[0] += 1.0;
        });
    let mut flat = SmartArray::<f32, _>::zeros(());
    square.launch_on(&stream, Grid::cover(1), (&mut one, &mut flat))?;
    assert_eq!((one.host()?[()], flat.host()?[()]), (9.0, 1.0));
    let three =
        Kernel::<(In<f32, Ix3>, Out<f32, Ix2>)>::new("three").host(|_grid, (from, mut to)| {
            to.assign(&from.sum_axis(Axis(0)));
        });
    let mut flat = SmartArray::<f32, _>::uninit((3, 4));
    three.launch_on(
        &stream,
        Grid::cover(12),
        (&SmartArray::<f32, _>::ones((2, 3, 4)), &mut flat),
    )?;
    assert_eq!(flat.host()?.sum(), 24.0);
    Ok(())
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
#[bytemuck(crate = "resident::bytemuck")]
struct Complex {
    re: f32,
    im: f32,
}

#[test]
fn structs_are_elements_and_scalars() -> Result<()> {
    let stream = lab().stream();
    let turn = Kernel::<(Complex, InOut<Complex>)>::new("turn").host(|_grid, (by, xs)| {
        for x in xs {
            *x = Complex { re: x.re * by.re - x.im * by.im, im: x.re * by.im + x.im * by.re };
        }
    });
    let mut array = SmartArray::from(Array2::from_elem((2, 2), Complex { re: 1.0, im: 2.0 }));
    turn.launch_on(&stream, Grid::cover(4), (Complex { re: 0.0, im: 1.0 }, &mut array))?;
    turn.launch_on(&stream, Grid::cover(4), (&Complex { re: 0.0, im: 1.0 }, &mut array))?;
    assert_eq!(array.get((1, 1))?, Complex { re: -1.0, im: -2.0 });
    array.fill(Complex { re: 0.5, im: 0.5 })?;
    assert_eq!(array.host()?[[0, 1]], Complex { re: 0.5, im: 0.5 });
    Ok(())
}

#[test]
fn indices_and_values_come_in_ndarrays_shapes() -> Result<()> {
    let mut line = SmartArray::<f32, _>::zeros(4);
    line.set(1, 2.0)?;
    line.set([2], 3.0)?;
    line.set((3,), 4.0)?;
    assert_eq!(
        (line.get(1)?, line.get([2])?, line.get((3,))?, line.get(Ix1(0))?),
        (2.0, 3.0, 4.0, 0.0)
    );
    let mut grid = SmartArray::from(Array2::<f32>::zeros([2, 2]));
    grid.set([1, 0], 1.0)?;
    assert_eq!(grid.get((1, 0))? + grid.get(Ix2(1, 0))?, 2.0);
    line.assign(&SmartArray::from(Array1::from_elem(4, 1.0)))?;
    line.assign(&SmartArray::from(Array2::from_elem((2, 4), 5.0)).slice(s![0, ..]))?;
    grid.slice_mut(s![0, ..]).assign(&line.slice_mut(s![..2]).view())?;
    assert_eq!(grid.host()?.sum(), 11.0);
    Ok(())
}

#[test]
fn a_kernel_is_kept_in_a_struct_and_used_from_threads() -> Result<()> {
    struct Steps {
        axpy: Kernel<(f32, In<f32>, InOut<f32>)>,
    }
    let steps = Steps { axpy: axpy() };
    let device = lab();
    let x = SmartArray::<f32, _>::ones(4);
    let sums = std::thread::scope(|scope| {
        let run = || -> Result<f32> {
            let _here = device.enter();
            let mut y = SmartArray::<f32, _>::zeros(4);
            steps.axpy.launch(Grid::cover(y.len()), (2.0, &x, &mut y))?;
            Ok(y.host()?.sum())
        };
        let threads = [scope.spawn(run), scope.spawn(run)];
        threads.map(|thread| thread.join().expect("no panic"))
    });
    for sum in sums {
        assert_eq!(sum?, 8.0);
    }
    Ok(())
}

#[test]
fn names_are_any_string() {
    let owned = String::from("owned");
    assert_eq!(Kernel::<(f32,)>::new(owned.clone()).name(), "owned");
    assert_eq!(Kernel::<(f32,)>::new(owned.as_str()).name(), "owned");
    let text = format!("at most {}", 3);
    let _ = Kernel::<(f32,)>::new("limits")
        .require(text, |_grid, (x,)| x < 3.0)
        .require("static", |_, _| true);
}
