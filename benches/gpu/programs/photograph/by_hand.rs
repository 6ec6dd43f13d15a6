//! The programs with cudarc only. Both upload the photograph once, keep all arrays on the device
//! and download the sheet once. They differ in what they copy for host code.

use std::sync::Arc;

use resident::Grid;
use resident::bytemuck::Pod;
use resident::cudarc::driver::{CudaSlice, CudaStream, DeviceRepr, PushKernelArg};
use resident::ndarray::Array3;

use super::{LOW, Print, SCALE_ROW, SIGMA, scale, threshold};
use crate::gpu::fault::{Fault, Outcome};
use crate::gpu::programs::Copies;
use crate::gpu::twin::{Twin, View, address, fetch, fetch_column, launch_config, new_memory};
use resident_example_pipeline::brightness::BINS;
use resident_example_pipeline::sheet::sheet_columns;
use resident_example_pipeline::steps::BLOCK;

/// The kernels, after the prelude that defines their views.
const SOURCE: &str = concat!(
    include_str!("../../../../crates/code/src/prelude.cuh"),
    include_str!("../../../../examples/pipeline/kernels.cu"),
    include_str!("../../../../examples/pipeline/brightness.cu"),
    include_str!("../../../../examples/pipeline/sheet.cu")
);

/// A parameter of a kernel.
enum Parameter {
    Number(f32),
    Plane(View<2>),
    Picture(View<3>),
    Memory(u64),
}

pub struct Darkroom {
    twin: Twin,
    stream: Arc<CudaStream>,
    copies: Copies,
    /// Rows, columns, channels.
    shape: (usize, usize, usize),
}

impl Darkroom {
    pub fn new(shape: (usize, usize, usize), copies: Copies) -> Outcome<Self> {
        let twin = Twin::of_source(SOURCE, &["--fmad=false"])?;
        let stream = twin.stream()?;
        Ok(Self { twin, stream, copies, shape })
    }

    pub fn develop(&self, photo: Array3<u8>) -> Outcome<Print> {
        let pixels = photo.as_slice().ok_or_else(|| Fault::new("pixels are not in order"))?;
        let photo = self.stream.clone_htod(pixels)?;
        let mut grey = self.values::<f32>()?;
        self.launch("grey", [self.picture(&photo), self.plane(&grey)])?;
        self.repair(&mut grey)?;

        let bins = self.stream.alloc_zeros::<u32>(BINS)?;
        self.count(&grey, &bins)?;
        let (strength, direction) = self.gradient(&grey)?;
        let high = self.choose(&strength)?;

        let edges = self.edges(high, &strength, &direction)?;
        let mut overlay = new_memory::<u8>(&self.stream, pixels.len())?;
        let drawn = [self.picture(&photo), self.plane(&edges), self.picture(&overlay)];
        self.launch("overlay", drawn)?;
        self.draw_scale(&mut overlay)?;

        let sheet = self.compose(&photo, &strength, &overlay)?;
        Ok(Print { sheet: fetch(&self.stream, &sheet)?, bins: fetch(&self.stream, &bins)? })
    }

    /// The first row gets the values of the second.
    fn repair(&self, grey: &mut CudaSlice<f32>) -> Outcome {
        let columns = self.shape.1;
        match self.copies {
            Copies::Parts => {
                let second = fetch(&self.stream, &grey.slice(columns..2 * columns))?;
                self.stream.memcpy_htod(&second, &mut grey.slice_mut(..columns))?;
            }
            Copies::WholeArrays => {
                let mut all = fetch(&self.stream, grey)?;
                all.copy_within(columns..2 * columns, 0);
                self.stream.memcpy_htod(&all, grey)?;
            }
        }
        Ok(())
    }

    /// The threshold by the middle column.
    fn choose(&self, strength: &CudaSlice<f32>) -> Outcome<f32> {
        let (columns, middle) = (self.shape.1, self.shape.1 / 2);
        Ok(match self.copies {
            Copies::Parts => threshold(&fetch_column(&self.stream, strength, (columns, middle))?),
            Copies::WholeArrays => {
                threshold(fetch(&self.stream, strength)?.iter().skip(middle).step_by(columns))
            }
        })
    }

    fn draw_scale(&self, overlay: &mut CudaSlice<u8>) -> Outcome {
        let len = self.shape.1 * self.shape.2;
        let (row, scale) = (SCALE_ROW * len..(SCALE_ROW + 1) * len, scale(self.shape.1));
        match self.copies {
            Copies::Parts => self.stream.memcpy_htod(&scale, &mut overlay.slice_mut(row))?,
            Copies::WholeArrays => {
                let mut all = fetch(&self.stream, overlay)?;
                all[row].copy_from_slice(&scale);
                self.stream.memcpy_htod(&all, overlay)?;
            }
        }
        Ok(())
    }

