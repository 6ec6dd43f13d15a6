//! The program with this library. Host code takes the part that it needs; there is no copy call.

use resident::ndarray::{Array3, Axis};
use resident::{Device, Grid, SmartArray, Stream};

use super::{LOW, Print, SCALE_ROW, SIGMA, scale, threshold};
use crate::gpu::fault::Outcome;
use resident_example_pipeline::brightness::{self, BINS, HistogramKernel};
use resident_example_pipeline::kernels::Kernels;
use resident_example_pipeline::progress::Progress;
use resident_example_pipeline::sheet::{self, SheetKernel};
use resident_example_pipeline::steps::{Steps, cover};

pub struct Darkroom {
    kernels: Kernels,
    histogram: HistogramKernel,
    sheet: SheetKernel,
    stream: Stream,
}

impl Darkroom {
    pub fn new(gpu: &Device) -> Outcome<Self> {
        Ok(Self {
            kernels: Kernels::new(),
            histogram: brightness::kernel(),
            sheet: sheet::kernel(),
            stream: gpu.new_stream()?,
        })
    }

    pub fn develop(&self, photo: Array3<u8>) -> Outcome<Print> {
        let progress = Progress::hidden();
        let steps = Steps { kernels: &self.kernels, stream: &self.stream, progress: &progress };
        let photo = SmartArray::from(photo);
        let (rows, columns, _) = photo.dim();

        let mut grey = steps.grey(&photo)?;
        let second = grey.row(1).host()?.to_owned();
        grey.row_mut(0).host_overwrite()?.assign(&second);

        let mut bins = SmartArray::zeros(BINS);
        self.histogram.launch_on(&self.stream, Grid::cover(grey.len()), (&grey, &mut bins))?;
        let soft = steps.blur(SIGMA, &grey)?;
        let (strength, direction) = steps.gradient(&soft)?;
        let high = threshold(&strength.column(columns / 2).host()?);

        let ridges = steps.thin(&strength, &direction)?;
        let edges = steps.connect(LOW, high, &ridges)?;
        let mut overlay = steps.overlay(&photo, &edges)?;
        let mut scaled = overlay.index_axis_mut(Axis(0), SCALE_ROW);
        scaled.host_overwrite()?.iter_mut().zip(scale(columns)).for_each(|(to, from)| *to = from);

        let mut sheet = SmartArray::uninit((rows, sheet::sheet_columns(columns), 3));
        let grid = cover(&sheet);
        self.sheet.launch_on(&self.stream, grid, (&photo, &strength, &overlay, &mut sheet))?;
        let sheet = sheet.into_array()?.into_raw_vec_and_offset().0;
        Ok(Print { sheet, bins: bins.host()?.to_vec() })
    }
}
