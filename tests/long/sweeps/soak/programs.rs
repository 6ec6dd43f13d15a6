//! The programs of the long run.

use resident::bytemuck::{Pod, Zeroable};
#[cfg(feature = "cuda")]
use resident::{field, field_mut};
#[cfg(feature = "cuda")]
use support::cuda::{driver, face};
use support::prelude::*;

pub(super) fn add_one() -> Kernel<(InOut<f32>,)> {
    Kernel::new("add_one").host(|_, (xs,): (&mut [f32],)| xs.iter_mut().for_each(|x| *x += 1.0))
}

/// One request: a stream of its own, an array that comes and goes, a shared one that is read, and
/// a launch that fails.
fn request(
    device: &Device,
    shared: &SmartArray<f32, Ix1>,
    [kernel, fails]: [&Kernel<(InOut<f32>,)>; 2],
) {
    let stream = device.new_stream().expect("a stream");
    let mut array = SmartArray::from(vec![1.0_f32; 256]);
    kernel.launch_on(&stream, Grid::cover(256), (&mut array,)).expect("launched");
    drop(shared.gpu_on(&stream).expect("room"));
    drop(shared.slice(s![3..9]).gpu_on(&stream).expect("room"));
    let other = device.new_stream().expect("a stream");
    other.wait(&stream.record().expect("an event")).expect("a wait");
    kernel.launch_on(&other, Grid::cover(256), (&mut array,)).expect("launched");
    assert_eq!(array.get(7).expect("copied"), 3.0);
    assert_eq!(array.host().expect("copied").sum(), 3.0 * 256.0);
    other.synchronize().expect("nothing failed");
    fails.launch_on(&other, Grid::cover(256), (&mut array,)).expect("launched");
    assert!(matches!(array.host(), Err(Error::Lost { .. })));
}

/// A program like a server.
pub(super) struct Server {
    device: Device,
    shared: SmartArray<f32, Ix1>,
    kernel: Kernel<(InOut<f32>,)>,
    fails: Kernel<(InOut<f32>,)>,
}

impl Server {
    pub(super) fn new() -> Self {
        // No hook is called, so that nothing is printed.
        let fails = Kernel::<(InOut<f32>,)>::new("fails")
            .host(|_, (_xs,)| std::panic::resume_unwind(Box::new("no such value")));
        Self { device: Device::cpu(), shared: SmartArray::zeros(1 << 12), kernel: add_one(), fails }
    }

    pub(super) fn run(&self) {
        for _ in 0..20 {
            request(&self.device, &self.shared, [&self.kernel, &self.fails]);
        }
    }
}

/// Long-lived arrays of a batch job.
pub(super) struct Batch {
    streams: Vec<Stream>,
    matrix: SmartArray<f32, Ix2>,
    sums: SmartArray<f32, Ix1>,
    smooth: Kernel<(In<f32, Ix2>, InOut<f32>)>,
    add_one: Kernel<(InOut<f32>,)>,
}

impl Batch {
    pub(super) fn new() -> Self {
        let device = Device::cpu();
        let smooth = Kernel::<(In<f32, Ix2>, InOut<f32>)>::new("smooth")
            .host(|_, (tile, sums)| sums[0] = tile.sum());
        Self {
            streams: (0..4).map(|_| device.new_stream().expect("a stream")).collect(),
            matrix: SmartArray::zeros((64, 64)),
            sums: SmartArray::zeros(64),
            smooth,
            add_one: add_one(),
        }
    }

