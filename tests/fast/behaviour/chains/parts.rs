//! Steps that name slices of parameters.

#![expect(clippy::reversed_empty_ranges, reason = "negative ends count from the end")]

use super::{Numbers, assert_no_hazards, devices, numbers, seen};
use resident::ops::Elementwise;
use resident::{Chain, Temp};
use support::bodies::{modes, one};
use support::prelude::*;

type Table = SmartArray<u32, Ix2>;
/// An array, and how it was before.
type Two = Chain<(InOut<u32, Ix2>, InOut<u32, Ix2>)>;

/// Adds the four neighbours to each inner element.
fn stencil() -> Kernel<(In<u32, Ix2>, Out<u32, Ix2>)> {
    Kernel::<(In<u32, Ix2>, Out<u32, Ix2>)>::new("stencil")
        .require("a frame around", |_, (all, inner)| {
            all.shape().iter().zip(inner.shape()).all(|(all, inner)| *all == *inner + 2)
        })
        .host(|_, (all, mut inner)| {
            inner.indexed_iter_mut().for_each(|((i, j), x)| {
                let around = [(0, 1), (1, 0), (1, 2), (2, 1)];
                *x = around.iter().map(|(k, l)| all[[i + k, j + l]]).sum();
            });
        })
}

fn diffusion() -> Two {
    let stencil = stencil();
    Two::record("diffusion", |r, (a, b)| {
        let inner = s![1..-1, 1..-1];
        r.launch(&stencil, one(), (a.read(), b.slice(inner).write()))?;
        r.launch(&stencil, one(), (b.read(), a.slice(inner).write()))
    })
    .unwrap()
}

fn numbered(rows: usize, columns: usize) -> Array2<u32> {
    Array2::from_shape_fn((rows, columns), |(i, j)| (10 * i + j) as u32)
}

#[test]
fn each_replay_has_the_slices_of_its_arrays() {
    let (chain, kernel) = (diffusion(), stencil());
    for device in devices() {
        for (rows, columns) in [(3, 3), (6, 9), (2, 5), (6, 9)] {
            let stream = device.new_stream().unwrap();
            let host = numbered(rows, columns);
            let inner = s![1..-1, 1..-1];
            let (mut a, mut b) = (Table::from(host.clone()), Table::from(host.clone()));
            chain.repeat_on(&stream, 2, (&mut a, &mut b)).unwrap();
            let (mut c, mut d) = (Table::from(host.clone()), Table::from(host));
            for _ in 0..2 {
                kernel.launch_on(&stream, one(), (&c, &mut d.slice_mut(inner))).unwrap();
                kernel.launch_on(&stream, one(), (&d, &mut c.slice_mut(inner))).unwrap();
            }
            assert_eq!(*a.host().unwrap(), *c.host().unwrap(), "{device}, {rows} rows");
            assert_eq!(*b.host().unwrap(), *d.host().unwrap(), "{device}, {rows} rows");
        }
        assert_no_hazards(&device);
    }
}

/// Parts of parts, of arrays in other orders of axes.
#[test]
fn arguments_of_any_strides_have_slices() {
    let chain = Chain::<(In<u32, Ix2>, InOut<u32, Ix2>)>::record("turned", |r, (a, b)| {
        r.copy(a.slice(s![..;-2, 1..]).read(), b.slice(s![..;2, ..-1]).write())?;
        r.copy(a.slice(s![0, ..]).read(), b.slice(s![-1, ..;-1]).write())
    })
    .unwrap();
    for device in devices() {
        let (host, mut expected) = (numbered(9, 7), Array2::<u32>::zeros((7, 9)));
        let (from, mut table) = (Table::from(host.clone()), Table::from(expected.clone()));
        let view = s![1..8;2, ..;-1];
        let (from, mut to) = (from.slice(view), table.view_mut().reversed_axes());
        let mut to = to.slice_mut(view);
        chain.launch_on(&device.stream(), (&from, &mut to)).unwrap();
        let from = host.slice(view);
        let mut to = expected.view_mut().reversed_axes();
        let mut to = to.slice_mut(view);
        to.slice_mut(s![..;2, ..-1]).assign(&from.slice(s![..;-2, 1..]));
        to.slice_mut(s![-1, ..;-1]).assign(&from.slice(s![0, ..]));
        assert_eq!(*table.host().unwrap(), expected, "{device}");
        assert_no_hazards(&device);
    }
}

