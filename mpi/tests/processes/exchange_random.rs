//! Random decompositions: after an exchange each halo cell has the value that the global array has
//! there, as one process would read it.

use resident::ndarray::{Array, Dim, Dimension, IxDyn};
use resident::{Device, Element, Emulation, SmartArray, Stream};
use resident_mpi::{Decomposition, Mpi, Transport};

#[cfg(feature = "cuda")]
use crate::launch::run;
use crate::launch::run_each;
use crate::random::Random;

/// What halo cells hold before; no cell has this value.
const UNTOUCHED: u64 = 251;

/// Numbers of processes, and of the cases that they try.
const JOBS: [(usize, u64); 5] = [(1, 60), (2, 40), (3, 30), (4, 30), (6, 20)];

#[test]
fn halos_are_those_of_the_global_array() {
    run_each(&JOBS.map(|(processes, _)| processes), |mpi| {
        let job = JOBS.iter().find(|(processes, _)| *processes == mpi.size());
        on_emulated_devices(mpi, job.expect("one of the jobs").1);
    });
}

fn on_emulated_devices(mpi: &Mpi, cases: u64) {
    random_cases(
        mpi,
        cases,
        // MPI can use memory of the embedded device only.
        |seed| match (mpi.transport(), seed % 2) {
            (Transport::Device, 0) => Device::cpu(),
            _ => Device::emulated(Emulation::new().seed(seed)),
        },
        |device| {
            let hazards = device.emulation().map(|emulation| emulation.hazards());
            hazards.iter().flatten().map(ToString::to_string).collect()
        },
    );
}

/// The CUDA backend, with the stand-in for its driver.
#[cfg(feature = "cuda")]
#[test]
fn two_processes_on_stand_in_gpus() {
    // Before MPI is initialised, which looks for GPUs.
    let settings = resident_stand_in::Settings::new();
    resident_stand_in::load(settings).expect("the stand-in driver loads");
    run(2, |mpi| {
        let gpu = |_seed| Device::cuda(0).expect("the stand-in has a GPU");
        random_cases(mpi, 20, gpu, |_device| resident_stand_in::take_hazards());
        let calls = resident_stand_in::take_calls();
        let copies = |name| calls.iter().filter(|call| call.name.starts_with(name)).count();
        assert!(copies("cuMemcpyDtoH") > 0, "faces are contiguous when they come to the host");
    });
}

/// Exchanges of random grids, each on the device of its seed.
pub(crate) fn random_cases(
    mpi: &Mpi,
    cases: u64,
    device: impl Fn(u64) -> Device,
    hazards: impl Fn(&Device) -> Vec<String>,
) {
    for seed in 0..cases {
        let mut random = Random::new(1000 * mpi.size() as u64 + seed);
        let device = device(seed);
        let _here = device.enter();
        match random.below(4) {
            0 => case::<1>(mpi, &device, &mut random, 40),
            1 => case::<2>(mpi, &device, &mut random, 14),
            2 => case::<3>(mpi, &device, &mut random, 9),
            _ => case::<4>(mpi, &device, &mut random, 6),
        }
        device.synchronize().unwrap();
        let hazards = hazards(&device);
        assert!(hazards.is_empty(), "seed {seed}: {hazards:?}");
    }
}

/// A grid that fits the processes, or `None` if these numbers do not.
fn grid<const N: usize>(
    mpi: &Mpi,
    random: &mut Random,
    cells: usize,
) -> Option<(Decomposition<N>, [bool; N], bool)> {
    let shape: [usize; N] = std::array::from_fn(|_| 1 + random.below(cells));
    let halos: [usize; N] = std::array::from_fn(|_| random.below(3));
    let periodic: [bool; N] = std::array::from_fn(|_| random.coin());
    let (corners, is_chosen) = (random.coin(), random.coin());
    let mut grid = mpi.grid(shape).halos(halos).periodic(periodic).corners(corners);
    if is_chosen {
        let mut processes = [1; N];
        processes[random.below(N)] = mpi.size();
        grid = grid.processes(processes);
    }
    Some((grid.build().ok()?, periodic, corners))
}

