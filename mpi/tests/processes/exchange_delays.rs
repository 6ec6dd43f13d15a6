//! Exchanges among processes that pause between their calls, each for times of its own.

use std::thread;
use std::time::Duration;

use resident::ndarray::Ix1;
use resident::{Device, Emulation, SmartArray};
use resident_mpi::{Decomposition, Mpi};

use crate::launch::run;
use crate::random::Random;

const CELLS: usize = 23;
const HALO: usize = 2;

/// A pause of up to a millisecond, half the time none.
fn pause(random: &mut Random) {
    if random.coin() {
        thread::sleep(Duration::from_micros(random.below(1000) as u64));
    }
}

fn value(cell: usize, step: usize) -> f64 {
    (1000 * step + cell) as f64
}

/// Overwrites the own cells, and the halo by what no cell has.
fn write(ring: &Decomposition<1>, array: &mut SmartArray<f64, Ix1>, step: usize) {
    let ([len], [offset]) = (ring.local_shape(), ring.offset());
    let mut host = array.host_overwrite().unwrap();
    host.fill(-1.0);
    (0..len).for_each(|cell| host[HALO + cell] = value(offset + cell, step));
}

fn check(ring: &Decomposition<1>, array: &SmartArray<f64, Ix1>, step: usize) {
    let [offset] = ring.offset();
    for (at, seen) in array.host().unwrap().iter().enumerate() {
        let cell = (offset + at + CELLS - HALO) % CELLS;
        assert_eq!(*seen, value(cell, step), "cell {cell} in step {step}");
    }
}

/// Two exchanges are under way at a time, and end in the other order.
fn whoever_is_late(mpi: &Mpi) {
    let ring = mpi.grid([CELLS]).halo(HALO).periodic([true]).build().unwrap();
    for seed in 0..6 {
        let mut random = Random::new(100 * seed + mpi.rank() as u64);
        let device = Device::emulated(Emulation::new().seed(random.next()));
        let stream = device.stream();
        let mut a: SmartArray<f64, Ix1> = ring.zeros().unwrap();
        let mut b: SmartArray<f64, Ix1> = ring.zeros().unwrap();
        let (mut of_a, mut of_b) = (ring.exchange(&a).unwrap(), ring.exchange(&b).unwrap());
        for step in 0..8 {
            write(&ring, &mut a, step);
            write(&ring, &mut b, step + 100);
            pause(&mut random);
            let first = of_a.start(&a, &stream).unwrap();
            pause(&mut random);
            let second = of_b.start(&b, &stream).unwrap();
            pause(&mut random);
            second.finish(&mut b).unwrap();
            pause(&mut random);
            first.finish(&mut a).unwrap();
            check(&ring, &a, step);
            check(&ring, &b, step + 100);
        }
        device.synchronize().unwrap();
        assert_eq!(device.emulation().unwrap().hazards(), []);
    }
}

#[test]
fn whoever_is_late_gets_what_was_sent_with_two_processes() {
    run(2, whoever_is_late);
}

#[test]
fn whoever_is_late_gets_what_was_sent_with_four_processes() {
    run(4, whoever_is_late);
}