    /// Writes rows on devices and on the host, reads overlapping tiles, fills parts, and looks.
    pub(super) fn run(&mut self, round: u64) {
        for step in 0..64_usize {
            let stream = &self.streams[(step + round as usize) % 4];
            let mut row = self.matrix.slice_mut(s![step, ..]);
            self.add_one.launch_on(stream, Grid::cover(64), (&mut row,)).expect("launched");
            let top = step.saturating_sub(2);
            let tile = self.matrix.slice(s![top..(step + 3).min(64), 10..40]);
            let mut sum = self.sums.slice_mut(s![step..=step]);
            self.smooth.launch_on(stream, Grid::cover(1), (&tile, &mut sum)).expect("launched");
        }
        let column = (round % 64) as usize;
        self.matrix.slice_mut(s![.., column]).fill(round as f32).expect("filled");
        self.matrix.set((column, 3), 1.0).expect("set");
        assert_eq!(self.matrix.get((column, 3)).expect("there"), 1.0);
        self.sums.host().map(drop).expect("copied");
    }
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Particle {
    mass: f32,
    charge: f32,
}

/// Short-lived arrays of each kind, and copies between them, some of which nothing waits for.
pub(super) fn pass_through_all_kinds(
    device: &Device,
    add_one: &Kernel<(InOut<f32>,)>,
) -> Result<()> {
    let stream = device.new_stream()?;
    let mut lent = Array1::<f32>::ones(256);
    let mut there = DeviceArray::from_host_on(&stream, &lent)?;
    let mut pinned = PinnedArray::from_array(lent.view())?;
    add_one.launch_on(&stream, Grid::cover(256), (&mut there,))?;
    there.copy_to_pinned_on(&stream, &mut pinned)?;
    there.copy_from_pinned_on(&stream, &pinned)?;
    drop(there.copy_to_host_on(&stream)?);
    let mut rows = DeviceArray::uninit_on(&stream, (9, 256))?;
    rows.copy_from_device_on(&stream, &there.broadcast((9, 256))?)?;
    let pending = rows.t().copy_to_host_on(&stream)?;
    let mut mapped = MappedArray::from_array(lent.view())?;
    add_one.launch_on(&stream, Grid::cover(256), (&mut mapped,))?;
    let managed = SmartArray::from(ManagedArray::from_array(mapped.host()?.view())?);
    let live = managed.watch()?;
    with_pinned(&mut lent, |lent| there.copy_to_pinned_on(&stream, lent))?;
    with_mapped(&mut lent, |lent| add_one.launch_on(&stream, Grid::cover(256), (lent,)))?;
    assert_eq!((lent.sum(), managed.host()?.sum()), (768.0, 512.0));
    let mut cloud = SmartArray::from(vec![Particle { mass: 1.0, charge: 2.0 }; 64]);
    let (mut mass, charge) = field_mut!(cloud, Particle, mass, charge);
    mass.assign_on(&stream, &charge)?;
    drop(live);
    let explicit = cloud.into_device(device)?;
    assert_eq!(field!(explicit, Particle, mass).get(63)?, 2.0);
    assert_eq!((pending.wait()?.sum(), pinned.host()?.sum()), (9.0 * 512.0, 512.0));
    Ok(())
}

/// A program like a server, on the stand-in for a GPU, which tells what was opened and closed.
#[cfg(feature = "cuda")]
pub(super) struct GpuServer {
    device: Device,
    shared: SmartArray<u32, Ix2>,
    add: Kernel<(u32, InOut<u32, Ix2>)>,
    open: [i64; 2],
}

#[cfg(feature = "cuda")]
impl GpuServer {
    pub(super) fn new() -> Self {
        let device = driver::open(face::settings(), 1).remove(0);
        // SAFETY: the code is the stand-in's and has the parameters of the signature.
        let add = unsafe { Kernel::new("add").cuda(driver::code("add")) };
        Self { device, shared: SmartArray::zeros((8, 8)), add, open: [0, 0] }
    }

    /// Answers some requests. Returns how many streams and events of the driver are open.
    pub(super) fn run(&mut self) -> [u64; 2] {
        for _ in 0..3 {
            self.answer().expect("nothing fails");
        }
        for call in face::take_calls() {
            let kinds =
                [("cuStreamCreate", "cuStreamDestroy"), ("cuEventCreate", "cuEventDestroy")];
            for (open, (create, destroy)) in self.open.iter_mut().zip(kinds) {
                *open += i64::from(call.name.starts_with(create));
                *open -= i64::from(call.name.starts_with(destroy));
            }
        }
        self.open.map(|open| open.try_into().expect("no more are destroyed than created"))
    }

    fn answer(&self) -> Result<()> {
        let [first, second] = [self.device.new_stream()?, self.device.new_stream()?];
        let mut array = SmartArray::from(Array2::from_elem((8, 8), 1_u32));
        self.add.launch_on(&first, Grid::cover(64), (1, &mut array))?;
        drop(self.shared.gpu_on(&first)?);
        second.wait(&first.record()?)?;
        drop(self.shared.slice(s![3..6, ..]).gpu_on(&second)?);
        self.add.launch_on(&second, Grid::cover(64), (1, &mut array))?;
        assert_eq!((array.get((7, 7))?, array.host()?.sum()), (3, 3 * 64));
        second.synchronize()
    }
}
