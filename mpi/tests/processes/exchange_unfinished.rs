//! What becomes of exchanges that are not finished, fail, or outlive MPI.

use std::mem::{self, ManuallyDrop};

use resident::ndarray::Ix1;
use resident::{Device, Emulation, Grid, Kernel, Out, SmartArray};
use resident_mpi::{Decomposition, Error, Exchange, Mpi};

use crate::launch::{Job, is_inside, run};
use crate::ring::{halos, ring};

/// Adds to the own cells only.
fn add(ring: &Decomposition<1>, array: &mut SmartArray<f64, Ix1>, value: f64) {
    ring.interior_mut(array).host_mut().unwrap().iter_mut().for_each(|x| *x += value);
}

#[test]
fn an_exchange_that_was_dropped_or_forgotten_can_be_finished() {
    run(3, |mpi| {
        let (ring, mut a) = ring(mpi);
        let mut halo = ring.exchange(&a).unwrap();
        let stream = Device::cpu().stream();
        let first = halos(&a);
        for (step, forget) in [(1.0, true), (2.0, false)] {
            let before = halos(&a);
            add(&ring, &mut a, 100.0);
            let going = halo.start(&a, &stream).unwrap();
            if forget {
                let _forgotten = ManuallyDrop::new(going);
            }
            assert_eq!(halos(&a), before, "nothing was received");
            let error = halo.start(&a, &stream).expect_err("an error").to_string();
            assert!(error.contains("started before and not finished"), "{error}");
            // What was sent is what the cells held at the start.
            add(&ring, &mut a, 1000.0);
            halo.unfinished().expect("one is not finished").finish(&mut a).unwrap();
            add(&ring, &mut a, -1000.0);
            assert_eq!(halos(&a), first.map(|x| x + 100.0 * step));
            assert!(halo.unfinished().is_none());
        }
        halo.start(&a, &stream).unwrap().finish(&mut a).unwrap();
    });
}

/// The world waits for the messages that are on their way.
#[test]
fn an_exchange_can_be_dropped_while_messages_travel() {
    run(4, |mpi| {
        let (ring, a) = ring(mpi);
        for _ in 0..10 {
            let mut halo = ring.exchange(&a).unwrap();
            drop(halo.start(&a, &Device::cpu().stream()).unwrap());
        }
        let mut halo = ring.exchange(&a).unwrap();
        let _forgotten = ManuallyDrop::new(halo.start(&a, &Device::cpu().stream()).unwrap());
        mem::forget(halo);
    });
}

#[test]
fn exchanges_in_another_order_do_not_mix() {
    run(3, |mpi| {
        let (ring, mut a) = ring(mpi);
        let mut b: SmartArray<f64, _> = ring.array(|[i]| -(i as f64)).unwrap();
        let (mut one, mut other) = (ring.exchange(&a).unwrap(), ring.exchange(&b).unwrap());
        let expected = (halos(&a), halos(&b));
        let stream = Device::cpu().stream();
        let (first, second) = if mpi.rank() == 1 {
            let second = other.start(&b, &stream).unwrap();
            (one.start(&a, &stream).unwrap(), second)
        } else {
            (one.start(&a, &stream).unwrap(), other.start(&b, &stream).unwrap())
        };
        for array in [&mut a, &mut b] {
            let len = array.len();
            array.set(0, 77.0).unwrap();
            array.set(len - 1, 77.0).unwrap();
        }
        second.finish(&mut b).unwrap();
        first.finish(&mut a).unwrap();
        assert_eq!((halos(&a), halos(&b)), expected);
    });
}

/// Cells that cannot be packed are an error of one process, which can start again.
#[test]
fn a_start_that_failed_can_be_repeated() {
    run(2, |mpi| {
        let device = Device::emulated(Emulation::new());
        let _here = device.enter();
        let (ring, mut a) = ring(mpi);
        let expected = halos(&a);
        let mut halo: Exchange<(f64,), 1> = ring.exchange(&a).unwrap();
        if mpi.rank() == 0 {
            let unwritten = SmartArray::<f64, Ix1>::uninit(a.len());
            let error = halo.start(&unwritten, &device.stream()).expect_err("an error");
            let is_uninitialised =
                matches!(error, Error::Resident(resident::Error::Uninitialised { .. }));
            assert!(is_uninitialised, "{error}");
            let lost = lost(a.len());
            let error = halo.start(&lost, &device.stream()).expect_err("an error");
            assert!(matches!(error, Error::Resident(resident::Error::Lost { .. })), "{error}");
            assert!(halo.unfinished().is_none());
            let _reported_once = device.synchronize();
        }
        let last = a.len() - 1;
        a.set(0, 77.0).unwrap();
        a.set(last, 77.0).unwrap();
        for _ in 0..2 {
            halo.start(&a, &device.stream()).unwrap().finish(&mut a).unwrap();
            assert_eq!(halos(&a), expected);
        }
    });
}

/// An array of which a kernel that panics was to write the cells.
fn lost(len: usize) -> SmartArray<f64, Ix1> {
    let mut array = SmartArray::zeros(len);
    let fail = Kernel::<(Out<f64, Ix1>,)>::new("fail").host(|_grid, _out| panic!("as planned"));
    fail.launch(Grid::new(1, 1), (&mut array,)).unwrap();
    array
}

/// Once MPI is finalised, what was made of it says so.
#[test]
fn exchanges_outlive_mpi_and_say_so() {
    let body = |mpi: Mpi| {
        let (ring, a) = ring(&mpi);
        let mut halo = ring.exchange(&a).unwrap();
        let stream = Device::cpu().stream();
        let mut a = a;
        halo.start(&a, &stream).unwrap().finish(&mut a).unwrap();
        drop((ring, mpi));
        let error = halo.start(&a, &stream).expect_err("an error").to_string();
        assert!(error.contains("MPI is finalised"), "{error}");
    };
    if is_inside() {
        return body(resident_mpi::init().unwrap());
    }
    Job::new(2).expect_success();
}
