//! Programs drawn at random use parts of arrays on devices with little memory, and find what plain
//! arrays hold.

use std::fmt::Debug;

use resident::ndarray::Slice;
use support::prelude::*;

/// An element, by number.
trait Value: resident::Element + PartialEq + Debug + Default {
    fn of(number: usize) -> Self;
}

impl Value for u32 {
    fn of(number: usize) -> Self {
        number as Self
    }
}

impl Value for u8 {
    fn of(number: usize) -> Self {
        number as Self
    }
}

/// An element of three bytes lies in two pages now and then.
impl Value for [u8; 3] {
    fn of(number: usize) -> Self {
        [number as u8, (number >> 8) as u8, 7]
    }
}

impl Value for [u64; 2] {
    fn of(number: usize) -> Self {
        [number as u64, 9]
    }
}

type Part = (Slice, Slice);

/// One call of a program.
struct Call<T> {
    which: usize,
    at: Part,
    stream: Stream,
    device: Device,
    /// The bytes of an array, and the most bytes that the part needs.
    whole: u64,
    needed: u64,
    value: T,
}

struct Program<T: Value> {
    devices: Vec<Device>,
    streams: Vec<Stream>,
    page_bytes: u64,
    arrays: Vec<SmartArray<T, Ix2>>,
    plain: Vec<Array2<T>>,
    random: Random,
}

fn shape_of(random: &mut Random) -> (usize, usize) {
    (20 + random.below(60), 3 + random.below(70))
}

/// Contents in one of several orders of memory.
fn contents<T: Value>(random: &mut Random, (rows, columns): (usize, usize)) -> Array2<T> {
    let seed = random.below(1000);
    let value = |row: usize, column: usize| T::of(seed + row * columns + column);
    match random.below(4) {
        0 => Array2::from_shape_fn((rows, columns), |(row, column)| value(row, column)),
        1 => Array2::from_shape_fn((rows, columns).f(), |(row, column)| value(row, column)),
        2 => {
            let mut array = Array2::from_shape_fn((rows, columns), |(r, c)| value(r, c));
            array.invert_axis(Axis(0));
            array
        }
        _ => {
            let mut array = Array2::from_shape_fn((rows, columns).f(), |(r, c)| value(r, c));
            array.invert_axis(Axis(1));
            array
        }
    }
}

