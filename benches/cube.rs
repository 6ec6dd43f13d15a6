//! A cube written on the device, for benchmarks that launch kernels over parts of it.

use resident::ndarray::{Ix2, Ix3, s};
use resident::{Device, Grid, InOut, Kernel, Out, SmartArray, SmartViewMut, Stream};

pub type Cube = SmartArray<u8, Ix3>;

/// A cube of 1,024³ bytes whose device copy is the newest. The kernel that writes the cube has a
/// body that accesses no element, so the operating system allocates no pages for it.
pub fn cube() -> Cube {
    let mut cube = Cube::uninit((1024, 1024, 1024));
    let stream = Device::cpu().stream();
    let write = Kernel::<(Out<u8, Ix3>,)>::new("write").host(|_grid, _cube| ());
    write.launch_on(&stream, Grid::cover(1), (&mut cube,)).expect("1 GiB of address space");
    stream.synchronize().expect("nothing failed");
    cube
}

/// Launches on each of the six faces.
///
/// # Panics
///
/// If a launch is refused.
pub fn launch_on_faces(kernel: &Kernel<(InOut<u8, Ix2>,)>, cube: &mut Cube, stream: &Stream) {
    let launch = |face: &mut SmartViewMut<'_, u8, Ix2>| {
        kernel.launch_on(stream, Grid::cover(1), (face,)).expect("launched");
    };
    launch(&mut cube.slice_mut(s![0, .., ..]));
    launch(&mut cube.slice_mut(s![1023, .., ..]));
    launch(&mut cube.slice_mut(s![.., 0, ..]));
    launch(&mut cube.slice_mut(s![.., 1023, ..]));
    launch(&mut cube.slice_mut(s![.., .., 0]));
    launch(&mut cube.slice_mut(s![.., .., 1023]));
}
