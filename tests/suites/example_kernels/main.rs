//! The kernels of the examples with arguments and grids of wrong sizes, and with contents that make
//! no sense: each launch is refused by a requirement before anything moves, or accesses only its
//! own elements. On a GPU, where there is one, this is what compute-sanitizer watches; elsewhere
//! the host bodies run on the embedded device, whose views panic where they are left. `photos` has
//! the kernels of `pipeline`. And the files that the examples read as pictures.

mod conjugate_gradient;
mod heat;
mod pictures;
mod pipeline;

use resident::{Arguments, Device, Error, Grid, Kernel, Result, Signature, Stream};

/// Where the kernels are tried, and what came of it.
struct Bench {
    device: Device,
    stream: Stream,
    refused: usize,
    done: usize,
}

impl Bench {
    /// On the current device, if kernels can be prepared for it: a GPU without a compiler is passed
    /// over, unless it was asked for.
    fn new(prepare: impl Fn(&Device) -> Result<()>) -> Self {
        let mut device = Device::current().expect("the embedded device, if no other");
        match prepare(&device) {
            Ok(()) => (),
            Err(error) if std::env::var_os("RESIDENT_DEVICE").is_some() => panic!("{error}"),
            Err(error) => {
                println!("not on {device}: {error}");
                device = Device::cpu();
            }
        }
        Self { stream: device.stream(), device, refused: 0, done: 0 }
    }

    /// A launch that is to be done if the arguments fit, and else to be refused by a requirement.
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
                panic!("{} on {grid:?} was to be refused by a requirement: {error}", kernel.name())
            }
            (false, Ok(())) => panic!(
                "{} on {grid:?} was to be refused by a requirement, and was done",
                kernel.name()
            ),
        }
    }

    /// Both bodies come to the same, whatever the arrays hold.
    fn compare<S: Signature>(&self, kernel: &Kernel<S>, grid: Grid, arguments: impl Arguments<S>) {
        let difference = kernel
            .compare(&self.device, grid, arguments, 0.0)
            .unwrap_or_else(|error| panic!("{}: {error}", kernel.name()));
        assert!(difference.is_none(), "{difference:?}");
    }

    /// So many launches at least.
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

/// Every pair of these.
fn pairs<T: Copy>(of: &[T]) -> impl Iterator<Item = (T, T)> {
    of.iter().flat_map(move |&one| of.iter().map(move |&other| (one, other)))
}

/// Numbers of which about half are below `end`, and the others anything.
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