/// What no step reads is not uploaded, and what none writes stays the host's.
#[test]
fn only_the_elements_that_steps_use_move() {
    let chain = Two::record("edges", |r, (a, b)| {
        r.copy(a.slice(s![0, ..]).read(), b.slice(s![-1, ..]).write())?;
        r.copy(b.slice(s![-1, ..]).read(), b.slice(s![0, ..]).write())
    })
    .unwrap();
    for device in devices() {
        let (mut a, mut b) = (Table::from(numbered(4, 8)), Table::from(numbered(4, 8)));
        chain.launch_on(&device.stream(), (&mut a, &mut b)).unwrap();
        assert_eq!(a.traffic().to_device.bytes, 32, "{device}: a row that is read");
        assert_eq!(b.traffic().to_device.bytes, 0, "{device}: rows that are overwritten");
        assert_eq!(*a.host().unwrap(), numbered(4, 8));
        assert_eq!(a.traffic().to_host.bytes, 0, "{device}: nothing was written");
        let mut expected = numbered(4, 8);
        let first = expected.slice(s![0, ..]).to_owned();
        expected.slice_mut(s![-1, ..]).assign(&first);
        assert_eq!(*b.host().unwrap(), expected, "{device}");
        assert_eq!(b.traffic().to_host.bytes, 64, "{device}: two rows");
        assert_no_hazards(&device);
    }
}

/// The elements of a temporary that steps have written, all together, may be read.
#[test]
fn a_temporary_is_written_piece_by_piece() {
    let halves = |at: isize| {
        Chain::<(InOut<u32, Ix1>, Temp<u32, Ix1>)>::record("halves", move |r, (a, tmp)| {
            r.copy(a.slice(s![..2]).read(), tmp.slice(s![-2..]).write())?;
            r.copy(a.slice(s![2..]).read(), tmp.slice(s![..at]).write())?;
            r.copy(tmp.read(), a.write())
        })
        .unwrap()
    };
    for device in devices() {
        let mut array = numbers(6);
        halves(-2).launch_on(&device.stream(), (&mut array, Temp::shape(6))).unwrap();
        assert_eq!(seen(&array), [2, 3, 4, 5, 0, 1]);
        let stream = device.stream();
        let gap = Chain::<(InOut<u32, Ix1>, Temp<u32, Ix1>)>::record("gap", |r, (a, tmp)| {
            r.copy(a.slice(s![..3]).read(), tmp.slice(s![..3]).write())?;
            r.copy(tmp.slice(s![1..4]).read(), a.slice(s![..3]).write())
        });
        let gap = gap.unwrap();
        let refused = gap.launch_on(&stream, (&mut array, Temp::shape(6))).unwrap_err();
        assert!(matches!(refused, Error::Uninitialised { .. }), "{refused}");
        let text = refused.to_string();
        assert!(text.contains("slice [1..4] of parameter 1"), "{text}");
        assert!(text.contains("\"copy\" of chain \"gap\""), "{text}");
        assert_eq!(seen(&array), [2, 3, 4, 5, 0, 1]);
    }
}

#[test]
fn a_slice_that_does_not_fit_names_what_it_is_of() {
    let chain = Chain::<(InOut<u32, Ix2>,)>::record("rows", |r, (a,)| {
        r.fill(a.slice(s![0, ..]).write(), 1)?;
        r.fill(a.slice(s![2..4, ..]).write(), 2)
    })
    .unwrap();
    let mut table = Table::zeros((3, 2)).named("flat");
    let refused = chain.launch_on(&Device::cpu().stream(), (&mut table,)).unwrap_err();
    assert!(matches!(refused, Error::Shape { .. }), "{refused}");
    let text = refused.to_string();
    for part in ["\"fill\" of chain \"rows\"", "slice [2..4, ..] of parameter 0", "flat", "[3, 2]"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("parts.rs:"), "{text}");
    assert_eq!(table.residency().on(&Device::cpu()), Absent);
}

