//! Programs over views: chains of rearrangements of one array, beside ndarray's.

pub mod chain;
pub mod fields;
pub mod launched;

use arbitrary::Arbitrary;
use resident::ndarray::{ArrayD, IxDyn, ShapeBuilder};
use resident::{Device, DeviceArray, Emulation, Result, SmartArray, SmartView, Stream};

use self::chain::{Operation, Step, distinct, positions, write};
use self::launched::{Kernels, STEP};

/// Chains of rearrangements of an array.
#[derive(Clone, Debug)]
pub struct Chain {
    pub shape: Vec<usize>,
    pub is_fortran: bool,
    pub steps: Vec<Step>,
}

/// A chain on a device that runs its work in the order of a seed, as the fuzzer makes it.
#[derive(Arbitrary, Debug)]
pub struct Program {
    seed: u64,
    lens: [u8; 4],
    ndim: u8,
    is_fortran: bool,
    steps: Vec<Step>,
}

impl Program {
    /// Runs the program; panics if a check fails.
    pub fn run(self) {
        let device = Device::emulated(
            Emulation::new().seed(self.seed).poison(true).page_bytes(self.seed % 9),
        );
        let lens = self.lens.iter().map(|len| usize::from(len % 7));
        let chain = Chain {
            shape: lens.take(usize::from(self.ndim % 5)).collect(),
            is_fortran: self.is_fortran,
            steps: self.steps.into_iter().take(12).collect(),
        };
        let runs = [
            Chain::run_on_views,
            Chain::run_on_device_views,
            Chain::run_on_exclusive_views,
            Chain::run_on_exclusive_device_views,
            Chain::run_on_fields,
            Chain::run_on_device_fields,
            Chain::run_on_exclusive_fields,
        ];
        let kernels = Kernels::new(None);
        for run in runs {
            run(&chain, &device.stream(), &kernels).unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(device.emulation().map_or(0, |log| log.hazards().len()), 0);
    }
}

impl Chain {
    /// An array whose contents are newest on a device.
    fn array(&self, stream: &Stream) -> Result<SmartArray<u32, IxDyn>> {
        let mut array = SmartArray::from(positions(&self.shape, self.is_fortran));
        array.gpu_mut_on(stream).map(drop)?;
        Ok(array)
    }

    /// The view at the end of the chain has the elements of ndarray's, and only these are copied.
    pub fn run_on_views(&self, stream: &Stream, kernels: &Kernels) -> Result<()> {
        let (array, mut expected) = (self.array(stream)?, positions(&self.shape, self.is_fortran));
        let mut view = array.view();
        for step in &self.steps {
            let Some(operation) = Operation::of(*step, view.shape(), true) else { continue };
            if let Some(next) = operation.on_view(&view)? {
                expected = operation.expected(&expected);
                view = next;
            }
        }
        check_view(stream, &view, &expected)?;
        kernels.read(stream, &view, &expected)
    }

    /// As [`run_on_views`](Self::run_on_views), for an array that is on a device only.
    pub fn run_on_device_views(&self, stream: &Stream, kernels: &Kernels) -> Result<()> {
        let mut expected = positions(&self.shape, self.is_fortran);
        let array = DeviceArray::from_host_on(stream, &expected)?;
        let mut view = array.view();
        for step in &self.steps {
            let Some(operation) = Operation::of(*step, view.shape(), true) else { continue };
            if let Some(next) = operation.on_device_view(&view)? {
                expected = operation.expected(&expected);
                view = next;
            }
        }
        assert_eq!((view.shape(), view.len()), (expected.shape(), expected.len()));
        assert_eq!(view.copy_to_host()?, expected);
        let mut copy = DeviceArray::uninit_on(stream, expected.raw_dim().f())?;
        copy.copy_from_device(&view)?;
        assert_eq!(copy.copy_to_host()?, expected);
        kernels.read(stream, &view, &expected)
    }