fn case<const N: usize>(mpi: &Mpi, device: &Device, random: &mut Random, cells: usize)
where
    Dim<[usize; N]>: Dimension,
{
    let Some((plate, periodic, corners)) = grid::<N>(mpi, random, cells) else { return };
    let check = Check { plate: &plate, periodic, corners };
    let stream = if random.coin() { device.stream() } else { device.new_stream().unwrap() };
    match random.below(3) {
        0 => one(&check, random, &stream),
        1 => two(&check, random, &stream),
        _ => four(&check, random, &stream),
    }
}

fn one<const N: usize>(check: &Check<'_, N>, random: &mut Random, stream: &Stream)
where
    Dim<[usize; N]>: Dimension,
{
    let mut a = check.array(random, |value| value as f64);
    let mut halo = check.plate.exchange(&a).unwrap();
    let on_host = random.coin();
    for step in 0..3 {
        check.write(&mut a, step, |value| value as f64, !on_host && random.coin());
        if is_in_one_call(check, random) {
            halo.update(&mut a, stream).unwrap();
        } else {
            halo.start(&a, stream).unwrap().finish(&mut a).unwrap();
        }
        check.is_exchanged(&a, step, |value| value as f64);
    }
}

fn two<const N: usize>(check: &Check<'_, N>, random: &mut Random, stream: &Stream)
where
    Dim<[usize; N]>: Dimension,
{
    let mut a = check.array(random, |value| value as u8);
    let mut b = check.array(random, |value| [value as f32, -(value as f32)]);
    let mut halo = check.plate.exchange((&a, &b)).unwrap();
    let on_host = random.coin();
    for step in 0..3 {
        check.write(&mut a, step, |value| value as u8, !on_host && random.coin());
        let on_device = !on_host && random.coin();
        check.write(&mut b, step + 50, |value| [value as f32, -(value as f32)], on_device);
        if is_in_one_call(check, random) {
            halo.update((&mut a, &mut b), stream).unwrap();
        } else {
            halo.start((&a, &b), stream).unwrap().finish((&mut a, &mut b)).unwrap();
        }
        check.is_exchanged(&a, step, |value| value as u8);
        check.is_exchanged(&b, step + 50, |value| [value as f32, -(value as f32)]);
    }
}

fn four<const N: usize>(check: &Check<'_, N>, random: &mut Random, stream: &Stream)
where
    Dim<[usize; N]>: Dimension,
{
    let mut arrays: [_; 3] = std::array::from_fn(|_| check.array(random, |value| value as i16));
    let mut d = check.array(random, |value| value);
    let [a, b, c] = &mut arrays;
    let mut halo = check.plate.exchange((&*a, &*b, &*c, &d)).unwrap();
    for step in 0..2 {
        check.write(a, step, |value| value as i16, random.coin());
        check.write(b, step + 20, |value| value as i16, random.coin());
        check.write(c, step + 40, |value| value as i16, random.coin());
        check.write(&mut d, step + 60, |value| value, random.coin());
        let going = halo.start((&*a, &*b, &c.view(), &d.view()), stream).unwrap();
        going.finish((&mut *a, &mut b.view_mut(), &mut *c, &mut d)).unwrap();
        for (array, step) in [(&*a, step), (&*b, step + 20), (&*c, step + 40)] {
            check.is_exchanged(array, step, |value| value as i16);
        }
        check.is_exchanged(&d, step + 60, |value| value);
    }
}

/// Differs between processes: both ways send the same messages.
fn is_in_one_call<const N: usize>(check: &Check<'_, N>, random: &mut Random) -> bool {
    // All processes draw the same number.
    (random.below(4) + check.plate.rank()) % 4 < 2
}

struct Check<'a, const N: usize> {
    plate: &'a Decomposition<N>,
    periodic: [bool; N],
    corners: bool,
}

impl<const N: usize> Check<'_, N>
where
    Dim<[usize; N]>: Dimension,
{
    /// The value of a cell of the global array, by its index, which may be outside of it.
    fn value(&self, global: [i64; N], step: u64) -> Option<u64> {
        let mut value = step;
        for (axis, index) in global.into_iter().enumerate() {
            let cells = self.plate.global_shape()[axis] as i64;
            if !self.periodic[axis] && !(0..cells).contains(&index) {
                return None;
            }
            value = value * 31 + index.rem_euclid(cells) as u64;
        }
        Some(value % UNTOUCHED)
    }

    /// The global index of a cell of this process's array.
    fn global(&self, local: &IxDyn) -> [i64; N] {
        let (offset, halos) = (self.plate.offset(), self.plate.halos());
        std::array::from_fn(|axis| (offset[axis] + local[axis]) as i64 - halos[axis] as i64)
    }

    /// Along how many axes a cell is in the halo.
    fn depth(&self, local: &IxDyn) -> usize {
        let own = self.plate.own();
        (0..N).filter(|axis| !own.ranges()[*axis].contains(&local[*axis])).count()
    }

    /// An array of which all cells are untouched, with its axes in a random order in memory.
    fn array<T: Element>(
        &self,
        random: &mut Random,
        of: fn(u64) -> T,
    ) -> SmartArray<T, Dim<[usize; N]>> {
        let shape = self.plate.zeros::<u8>().unwrap().raw_dim();
        let mut order: [usize; N] = std::array::from_fn(|axis| axis);
        (1..N).for_each(|axis| order.swap(axis, random.below(axis + 1)));
        let memory: Vec<usize> = order.iter().map(|axis| shape[*axis]).collect();
        let mut axes = vec![0; N];
        order.iter().enumerate().for_each(|(position, axis)| axes[*axis] = position);
        let array = Array::from_elem(IxDyn(&memory), of(UNTOUCHED)).permuted_axes(axes);
        let array = array.into_dimensionality::<Dim<[usize; N]>>().unwrap();
        assert_eq!(array.raw_dim(), shape);
        SmartArray::from(array)
    }

    /// Writes the own cells of a step, on the device or on the host.
    fn write<T: Element>(
        &self,
        array: &mut SmartArray<T, Dim<[usize; N]>>,
        step: u64,
        of: fn(u64) -> T,
        on_device: bool,
    ) {
        let mut own = self.plate.interior_mut(array);
        let cells = Array::from_shape_fn(IxDyn(own.shape()), |local| {
            let (offset, index) = (self.plate.offset(), local.slice());
            let global = std::array::from_fn(|axis| (offset[axis] + index[axis]) as i64);
            of(self.value(global, step).expect("own cells are in the domain"))
        });
        let cells = cells.into_dimensionality::<Dim<[usize; N]>>().unwrap();
        if on_device {
            // Uploads the cells, and copies them there.
            let stream = Device::current().unwrap().stream();
            own.assign_on(&stream, &SmartArray::from(cells)).unwrap();
        } else {
            own.host_overwrite().unwrap().assign(&cells);
        }
    }

    /// Each cell has the value that it should have.
    fn is_exchanged<T: Element + PartialEq + std::fmt::Debug>(
        &self,
        array: &SmartArray<T, Dim<[usize; N]>>,
        step: u64,
        of: fn(u64) -> T,
    ) {
        let found = array.host().unwrap();
        for (local, found) in found.view().into_dyn().indexed_iter() {
            let is_exchanged = self.corners || self.depth(&local) <= 1;
            let value = self.value(self.global(&local), step).filter(|_| is_exchanged);
            let expected = of(value.unwrap_or(UNTOUCHED));
            assert_eq!(*found, expected, "{:?} at {local:?} in {:?}", step, self.plate);
        }
    }
}