    fn count(&self, grey: &CudaSlice<f32>, bins: &CudaSlice<u32>) -> Outcome {
        let parameters = [self.plane(grey), Parameter::Memory(address(bins, &self.stream))];
        self.launch_over(Grid::cover(grey.len()), "histogram", parameters)
    }

    /// Strength and direction of the gradient of the blurred picture.
    fn gradient(&self, grey: &CudaSlice<f32>) -> Outcome<(CudaSlice<f32>, CudaSlice<u8>)> {
        let (half, soft, strength) = (self.values()?, self.values()?, self.values::<f32>()?);
        let direction = self.values::<u8>()?;
        let sigma = || Parameter::Number(SIGMA);
        self.launch("blur_rows", [sigma(), self.plane(grey), self.plane::<f32>(&half)])?;
        self.launch("blur_columns", [sigma(), self.plane(&half), self.plane::<f32>(&soft)])?;
        let parameters = [&soft, &strength].map(|plane| self.plane(plane));
        let [soft, strength_plane] = parameters;
        self.launch("sobel", [soft, strength_plane, self.plane(&direction)])?;
        Ok((strength, direction))
    }

    /// The edges, by hysteresis.
    fn edges(
        &self,
        high: f32,
        strength: &CudaSlice<f32>,
        direction: &CudaSlice<u8>,
    ) -> Outcome<CudaSlice<u8>> {
        let (ridges, labels) = (self.values::<f32>()?, self.values::<u32>()?);
        let anchored = self.stream.alloc_zeros::<u8>(strength.len())?;
        let edges = self.values::<u8>()?;
        let (low, high) = (Parameter::Number(LOW), Parameter::Number(high));
        let (ridges, labels) = (|| self.plane(&ridges), || self.plane(&labels));
        self.launch("thin", [self.plane(strength), self.plane(direction), ridges()])?;
        self.launch("candidates", [low, ridges(), labels()])?;
        self.launch("unite", [labels()])?;
        self.launch("anchor", [high, ridges(), labels(), self.plane(&anchored)])?;
        self.launch("keep", [labels(), self.plane(&anchored), self.plane(&edges)])?;
        Ok(edges)
    }

    /// Photograph, gradient and edges side by side.
    fn compose(
        &self,
        photo: &CudaSlice<u8>,
        strength: &CudaSlice<f32>,
        overlay: &CudaSlice<u8>,
    ) -> Outcome<CudaSlice<u8>> {
        let shape = (self.shape.0, sheet_columns(self.shape.1), self.shape.2);
        let sheet = new_memory::<u8>(&self.stream, shape.0 * shape.1 * shape.2)?;
        let view = Parameter::Picture(View::picture(address(&sheet, &self.stream), shape));
        let parameters = [self.picture(photo), self.plane(strength), self.picture(overlay), view];
        self.launch_over(Grid::cover_2d((shape.0, shape.1), BLOCK), "sheet", parameters)?;
        Ok(sheet)
    }

    /// Launches a kernel with a thread for each pixel.
    fn launch<const N: usize>(&self, name: &str, parameters: [Parameter; N]) -> Outcome {
        self.launch_over(Grid::cover_2d((self.shape.0, self.shape.1), BLOCK), name, parameters)
    }

    fn launch_over<const N: usize>(
        &self,
        grid: Grid,
        name: &str,
        parameters: [Parameter; N],
    ) -> Outcome {
        let function = self.twin.function(name)?;
        let mut launch = self.stream.launch_builder(&function);
        for parameter in &parameters {
            match parameter {
                Parameter::Number(number) => launch.arg(number),
                Parameter::Plane(plane) => launch.arg(plane),
                Parameter::Picture(picture) => launch.arg(picture),
                Parameter::Memory(memory) => launch.arg(memory),
            };
        }
        // SAFETY: the callers pass the parameters of the kernel in order; each view has memory of
        // its shape, which is freed after the kernel in stream order.
        unsafe { launch.launch(launch_config(grid)) }?;
        Ok(())
    }

    /// Memory for one value per pixel.
    fn values<T: DeviceRepr + Pod>(&self) -> Outcome<CudaSlice<T>> {
        new_memory(&self.stream, self.shape.0 * self.shape.1)
    }

    fn plane<T>(&self, memory: &CudaSlice<T>) -> Parameter {
        let data = address(memory, &self.stream);
        Parameter::Plane(View::plane(data, (self.shape.0, self.shape.1)))
    }

    fn picture(&self, memory: &CudaSlice<u8>) -> Parameter {
        Parameter::Picture(View::picture(address(memory, &self.stream), self.shape))
    }
}
