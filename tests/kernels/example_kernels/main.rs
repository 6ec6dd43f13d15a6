//! The kernels of the examples, with arguments and grids of wrong sizes, and with invalid contents:
//! each launch either is refused by a requirement before anything is copied, or accesses only its
//! own elements. On a GPU, compute-sanitizer checks this. Elsewhere the kernels run on the embedded
//! device, which checks the accesses of bodies in Rust, and with `RESIDENT_SANITIZE=1` those of
//! CUDA C; and their CUDA C runs on the stand-in driver (`stand_in`). What CUDA C computes is
//! compared with plain loops over ndarray. `photos` uses the kernels of `pipeline`. `pictures`
//! tests how the examples read and write picture files.

support::record_launches!();

mod conjugate_gradient;
mod heat;
mod live;
mod pictures;
mod pipeline;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod stand_in;
mod stream_file;

use resident::{Arguments, Device, Error, Grid, Kernel, Result, Signature, Stream};

/// The device on which the kernels run, and the counts of launches.
struct Bench {
    device: Device,
    stream: Stream,
    refused: usize,
    done: usize,
}

impl Bench {
    /// Uses the current device if kernels can be prepared for it; a GPU without a compiler is
    /// skipped, unless `RESIDENT_DEVICE` is set.
    fn new(prepare: impl Fn(&Device) -> Result<()>) -> Self {
        let current = Device::current().expect("the embedded device, if no other");
        let mut devices = [current, Device::cpu()].into_iter();
        let device = devices.find(|device| match prepare(device) {
            Ok(()) => true,
            Err(error) if std::env::var_os("RESIDENT_DEVICE").is_some() => panic!("{error}"),
            Err(error) => {
                println!("not on {device}: {error}");
                assert!(*device != Device::cpu(), "{error}");
                false
            }
        });
        let device = device.expect("the embedded device");
        Self { stream: device.stream(), device, refused: 0, done: 0 }
    }

    /// A launch that must run if the sizes of its arguments match, and must otherwise be refused by
    /// a requirement.
    fn launch<S: Signature>(
        &mut self,
        fits: bool,
        kernel: &Kernel<S>,
        grid: Grid,
        arguments: impl Arguments<S>,
    ) {
        let outcome = kernel
            .launch_on(&self.stream, grid, arguments)
            .and_then(|()| self.stream.synchronize());
        match (fits, outcome) {
            (true, Ok(())) => self.done += 1,
            (false, Err(Error::Requirement { .. })) => self.refused += 1,
            (true, Err(error)) => panic!("{} on {grid:?}: {error}", kernel.name()),
            (false, Err(error)) => {
                panic!(
                    "{} on {grid:?} should have been refused by a requirement: {error}",
                    kernel.name()
                )
            }
            (false, Ok(())) => panic!(
                "{} on {grid:?} was to be refused by a requirement, and was done",
                kernel.name()
            ),
        }
    }

    /// Asserts that the host body and the device body give the same results, for any contents of
    /// the arrays.
    fn compare<S: Signature>(&self, kernel: &Kernel<S>, grid: Grid, arguments: impl Arguments<S>) {
        let difference = kernel
            .compare(&self.device, grid, arguments, 0.0)
            .unwrap_or_else(|error| panic!("{}: {error}", kernel.name()));
        assert!(difference.is_none(), "{difference:?}");
    }

    /// Asserts that at least these numbers of launches ran and were refused.
    fn assert_counts(&self, done_min: usize, refused_min: usize) {
        println!("on {}: {} launches were done, {} refused", self.device, self.done, self.refused);
        assert!(
            self.done >= done_min && self.refused >= refused_min,
            "{} and {}",
            self.done,
            self.refused
        );
    }
}

/// Every pair of these values.
fn pairs<T: Copy>(of: &[T]) -> impl Iterator<Item = (T, T)> {
    of.iter().flat_map(move |&one| of.iter().map(move |&other| (one, other)))
}

/// Numbers of which about half are below `end`, and the others arbitrary.
fn noise(len: usize, end: usize) -> Vec<u32> {
    let number =
        |index: usize| (index as u32).wrapping_add(1).wrapping_mul(2_654_435_761).rotate_left(13);
    let numbers = (0..len).map(|index| match index % 4 {
        0 => u32::MAX,
        1 => number(index),
        _ => (number(index) as usize % end.max(1)) as u32,
    });
    numbers.collect()
}