/// Slices of one array may be passed to one step if they have no element in common that it writes.
#[test]
fn a_step_gets_each_element_that_it_writes_once() {
    let shift = |from: std::ops::Range<isize>, to: std::ops::Range<isize>| {
        Chain::<(InOut<u32, Ix1>,)>::record("shift", move |r, (a,)| {
            r.copy(a.slice(s![from]).read(), a.slice(s![to]).write())
        })
        .unwrap()
    };
    for device in devices() {
        let mut array = numbers(6);
        let stream = device.stream();
        shift(0..2, 2..4).launch_on(&stream, (&mut array,)).unwrap();
        assert_eq!(seen(&array), [0, 1, 0, 1, 4, 5], "{device}");
        let refused = shift(0..3, 2..5).launch_on(&stream, (&mut array,)).unwrap_err();
        assert!(matches!(refused, Error::Requirement { .. }), "{refused}");
        let text = refused.to_string();
        assert!(
            text.contains("slice [..3] of parameter 0 and slice [2..5] of parameter 0"),
            "{text}"
        );
        assert_eq!(seen(&array), [0, 1, 0, 1, 4, 5], "{device}");
        assert_no_hazards(&device);
    }
}

/// A step that fails loses what it and later ones write, and no other part.
#[test]
fn what_is_lost_is_exact() {
    let broken = Kernel::<(InOut<u32>,)>::new("broken").host(|_, _| panic!("broken"));
    let chain = Chain::<(InOut<u32, Ix1>,)>::record("half", |r, (a,)| {
        r.fill(a.slice(s![..2]).write(), 7)?;
        r.launch(&broken, one(), (a.slice(s![2..4]).read_write(),))?;
        r.fill(a.slice(s![4..]).write(), 8)
    })
    .unwrap();
    // Not the CPU, on which other tests wait for work that does not fail.
    for device in modes().map(|emulation| Device::emulated(emulation())) {
        let mut array = numbers(8);
        chain.launch_on(&device.stream(), (&mut array,)).unwrap();
        assert_eq!(array.slice(s![..2]).to_vec().unwrap(), [7, 7], "{device}");
        assert!(array.slice(s![2..4]).to_vec().is_err(), "{device}");
        assert!(array.slice(s![4..]).to_vec().is_err(), "{device}");
    }
}

/// The array that says whether to go on may be an element of one.
#[test]
fn a_condition_may_be_an_element() {
    let count = Kernel::<(InOut<u32>,)>::new("count").host(|_, (left,)| left[0] -= 1);
    let chain = Chain::<(InOut<u32, Ix1>,)>::record("count", |r, (a,)| {
        r.launch(&count, one(), (a.slice(s![1..2]).read_write(),))?;
        r.repeat_while(a.slice(s![1..2]).read())
    })
    .unwrap();
    for device in devices() {
        let mut array = SmartArray::from([9_u32, 4, 9]);
        let ran = chain.repeat_while_on(&device.stream(), 100, 1, (&mut array,)).unwrap();
        assert_eq!((ran, seen(&array)), (4, vec![9, 0, 9]), "{device}");
    }
}

/// Elementwise operations broadcast, and are refused at the replay where they do not fit.
#[test]
fn elementwise_operations_are_steps() {
    let scale =
        Elementwise::<(u32, In<u32>, InOut<u32>)>::new("scale", "y = k * y + x", ["k", "x", "y"])
            .host(|(k, x, y)| *y = k * *y + x);
    let chain = Chain::<(u32, In<u32, Ix1>, InOut<u32, Ix2>)>::record("scale", |r, (k, row, a)| {
        r.apply(&scale, (k, row.read(), a.slice(s![.., 1..]).read_write()))?;
        r.apply(&scale, (2, row.slice(s![..1]).read(), a.read_write()))
    })
    .unwrap();
    for device in devices() {
        let row: Numbers = SmartArray::from([1_u32, 2]);
        for k in [3, 5] {
            let (mut table, mut expected) = (Table::from(numbered(4, 3)), numbered(4, 3));
            chain.launch_on(&device.stream(), (k, &row, &mut table)).unwrap();
            let mut part = expected.slice_mut(s![.., 1..]);
            part *= k;
            part += &array![1, 2];
            expected = expected * 2 + 1;
            assert_eq!(*table.host().unwrap(), expected, "{device}");
        }
        let mut wide = Table::zeros((4, 5));
        let refused = chain.launch_on(&device.stream(), (3, &row, &mut wide)).unwrap_err();
        assert!(matches!(refused, Error::Shape { .. }), "{refused}");
        assert!(refused.to_string().contains("\"scale\""), "{refused}");
        assert_no_hazards(&device);
    }
}