    /// The view at the end of the chain writes the elements of ndarray's, and no others; so does a
    /// kernel.
    pub fn run_on_exclusive_views(&self, stream: &Stream, kernels: &Kernels) -> Result<()> {
        let (mut array, mut contents) =
            (self.array(stream)?, positions(&self.shape, self.is_fortran));
        let (mut part, mut view) = (contents.clone(), array.view_mut());
        for step in &self.steps {
            let Some(operation) = Operation::of(*step, view.shape(), false) else { continue };
            if !operation.fits(&view.view()) {
                continue;
            }
            part = operation.expected(&part);
            view = operation.on_view_mut(view)?;
        }
        assert_eq!(view.shape(), part.shape());
        let before = view.traffic().to_host.bytes;
        assert_eq!(*view.host()?, part);
        assert_eq!(view.traffic().to_host.bytes - before, 4 * part.len() as u64);
        let mut values: Vec<u32> = (1_000..).take(part.len()).collect();
        view.copy_from_slice(&values)?;
        kernels.change(stream, &mut view, part.shape())?;
        values.iter_mut().for_each(|value| *value += STEP);
        write(&mut contents, &part, &values);
        assert_eq!(*array.host()?, contents);
        Ok(())
    }

    /// As [`run_on_exclusive_views`](Self::run_on_exclusive_views), for an array that is on a
    /// device only: values are written from the host, and then others on the device.
    pub fn run_on_exclusive_device_views(&self, stream: &Stream, kernels: &Kernels) -> Result<()> {
        let mut contents = positions(&self.shape, self.is_fortran);
        let mut array = DeviceArray::from_host_on(stream, &contents)?;
        let (mut part, mut view) = (contents.clone(), array.view_mut());
        for step in &self.steps {
            let Some(operation) = Operation::of(*step, view.shape(), false) else { continue };
            if !operation.fits_on_device(&view.view()) {
                continue;
            }
            part = operation.expected(&part);
            view = operation.on_device_view_mut(view)?;
        }
        assert_eq!(view.shape(), part.shape());
        assert_eq!(view.copy_to_host()?, part);
        let mut values = ArrayD::zeros(part.raw_dim().set_f(self.is_fortran));
        values.iter_mut().zip(1_000..).for_each(|(value, number)| *value = number);
        view.copy_from_host(&values)?;
        assert_eq!(view.copy_to_host()?, values);
        values += 1_000;
        view.copy_from_device(&DeviceArray::from_host_on(stream, &values)?)?;
        assert_eq!(view.copy_to_host()?, values);
        kernels.change(stream, &mut view, part.shape())?;
        values += STEP;
        let values: Vec<u32> = values.iter().copied().collect();
        write(&mut contents, &part, &values);
        assert_eq!(array.copy_to_host()?, contents);
        Ok(())
    }
}

fn check_view(
    stream: &Stream,
    view: &SmartView<'_, u32, IxDyn>,
    expected: &ArrayD<u32>,
) -> Result<()> {
    assert_eq!((view.shape(), view.len()), (expected.shape(), expected.len()));
    if let Some((index, element)) = expected.indexed_iter().last() {
        assert_eq!(view.get(index)?, *element);
    }
    let snapshot = view.snapshot_on(stream)?;
    let before = view.traffic().to_host.bytes;
    assert_eq!(view.host()?.to_owned(), *expected);
    assert_eq!(view.traffic().to_host.bytes - before, 4 * distinct(expected));
    assert_eq!(snapshot.wait()?, *expected);
    assert_eq!(view.to_vec()?, expected.iter().copied().collect::<Vec<_>>());
    assert_eq!(*view.try_clone()?.host()?, *expected);
    let mut copy = SmartArray::<u32, _>::uninit(expected.raw_dim().f());
    copy.assign(view)?;
    assert_eq!(*copy.host()?, *expected);
    assert_eq!(*view.gpu_on(stream)?.shape(), *expected.shape());
    Ok(())
}
