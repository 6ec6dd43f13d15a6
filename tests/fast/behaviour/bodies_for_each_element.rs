//! Bodies that are called for each element of the outputs, on all cores.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use resident::launch::Slice;
use resident::ndarray::{ArrayViewMut2, Ix0, Ix3, Ix4, Ix5, Ix6};
use resident::{Arguments, Signature};
use support::bodies::{Gate, add, broken_update, one};
use support::prelude::*;

/// A table of so many elements is several tasks.
const ROWS: usize = 24;
const COLUMNS: usize = 20;
const LEN: usize = ROWS * COLUMNS;

type Numbers = SmartArray<u32, Ix1>;

/// Where a body runs.
enum Place {
    On(Stream),
    Here,
}

impl Place {
    fn launch<S: Signature>(&self, kernel: &Kernel<S>, arguments: impl Arguments<S>) -> Result<()> {
        match self {
            Self::On(stream) => kernel.launch_on(stream, one(), arguments),
            Self::Here => kernel.call(one(), arguments),
        }
    }
}

fn places() -> [Place; 4] {
    let [seeded, plain] = [Emulation::new().seed(7), Emulation::new()].map(Device::emulated);
    let [seeded, plain, cpu] = [seeded, plain, Device::cpu()].map(|it| Place::On(it.stream()));
    [seeded, plain, cpu, Place::Here]
}