impl<T: Value> Program<T> {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let page_bytes = [64, 100, 256, 256][random.below(4)];
        let devices: Vec<Device> = (0..1 + random.below(3))
            .map(|_| {
                let emulation = Emulation::new().page_bytes(page_bytes);
                let emulation = match random.below(4) {
                    0 => emulation.seed(seed),
                    1 => emulation.pieces(100),
                    2 => emulation.poison(false),
                    _ => emulation,
                };
                Device::emulated(emulation)
            })
            .collect();
        let mut streams = Vec::new();
        for device in &devices {
            streams.push(device.stream());
            streams.push(device.new_stream().expect("a stream"));
        }
        let shape = shape_of(&mut random);
        let plain: Vec<Array2<T>> = (0..2).map(|_| contents(&mut random, shape)).collect();
        let arrays = plain.iter().cloned().map(SmartArray::from).collect();
        Self { devices, streams, page_bytes, arrays, plain, random }
    }

    fn span(random: &mut Random, len: usize) -> Slice {
        let start = random.below(len);
        let most = if random.below(4) == 0 { len } else { len / 4 + 1 };
        let end = (start + 1 + random.below(most)).min(len);
        let step = [1, 1, 1, 2, 3, -1, -2][random.below(7)];
        Slice::new(start as isize, Some(end as isize), step)
    }

    fn part(&mut self) -> Part {
        let (rows, columns) = self.plain[0].dim();
        match self.random.below(8) {
            0 => (Self::span(&mut self.random, rows), (..).into()),
            1 => ((..).into(), Self::span(&mut self.random, columns)),
            2 => ((..).into(), (..).into()),
            _ => (Self::span(&mut self.random, rows), Self::span(&mut self.random, columns)),
        }
    }

    /// The most bytes of pages that this part can need.
    fn bytes_max(&self, which: usize, at: Part) -> u64 {
        let part = self.plain[which].slice(s![at.0, at.1]);
        let whole = (self.plain[which].len() * size_of::<T>()) as u64;
        let extent: usize = part
            .shape()
            .iter()
            .zip(part.strides())
            .map(|(len, stride)| (len - 1) * stride.unsigned_abs())
            .sum();
        let bytes = ((extent + 1) * size_of::<T>()) as u64;
        let pages = bytes.div_ceil(self.page_bytes) + 1;
        let bytes = pages * self.page_bytes;
        if bytes * 8 >= whole * 7 || whole.div_ceil(self.page_bytes) < 16 { whole } else { bytes }
    }

    /// Whether a call was taken: it may be refused if its parts do not fit.
    fn is_taken(&self, outcome: Result<()>, device: &Device, bytes_max: u64) -> bool {
        match outcome {
            Ok(()) => true,
            Err(error @ Error::OutOfMemory { .. }) => {
                let limit = device.memory_limit().expect("only a limit refuses");
                assert!(bytes_max > limit, "{bytes_max} of {limit}: {error}");
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Writes some elements in a launch.
    fn write_in_a_launch(&mut self, call: &Call<T>) {
        let &Call { which, at, ref stream, ref device, needed, .. } = call;
        let array = &mut self.arrays[which];
        let seed = self.random.below(100);
        let write = Kernel::<(u64, InOut<T, Ix2>)>::new("write").host(|_, (seed, mut x)| {
            x.indexed_iter_mut().for_each(|((r, c), x)| {
                if (r + c + seed as usize).is_multiple_of(3) {
                    *x = T::of(seed as usize + r * 7 + c);
                }
            });
        });
        let mut to = array.slice_mut(s![at.0, at.1]);
        let outcome = write.launch_on(stream, Grid::cover(1), (seed as u64, &mut to));
        if self.is_taken(outcome, device, needed) {
            let mut to = self.plain[which].slice_mut(s![at.0, at.1]);
            to.indexed_iter_mut().for_each(|((r, c), x)| {
                if (r + c + seed).is_multiple_of(3) {
                    *x = T::of(seed + r * 7 + c);
                }
            });
        }
    }

    /// Overwrites a part in a launch.
    fn overwrite_in_a_launch(&mut self, call: &Call<T>) {
        let &Call { which, at, ref stream, ref device, needed, value, .. } = call;
        let array = &mut self.arrays[which];
        let set = Kernel::<(T, Out<T, Ix2>)>::new("set").host(|_, (v, mut x)| x.fill(v));
        let mut to = array.slice_mut(s![at.0, at.1]);
        let outcome = set.launch_on(stream, Grid::cover(1), (value, &mut to));
        if self.is_taken(outcome, device, needed) {
            self.plain[which].slice_mut(s![at.0, at.1]).fill(value);
        }
    }

    /// Copies a part of the other array.
    fn copy_between(&mut self, call: &Call<T>, number: usize) {
        let &Call { which, at, ref stream, ref device, whole, .. } = call;
        match number {
            8 | 9 => {
                // From the other array, on the device.
                let other = 1 - which;
                let [one, two] = &mut self.arrays[..] else { unreachable!() };
                let (from, to) = if which == 0 { (two, one) } else { (one, two) };
                let copy = Kernel::<(In<T, Ix2>, Out<T, Ix2>)>::new("copy")
                    .host(|_, (from, mut to)| to.assign(&from));
                let from = from.slice(s![at.0, at.1]);
                let mut to = to.slice_mut(s![at.0, at.1]);
                let outcome = copy.launch_on(stream, Grid::cover(1), (&from, &mut to));
                // An array that was first used as a whole has all of its memory.
                let both = 2 * whole;
                if self.is_taken(outcome, device, both) {
                    let from = self.plain[other].slice(s![at.0, at.1]).to_owned();
                    self.plain[which].slice_mut(s![at.0, at.1]).assign(&from);
                }
            }
            _ => {
                let other = 1 - which;
                let [one, two] = &mut self.arrays[..] else { unreachable!() };
                let (from, to) = if which == 0 { (two, one) } else { (one, two) };
                let from = from.slice(s![at.0, at.1]);
                let mut to = to.slice_mut(s![at.0, at.1]);
                let outcome = to.assign_on(stream, &from);
                // An array that was first used as a whole has all of its memory.
                let both = 2 * whole;
                if self.is_taken(outcome, device, both) {
                    let from = self.plain[other].slice(s![at.0, at.1]).to_owned();
                    self.plain[which].slice_mut(s![at.0, at.1]).assign(&from);
                }
            }
        }
    }

    /// Fills a part.
    fn fill(&mut self, call: &Call<T>, number: usize) {
        let &Call { which, at, ref stream, ref device, needed, value, .. } = call;
        let array = &mut self.arrays[which];
        match number {
            11 => {
                array.slice_mut(s![at.0, at.1]).fill(value).expect("it has a place");
                self.plain[which].slice_mut(s![at.0, at.1]).fill(value);
            }
            12 => {
                let outcome = array.slice_mut(s![at.0, at.1]).fill_on(stream, value);
                if self.is_taken(outcome, device, needed) {
                    self.plain[which].slice_mut(s![at.0, at.1]).fill(value);
                }
            }
            _ => {
                array.slice_mut(s![at.0, at.1]).discard();
                array.slice_mut(s![at.0, at.1]).fill(value).expect("it has a place");
                self.plain[which].slice_mut(s![at.0, at.1]).fill(value);
            }
        }
    }

    /// Reads and writes on the host.
    fn use_on_the_host(&mut self, call: &Call<T>, number: usize) {
        let &Call { which, at, value, .. } = call;
        let array = &mut self.arrays[which];
        let index = (self.random.below(array.shape()[0]), self.random.below(array.shape()[1]));
        match number {
            13 => {
                assert_eq!(array.get(index).expect("it is there"), self.plain[which][index]);
                array.set(index, value).expect("it is there");
                self.plain[which][index] = value;
            }
            14 => {
                let mut host = array.slice_mut(s![at.0, at.1]);
                let mut host = host.host_mut().expect("it comes down");
                host.mapv_inplace(|x| if x == value { T::of(1) } else { x });
                self.plain[which]
                    .slice_mut(s![at.0, at.1])
                    .mapv_inplace(|x| if x == value { T::of(1) } else { x });
            }
            _ => {
                let host = array.slice(s![at.0, at.1]);
                let expected = self.plain[which].slice(s![at.0, at.1]);
                assert_eq!(host.host().expect("it comes down"), expected);
            }
        }
    }

    /// Changes no contents.
    fn move_around(&mut self, call: &Call<T>, number: usize) {
        let &Call { which, at, ref stream, ref device, needed, whole, .. } = call;
        let array = &mut self.arrays[which];
        match number {
            17 => array.release_on(device).expect("it is copied to the host"),
            18 => {
                let outcome = array.slice(s![at.0, at.1]).prefetch(stream);
                self.is_taken(outcome, device, needed);
            }
            20 => {
                let share = [4, 2, 1, 3][self.random.below(4)];
                let limit = [None, Some(whole / share), Some(whole * 2 / share)];
                device.set_memory_limit(limit[self.random.below(3)]).expect("nothing is in use");
            }
            22 => {
                array.prefetch_host().expect("it comes down");
                if self.random.below(2) == 0
                    && let Err(error) = array.release_host()
                {
                    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
                }
            }
            _ => {
                let guard = array.slice(s![at.0, at.1]).gpu_on(stream).map(drop);
                self.is_taken(guard, device, needed);
            }
        }
    }

    /// Reads copies.
    fn read_copies(&mut self, call: &Call<T>, number: usize) {
        let &Call { which, at, ref stream, .. } = call;
        let array = &mut self.arrays[which];
        match number {
            19 => {
                let snapshot = array.slice(s![at.0, at.1]).snapshot_on(stream);
                let snapshot = snapshot.and_then(|it| it.wait()).expect("it needs no memory");
                assert_eq!(snapshot, self.plain[which].slice(s![at.0, at.1]));
            }
            _ => {
                if let Ok(clone) = array.try_clone() {
                    assert_eq!(clone.host().expect("it comes down").view(), self.plain[which]);
                }
            }
        }
    }

    /// Does one thing with one array.
    fn step(&mut self) {
        let (which, at) = (self.random.below(2), self.part());
        let stream = self.streams[self.random.below(self.streams.len())].clone();
        let device = stream.device();
        let whole = (self.plain[0].len() * size_of::<T>()) as u64;
        let needed = self.bytes_max(which, at);
        let value = T::of(self.random.below(200));
        let number = self.random.below(24);
        let call = Call { which, at, stream, device, whole, needed, value };
        match number {
            0..=5 => self.write_in_a_launch(&call),
            6 | 7 => self.overwrite_in_a_launch(&call),
            8..=10 => self.copy_between(&call, number),
            11 | 12 | 16 => self.fill(&call, number),
            13..=15 => self.use_on_the_host(&call, number),
            19 | 21 => self.read_copies(&call, number),
            _ => self.move_around(&call, number),
        }
        for device in &self.devices {
            if let Some(limit) = device.memory_limit() {
                let memory = device.memory();
                assert!(memory.in_use + memory.pooled <= limit, "{memory:?} of {limit}, {number}");
            }
        }
    }

    fn finish(mut self) {
        for (array, plain) in self.arrays.drain(..).zip(&self.plain) {
            assert_eq!(array.into_array().expect("nothing is lost"), plain);
        }
        for device in &self.devices {
            device.synchronize().expect("nothing fails");
            assert_ordered(device);
            assert_eq!(device.memory().in_use, 0);
        }
    }
}

fn run<T: Value>(seed: u64) {
    let outcome = std::panic::catch_unwind(|| {
        let mut program = Program::<T>::new(seed);
        (0..120).for_each(|_| program.step());
        program.finish();
    });
    assert!(outcome.is_ok(), "seed {seed} of {}", std::any::type_name::<T>());
}

#[test]
fn drawn_programs_find_what_plain_arrays_hold() {
    for seed in 0..sampled(2, 200) {
        run::<u32>(seed);
        run::<u8>(seed);
        run::<[u8; 3]>(seed);
        run::<[u64; 2]>(seed);
    }
}
