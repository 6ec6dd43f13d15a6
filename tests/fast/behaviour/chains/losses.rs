//! Drawn programs in which kernels break on parts of arrays: what is lost on a device is exact, by
//! launches and by chains.

use std::ops::Range;

use super::{Numbers, assert_no_hazards};
use resident::{Chain, Temp};
use support::bodies::{modes, one};
use support::prelude::*;

const LEN: usize = 12;
/// The elements of an array; `None` if they are lost.
type Cells = [Option<u32>; LEN];

type Carry = Chain<(In<u32, Ix1>, Out<u32, Ix1>, Temp<u32, Ix1>)>;

struct Kernels {
    broken: Kernel<(InOut<u32>,)>,
    stamp: Kernel<(u32, Out<u32>)>,
    copy: Kernel<(In<u32>, Out<u32>)>,
    /// Copies, by way of the temporary.
    carry: Carry,
    /// Copies the first element, and breaks on the others.
    first: Chain<(In<u32, Ix1>, InOut<u32, Ix1>)>,
}

fn kernels() -> Kernels {
    // Not by a panic, which would be printed each time.
    let broken = Kernel::<(InOut<u32>,)>::new("broken")
        .host(|_, _| std::panic::resume_unwind(Box::new("it breaks")));
    let copy = Kernel::<(In<u32>, Out<u32>)>::new("copy").host(|_, (a, b)| b.copy_from_slice(a));
    let carry = Carry::record("carry", |r, (a, b, tmp)| {
        r.launch(&copy, one(), (a.read(), tmp.write()))?;
        r.copy(tmp.read(), b.write())
    });
    let first = Chain::<(In<u32, Ix1>, InOut<u32, Ix1>)>::record("first", |r, (a, b)| {
        r.launch(&copy, one(), (a.slice(s![..1]).read(), b.slice(s![..1]).write()))?;
        r.launch(&broken, one(), (b.slice(s![1..]).read_write(),))
    });
    Kernels {
        stamp: Kernel::<(u32, Out<u32>)>::new("stamp").host(|_, (k, a)| a.fill(k)),
        carry: carry.unwrap(),
        first: first.unwrap(),
        broken,
        copy,
    }
}

/// Arrays, and what they should contain.
struct Program {
    kernels: Kernels,
    streams: [Stream; 2],
    arrays: [Numbers; 3],
    cells: [Cells; 3],
    random: Random,
}

impl Program {
    fn new(device: &Device, seed: u64) -> Self {
        Self {
            kernels: kernels(),
            streams: [device.stream(), device.new_stream().unwrap()],
            arrays: std::array::from_fn(|_| Numbers::zeros(LEN)),
            cells: [[Some(0); LEN]; 3],
            random: Random::new(seed),
        }
    }

    fn range(&mut self, len: usize) -> Range<usize> {
        let start = self.random.below(LEN + 1 - len);
        start..start + len
    }

    fn step(&mut self, number: u32) {
        let len = 1 + self.random.below(LEN);
        let (from, to) = (self.range(len), self.range(len));
        let x = self.random.below(3);
        let y = (x + 1 + self.random.below(2)) % 3;
        let kind = self.random.below(10);
        if kind < 6 {
            return self.copy(kind, (x, from), (y, to));
        }
        let part = &mut self.arrays[y].slice_mut(s![to.clone()]);
        let stream = &self.streams[self.random.below(2)];
        let cells = &mut self.cells[y][to];
        match kind {
            6 => match self.kernels.broken.launch_on(stream, one(), (part,)) {
                Err(Error::Lost { .. }) if cells.contains(&None) => {}
                outcome => {
                    outcome.unwrap();
                    cells.fill(None);
                }
            },
            7 => {
                self.kernels.stamp.launch_on(stream, one(), (number, part)).unwrap();
                cells.fill(Some(number));
            }
            8 => {
                part.host_overwrite().unwrap().fill(number);
                cells.fill(Some(number));
            }
            _ => match part.to_vec() {
                Err(Error::Lost { .. }) => assert!(cells.contains(&None), "{cells:?}"),
                seen => assert_eq!(seen.unwrap().into_iter().map(Some).collect::<Vec<_>>(), cells),
            },
        }
    }

    /// Copies a part to another array, by a launch or by a chain.
    fn copy(
        &mut self,
        kind: usize,
        (x, from): (usize, Range<usize>),
        (y, to): (usize, Range<usize>),
    ) {
        let Kernels { copy, carry, first, .. } = &self.kernels;
        let stream = &self.streams[self.random.below(2)];
        let [a, b] = self.arrays.get_disjoint_mut([x, y]).unwrap();
        let (a, mut b) = (a.slice(s![from.clone()]), b.slice_mut(s![to.clone()]));
        let outcome = match kind {
            0 => first.launch_on(stream, (&a, &mut b)),
            1 | 2 => copy.launch_on(stream, one(), (&a, &mut b)),
            _ => carry.repeat_on(stream, kind as u64 - 2, (&a, &mut b, Temp::like(&a))),
        };
        let mut written = self.cells[x][from].to_vec();
        let cells = &mut self.cells[y][to];
        let mut reads_lost = written.contains(&None);
        if kind == 0 {
            reads_lost = written[0].is_none() || cells[1..].contains(&None);
            written[1..].fill(None);
        }
        match outcome {
            Err(Error::Lost { .. }) if reads_lost => {}
            // It does not run.
            outcome if reads_lost => {
                outcome.unwrap();
                cells.fill(None);
            }
            outcome => {
                outcome.unwrap();
                cells.copy_from_slice(&written);
            }
        }
    }
}

#[test]
fn what_is_lost_on_a_device_is_exact() {
    for seed in 0..sampled(10, 500) as u64 {
        for emulation in modes() {
            let device = Device::emulated(emulation());
            let mut program = Program::new(&device, seed);
            (1..40).for_each(|number| program.step(number));
            for (array, cells) in program.arrays.iter().zip(&program.cells) {
                for (index, cell) in cells.iter().enumerate() {
                    match array.get(index) {
                        Err(Error::Lost { .. }) => assert_eq!(*cell, None, "{seed}"),
                        seen => assert_eq!(Some(seen.unwrap()), *cell, "{seed}"),
                    }
                }
            }
            // It reports what broke.
            while device.synchronize().is_err() {}
            assert_no_hazards(&device);
        }
    }
}