/// A part of a table, of a `SmartArray` and of ndarray's.
struct Layout {
    name: &'static str,
    table: [usize; 2],
    smart: fn(SmartViewMut<'_, u32, Ix2>) -> SmartViewMut<'_, u32, Ix2>,
    plain: fn(ArrayViewMut2<'_, u32>) -> ArrayViewMut2<'_, u32>,
}

macro_rules! layouts {
    ($($name:literal $table:expr, |$a:ident| $part:expr;)*) => {
        &[$(Layout { name: $name, table: $table, smart: |$a| $part, plain: |$a| $part }),*]
    };
}

/// All have `ROWS` rows of `COLUMNS`.
const LAYOUTS: &[Layout] = layouts! {
    "row by row" [ROWS, COLUMNS], |a| a;
    "column by column" [COLUMNS, ROWS], |a| a.reversed_axes();
    "last row first" [ROWS, COLUMNS], |a| a.slice_move(s![..;-1, ..]);
    "last column first" [ROWS, COLUMNS], |a| a.slice_move(s![.., ..;-1]);
    "every other column" [ROWS, 2 * COLUMNS], |a| a.slice_move(s![.., ..;2]);
    "within a larger table" [ROWS + 3, COLUMNS + 5],
        |a| a.slice_move(s![1..=ROWS, 2..COLUMNS + 2]);
    "every third column of a larger table, as a row, the last first" [COLUMNS + 1, 3 * ROWS],
        |a| a.slice_move(s![1.., ..;-3]).reversed_axes();
};

fn table([rows, columns]: [usize; 2]) -> Array2<u32> {
    Array2::from_shape_fn((rows, columns), |(i, j)| (1000 * i + j) as u32)
}

#[test]
fn every_layout_of_every_output_beside_loops() -> Result<()> {
    let kernel = Kernel::<(u32, In<u32, Ix2>, InOut<u32, Ix2>, Out<u32, Ix2>)>::new("each")
        .host_each(|(i, j), (k, x, y, z)| {
            *z = k + x[[i, j]] + *y;
            *y = (COLUMNS * i + j) as u32;
        });
    for (place, changed, written) in places().iter().flat_map(|place| {
        let pairs = LAYOUTS.iter().flat_map(|y| LAYOUTS.iter().map(move |z| (y, z)));
        pairs.map(move |(y, z)| (place, y, z))
    }) {
        let x = table([ROWS, COLUMNS]);
        let (mut y, mut z) = (table(changed.table), table(written.table));
        let smart_x = SmartArray::from(x.clone());
        let mut smart_y = SmartArray::from(y.clone());
        let mut smart_z = SmartArray::from(z.clone());
        let parts = (
            7,
            &smart_x,
            &mut (changed.smart)(smart_y.view_mut()),
            &mut (written.smart)(smart_z.view_mut()),
        );
        place.launch(&kernel, parts)?;
        let (mut changes, mut writes) =
            ((changed.plain)(y.view_mut()), (written.plain)(z.view_mut()));
        for ((i, j), z) in writes.indexed_iter_mut() {
            *z = 7 + x[[i, j]] + changes[[i, j]];
            changes[[i, j]] = (COLUMNS * i + j) as u32;
        }
        assert!(*smart_y.host()? == y, "{} and {}", changed.name, written.name);
        assert!(*smart_z.host()? == z, "{} and {}", changed.name, written.name);
    }
    Ok(())
}

/// A number for an index.
fn number(index: &[usize]) -> u32 {
    index.iter().fold(1, |number, index| 10 * number + *index as u32)
}

/// Compares a body for arrays of these axes with a loop.
macro_rules! assert_rank {
    ($dimension:ty, $shape:expr, |$index:pat_param| $indices:expr) => {
        let shape: &[usize] = &$shape;
        let kernel =
            Kernel::<(In<u32, $dimension>, InOut<u32, $dimension>, Out<u32, $dimension>)>::new(
                "each",
            )
            .host_each(|$index, (x, y, z)| {
                let index: &[usize] = &$indices;
                *z = x.into_dyn()[index] + *y;
                *y = number(index);
            });
        let numbers = ArrayD::from_shape_fn(shape, |index| number(index.slice()));
        let array = |numbers: &ArrayD<u32>| {
            SmartArray::from(numbers.clone().into_dimensionality::<$dimension>().unwrap())
        };
        for place in places() {
            let (x, mut y) = (array(&numbers), array(&(&numbers * 3)));
            let mut z = SmartArray::uninit_like(&x);
            place.launch(&kernel, (&x, &mut y, &mut z))?;
            assert_eq!(z.host()?.view().into_dyn(), &numbers * 4, "{shape:?}");
            assert_eq!(y.host()?.view().into_dyn(), numbers, "{shape:?}");
        }
    };
}

#[test]
fn every_rank() -> Result<()> {
    assert_rank!(Ix0, [], |()| []);
    assert_rank!(Ix1, [LEN], |i| [i]);
    assert_rank!(Ix1, [1], |i| [i]);
    assert_rank!(Ix2, [2, LEN / 2], |(i, j)| [i, j]);
    assert_rank!(Ix2, [LEN, 1], |(i, j)| [i, j]);
    assert_rank!(Ix3, [10, 30, 10], |(i, j, k)| [i, j, k]);
    assert_rank!(Ix3, [20, 0, 10], |(i, j, k)| [i, j, k]);
    assert_rank!(Ix4, [4, 1, 25, 30], |(i, j, k, l)| [i, j, k, l]);
    assert_rank!(Ix5, [4, 5, 6, 5, 5], |(i, j, k, l, m)| [i, j, k, l, m]);
    assert_rank!(Ix6, [4, 5, 6, 5, 1, 5], |at| {
        let at: (usize, usize, usize, usize, usize, usize) = at;
        [at.0, at.1, at.2, at.3, at.4, at.5]
    });
    assert_rank!(IxDyn, [], |at| at.slice());
    assert_rank!(IxDyn, [ROWS, COLUMNS], |at| at.slice());
    assert_rank!(IxDyn, [2, 3, 4, 5, 6, 2, 3], |at| at.slice());
    Ok(())
}

type FlatKernel = Kernel<(In<u32>, InOut<u32>, Out<u32>, Slice<Out<u64>>)>;

#[test]
fn flat_outputs_are_indexed_in_memory_order() -> Result<()> {
    let kernel: FlatKernel = Kernel::new("each");
    let kernel = kernel.host_each(|i, (x, y, z, w)| {
        *z = x[i] + *y;
        (*y, *w) = (i as u32, i as u64);
    });
    for place in places() {
        let x = table([ROWS, COLUMNS]);
        let numbers = Array2::from_shape_fn((ROWS, COLUMNS), |(i, j)| (COLUMNS * i + j) as u32);
        let arrays = || {
            let z = SmartArray::<u32, Ix2>::uninit((ROWS, COLUMNS));
            let w = SmartArray::<u64, Ix2>::uninit((ROWS, COLUMNS));
            (SmartArray::from(x.clone()), SmartArray::from(&x * 2), z, w)
        };
        let (smart_x, mut y, mut z, mut w) = arrays();
        place.launch(&kernel, (&smart_x, &mut y, &mut z, &mut w))?;
        assert!(*y.host()? == numbers && *z.host()? == &x * 3);
        assert!(*w.host()? == numbers.mapv(u64::from));

        let (smart_x, mut y, mut z, mut w) = arrays();
        let (x_columns, mut y_columns) = (smart_x.t(), y.view_mut().reversed_axes());
        let outputs = (&mut z.view_mut().reversed_axes(), &mut w.view_mut().reversed_axes());
        place.launch(&kernel, (&x_columns, &mut y_columns, outputs.0, outputs.1))?;
        assert!(*y.host()? == numbers && *z.host()? == &x * 3, "columns");

        let (smart_x, mut y, mut z, mut w) = arrays();
        let rows = s![5..ROWS - 1, ..];
        let outputs = (&mut y.slice_mut(rows), &mut z.slice_mut(rows), &mut w.slice_mut(rows));
        place.launch(&kernel, (&smart_x.slice(rows), outputs.0, outputs.1, outputs.2))?;
        assert!(y.slice(rows).host()? == numbers.slice(s![..ROWS - 6, ..]));
        assert!(z.slice(rows).host()? == (&x * 3).slice(rows));
        assert!(y.slice(s![..5, ..]).host()? == (&x * 2).slice(s![..5, ..]), "before the part");
    }
    Ok(())
}

type Dynamic = Out<u32, IxDyn>;
type Table = Out<u32, Ix2>;

#[rustfmt::skip]
type Sixteen = Kernel<(
    u8, f32, In<u32>, In<u32, Ix1>, In<u32, IxDyn>, Slice<In<u32>>, In<f32, Ix2>, u64,
    Table, Dynamic, InOut<u32, Ix2>, Table, Dynamic, Table, Dynamic, InOut<f32, Ix2>,
)>;

#[test]
fn sixteen_parameters_and_inputs_of_all_kinds() -> Result<()> {
    let kernel: Sixteen = Kernel::new("sixteen");
    let kernel = kernel.host_each(|(i, j), (a, b, c, d, e, f, g, h, m, n, o, p, q, r, s, t)| {
        *m = u32::from(a) + c[j] + d[j] + e[[j]] + f[j] + h as u32;
        (*n, *p, *q, *r, *s) = (*m + 1, *m + 2, *m + 3, *m + 4, *m + 5);
        (*o, *t) = (*o + *m, *t + b + g[[i, j]]);
    });
    let shape = (ROWS, COLUMNS);
    let x = SmartArray::from((0..COLUMNS as u32).collect::<Vec<_>>());
    let (dynamic, row) = (x.view().into_dyn(), SmartArray::<f32, _>::full(COLUMNS, 8.0));
    let wide = row.broadcast(shape)?;
    let sums = Array2::from_shape_fn(shape, |(_, j)| 4 + 4 * j as u32);
    for place in places() {
        let table = || SmartArray::<u32, _>::uninit(shape);
        let dynamic_table = || SmartArray::<u32, _>::uninit(IxDyn(&[ROWS, COLUMNS]));
        let (mut m, mut p, mut r) = (table(), table(), table());
        let (mut n, mut q, mut s) = (dynamic_table(), dynamic_table(), dynamic_table());
        let (mut o, mut t) = (SmartArray::full(shape, 1), SmartArray::full(shape, 0.5_f32));
        #[rustfmt::skip]
        place.launch(&kernel, (
            1, 2.0, &x, &x, &dynamic, &x, &wide, 3,
            &mut m, &mut n, &mut o, &mut p, &mut q, &mut r, &mut s, &mut t,
        ))?;
        for (number, table) in [(0, &m), (1, &o), (2, &p), (4, &r)] {
            assert!(*table.host()? == &sums + number, "{number}");
        }
        for (number, table) in [(1, &n), (3, &q), (5, &s)] {
            assert!(table.host()?.view() == (&sums + number).into_dyn(), "{number}");
        }
        assert_eq!(t.host()?.view(), Array2::from_elem(shape, 10.5));
    }
    Ok(())
}

#[test]
fn arrays_of_devices_and_elements_without_bytes() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let _here = device.enter();
    let plus =
        Kernel::<(In<u32, Ix2>, Out<u32, Ix2>)>::new("plus").host_each(|at, (x, y)| *y = x[at] + 1);
    let x = DeviceArray::from_host(&table([ROWS, COLUMNS]))?;
    let mut y = DeviceArray::<u32, _>::uninit((ROWS, COLUMNS))?;
    plus.launch(one(), (&x, &mut y))?;
    assert_eq!(y.copy_to_host()?, table([ROWS, COLUMNS]) + 1);

    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let nothing = Kernel::<(InOut<[u8; 0]>,)>::new("nothing").host_each(move |_, (_,)| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    nothing.launch(one(), (&mut SmartArray::from(vec![[0_u8; 0]; LEN]),))?;
    device.synchronize()?;
    assert_eq!(calls.load(Ordering::Relaxed), LEN);
    Ok(())
}

#[test]
fn nothing_is_called_without_elements() -> Result<()> {
    let fail = || Kernel::<(Out<u32>,)>::new("fail").host_each(|_, (_,)| panic!("it is called"));
    for place in places() {
        place.launch(&fail(), (&mut SmartArray::<u32, _>::uninit((3, 0)),))?;
        if let Place::On(stream) = place {
            let mut array = SmartArray::<u32, _>::uninit(3);
            fail().launch_on(&stream, Grid::cover(0), (&mut array,))?;
            stream.synchronize()?;
            assert!(matches!(array.host(), Err(Error::Uninitialised { .. })), "nothing wrote it");
        }
    }
    Ok(())
}

#[test]
fn outputs_of_different_shapes_are_refused_before_anything_moves() -> Result<()> {
    let flat = Kernel::<(In<u32>, Out<u32>, f32, InOut<u32>)>::new("flat").host_each(|_, _| ());
    let sized = Kernel::<(Out<u32, Ix2>, In<u32>, Out<u32, IxDyn>)>::new("sized");
    let sized = sized.host_each(|_, _| ());
    for place in places() {
        let x = Numbers::ones(9);
        let mut four = Numbers::uninit(4).named("four");
        let mut five = Numbers::ones(5).named("five");
        let refused = place.launch(&flat, (&x, &mut four, 1.0, &mut five)).unwrap_err();
        let expected = "requirement: kernel \"flat\" requires \"the outputs of `host_each` have \
                        one shape (a body of `host` takes others)\", but got \"four\" of shape \
                        [4] for parameter 1 and \"five\" of shape [5] for parameter 3; nothing \
                        was moved; pass arguments that fulfil it";
        assert!(refused.to_string().starts_with(expected), "{refused}");
        assert!(matches!(refused, Error::Requirement { .. }));
        let mut table = SmartArray::<u32, Ix2>::uninit((2, 2)).named("table");
        let refused = place.launch(&sized, (&mut table, &x, &mut four.view_mut().into_dyn()));
        let text = refused.unwrap_err().to_string();
        let seen = "\"table\" of shape [2, 2] for parameter 0 and \"four\" of shape [4] for \
                    parameter 2";
        assert!(text.contains(seen), "{text}");
        assert_eq!((moves(x.traffic()), moves(five.traffic())), (NOTHING, NOTHING));
        assert!(four.host().is_err(), "nothing has written it");
        place
            .launch(&flat, (&x, &mut four.slice_mut(s![..]), 1.0, &mut five.slice_mut(s![1..])))?;
        assert_eq!(five.to_vec()?, [1; 5]);
    }
    Ok(())
}

#[test]
fn the_last_body_replaces_the_one_before() -> Result<()> {
    let new = || Kernel::<(Out<u32>, Out<u32>)>::new("two");
    let each = new().host(|_, _| ()).host_each(|_, (x, y)| (*x, *y) = (1, 2));
    let whole = each.clone().host(|_, (x, y)| {
        x.fill(3);
        y.fill(4);
    });
    for place in places() {
        let (mut x, mut y) = (Numbers::uninit(3), Numbers::uninit(3));
        place.launch(&each, (&mut x, &mut y))?;
        assert_eq!((x.to_vec()?, y.to_vec()?), (vec![1; 3], vec![2; 3]));
        let mut y = Numbers::uninit(2);
        place.launch(&whole, (&mut x, &mut y))?;
        assert_eq!((x.to_vec()?, y.to_vec()?), (vec![3; 3], vec![4; 2]), "of two shapes");
    }
    Ok(())
}

#[test]
fn other_threads_take_elements() -> Result<()> {
    if std::thread::available_parallelism().map_or(1, |cores| cores.get()) == 1 {
        return Ok(());
    }
    for place in places() {
        let threads = Arc::new(Mutex::new(HashSet::new()));
        let seen = Arc::clone(&threads);
        let meet = Kernel::<(Out<u32>,)>::new("meet").host_each(move |i, (x,)| {
            let begun = Instant::now();
            let count = || {
                let mut seen = seen.lock().unwrap();
                seen.insert(std::thread::current().id());
                seen.len()
            };
            // The first shows that they take long.
            let wait_max = Duration::from_secs(if i == 0 { 0 } else { 20 });
            while count() < 2 {
                std::thread::sleep(Duration::from_millis(1));
                if begun.elapsed() > wait_max {
                    break;
                }
            }
            *x = 1;
        });
        let mut x = Numbers::uninit(16);
        place.launch(&meet, (&mut x,))?;
        assert_eq!(x.to_vec()?, [1; 16]);
        assert!(threads.lock().unwrap().len() > 1, "one thread did all");
    }
    Ok(())
}

#[test]
fn what_a_body_that_panics_writes_is_lost() -> Result<()> {
    for last in [0, 1, LEN - 1] {
        let broken = Kernel::<(InOut<u32>,)>::new("broken").host_each(move |i, (x,)| {
            assert!(i != last, "it is broken at {i}");
            *x += 1;
        });
        for place in places() {
            let mut array = Numbers::ones(LEN);
            let Place::On(stream) = &place else {
                let call = || broken.call(one(), (&mut array,));
                let payload = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
                let text = payload.downcast_ref::<String>().expect("a text");
                assert_eq!(*text, format!("it is broken at {last}"));
                assert!(array.host()?.iter().all(|x| [1, 2].contains(x)));
                continue;
            };
            broken.launch_on(stream, one(), (&mut array,))?;
            let Err(Error::Lost { cause, .. }) = array.host().map(drop) else {
                panic!("it is not lost");
            };
            assert!(cause.contains(&format!("it is broken at {last}")), "{cause}");
            stream.synchronize().unwrap_err();
            array.fill(5)?;
            add().launch_on(stream, one(), (1, &mut array))?;
            assert_eq!(array.to_vec()?, [6; LEN]);
        }
    }
    Ok(())
}

/// On every thread that takes elements, and in `call` too.
#[test]
fn calls_that_would_wait_are_refused_in_each_element() -> Result<()> {
    let (stream, gate) = (Device::emulated(Emulation::new()).stream(), Gate::default());
    broken_update(&gate).launch_on(&stream, one(), (&mut Numbers::ones(1),))?;
    let event = stream.record()?;
    let wait = Kernel::<(Out<u32>,)>::new("wait").host_each(move |_, (x,)| {
        *x = u32::from(matches!(event.synchronize(), Err(Error::InsideKernel { .. })));
    });
    for place in places() {
        let mut refused = Numbers::uninit(LEN);
        place.launch(&wait, (&mut refused,))?;
        assert!(refused.host()?.iter().all(|x| *x == 1));
    }
    gate.open();
    Ok(())
}
