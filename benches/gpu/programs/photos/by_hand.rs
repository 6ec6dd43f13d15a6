//! The program with cudarc only: hand-placed events, and pinned memory for both directions, because
//! copies of pageable memory block the calling thread.

use std::collections::VecDeque;
use std::sync::Arc;

use resident::Grid;
use resident::cudarc::driver::{
    CudaEvent, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg,
};
use resident::ndarray::Array3;

use super::{HIGH, IN_FLIGHT, LOW, SIGMA};
use crate::gpu::fault::{Fault, Outcome};
use crate::gpu::twin::{HostMemory, Twin, View, address, bare, launch_config, new_memory};
use resident_example_pipeline::steps::BLOCK;

/// The kernels, after the prelude that defines their views.
const SOURCE: &str = concat!(
    include_str!("../../../../crates/code/src/prelude.cuh"),
    include_str!("../../../../examples/pipeline/kernels.cu")
);

type Plane = View<2>;

/// Memory that is reused for one photograph after another.
struct Slot {
    up: HostMemory<u8>,
    down: HostMemory<u8>,
    uploaded: CudaEvent,
    computed: CudaEvent,
    downloaded: CudaEvent,
    /// Memory that queued work uses. It is freed after the program has waited for the result.
    in_use: Vec<CudaSlice<u8>>,
}

struct Kernels {
    grey: CudaFunction,
    blur_rows: CudaFunction,
    blur_columns: CudaFunction,
    sobel: CudaFunction,
    thin: CudaFunction,
    candidates: CudaFunction,
    unite: CudaFunction,
    anchor: CudaFunction,
    keep: CudaFunction,
    overlay: CudaFunction,
}

pub struct Studio {
    twin: Twin,
    kernels: Kernels,
    upload: Arc<CudaStream>,
    compute: Arc<CudaStream>,
    download: Arc<CudaStream>,
    /// Rows, columns, channels.
    shape: (usize, usize, usize),
    slots: Vec<Slot>,
}

impl Studio {
    pub fn new(shape: (usize, usize, usize)) -> Outcome<Self> {
        let twin = Twin::of_source(SOURCE, &["--fmad=false"])?;
        let kernels = Kernels {
            grey: twin.function("grey")?,
            blur_rows: twin.function("blur_rows")?,
            blur_columns: twin.function("blur_columns")?,
            sobel: twin.function("sobel")?,
            thin: twin.function("thin")?,
            candidates: twin.function("candidates")?,
            unite: twin.function("unite")?,
            anchor: twin.function("anchor")?,
            keep: twin.function("keep")?,
            overlay: twin.function("overlay")?,
        };
        let (upload, compute, download) = (twin.stream()?, twin.stream()?, twin.stream()?);
        let slots = Vec::new();
        Ok(Self { twin, kernels, upload, compute, download, shape, slots })
    }

    /// Processes all photographs and returns the first `kept` results.
    pub fn process(&mut self, photos: Vec<Array3<u8>>, kept: usize) -> Outcome<Vec<Array3<u8>>> {
        let (mut under_way, mut first) = (VecDeque::new(), Vec::new());
        for photo in photos {
            under_way.push_back(self.queue(&photo)?);
            if under_way.len() >= IN_FLIGHT {
                self.finish(under_way.pop_front(), &mut first, kept)?;
            }
        }
        while !under_way.is_empty() {
            self.finish(under_way.pop_front(), &mut first, kept)?;
        }
        Ok(first)
    }

    fn finish(&mut self, slot: Option<Slot>, first: &mut Vec<Array3<u8>>, kept: usize) -> Outcome {
        let Some(mut slot) = slot else { return Ok(()) };
        slot.downloaded.synchronize()?;
        slot.in_use.clear();
        // The result is copied into an array, as in the program with this library.
        let edges =
            Array3::from_shape_vec(self.shape, slot.down.host().to_vec()).map_err(Fault::new)?;
        if first.len() < kept {
            first.push(edges);
        }
        self.slots.push(slot);
        Ok(())
    }

    fn slot(&mut self) -> Outcome<Slot> {
        if let Some(slot) = self.slots.pop() {
            return Ok(slot);
        }
        let (context, len) = (&self.twin.context, self.shape.0 * self.shape.1 * self.shape.2);
        Ok(Slot {
            up: HostMemory::pinned(context, len)?,
            down: HostMemory::pinned(context, len)?,
            uploaded: context.new_event(None)?,
            computed: context.new_event(None)?,
            downloaded: context.new_event(None)?,
            in_use: Vec::new(),
        })
    }

    fn queue(&mut self, photo: &Array3<u8>) -> Outcome<Slot> {
        let mut slot = self.slot()?;
        let pixels = photo
            .as_slice()
            .ok_or_else(|| Fault::new("the photograph is not in row-major order"))?;
        slot.up.host().copy_from_slice(pixels);
        let photo = new_memory::<u8>(&self.upload, pixels.len())?;
        bare::upload(&self.upload, address(&photo, &self.upload), slot.up.host())?;
        slot.uploaded.record(&self.upload)?;
        self.compute.wait(&slot.uploaded)?;
        let overlay = self.compute(&photo)?;
        slot.computed.record(&self.compute)?;
        self.download.wait(&slot.computed)?;
        bare::download(&self.download, slot.down.host(), address(&overlay, &self.compute))?;
        slot.downloaded.record(&self.download)?;
        slot.in_use.extend([photo, overlay]);
        Ok(slot)
    }

    /// Queues the kernels of one photograph. Intermediate memory is freed after the kernels, in
    /// stream order.
    fn compute(&self, photo: &CudaSlice<u8>) -> Outcome<CudaSlice<u8>> {
        let (Self { kernels, compute: stream, shape, .. }, len) =
            (self, self.shape.0 * self.shape.1);
        let floats = || new_memory::<f32>(stream, len);
        let colours = self.picture(address(photo, stream));
        let (grey_memory, half_memory, soft_memory, strength_memory, ridges_memory) =
            (floats()?, floats()?, floats()?, floats()?, floats()?);
        let planes = [&grey_memory, &half_memory, &soft_memory, &strength_memory, &ridges_memory];
        let [grey, half, soft, strength, ridges] =
            planes.map(|memory| self.plane(address(memory, stream)));
        let (direction_memory, labels_memory) =
            (new_memory::<u8>(stream, len)?, new_memory::<u32>(stream, len)?);
        let (anchored_memory, edges_memory) =
            (stream.alloc_zeros::<u8>(len)?, new_memory::<u8>(stream, len)?);
        let [direction, anchored, edges] = [&direction_memory, &anchored_memory, &edges_memory]
            .map(|memory| self.plane(address(memory, stream)));
        let labels = self.plane(address(&labels_memory, stream));
        let overlay_memory = new_memory::<u8>(stream, len * shape.2)?;
        let overlay = self.picture(address(&overlay_memory, stream));
        self.launch(&kernels.grey, None, &[colours], &[grey])?;
        self.launch(&kernels.blur_rows, Some(SIGMA), &[], &[grey, half])?;
        self.launch(&kernels.blur_columns, Some(SIGMA), &[], &[half, soft])?;
        self.launch(&kernels.sobel, None, &[], &[soft, strength, direction])?;
        self.launch(&kernels.thin, None, &[], &[strength, direction, ridges])?;
        self.launch(&kernels.candidates, Some(LOW), &[], &[ridges, labels])?;
        self.launch(&kernels.unite, None, &[], &[labels])?;
        self.launch(&kernels.anchor, Some(HIGH), &[], &[ridges, labels, anchored])?;
        self.launch(&kernels.keep, None, &[], &[labels, anchored, edges])?;
        let mut last = stream.launch_builder(&kernels.overlay);
        last.arg(&colours).arg(&edges).arg(&overlay);
        // SAFETY: these are the parameters of the kernel; each view has memory of its shape, which
        // is freed after the kernel in stream order.
        unsafe { last.launch(self.cover()) }?;
        Ok(overlay_memory)
    }

    /// Launches a kernel whose parameters are a number, pictures and planes, in this order.
    fn launch(
        &self,
        kernel: &CudaFunction,
        number: Option<f32>,
        pictures: &[View<3>],
        planes: &[Plane],
    ) -> Outcome {
        let mut launch = self.compute.launch_builder(kernel);
        number.iter().for_each(|number| {
            launch.arg(number);
        });
        pictures.iter().for_each(|picture| {
            launch.arg(picture);
        });
        planes.iter().for_each(|plane| {
            launch.arg(plane);
        });
        // SAFETY: the caller passes the parameters of the kernel in order; each view has memory of
        // its shape, which is freed after the kernel in stream order.
        unsafe { launch.launch(self.cover()) }?;
        Ok(())
    }

    fn plane(&self, data: u64) -> Plane {
        View::plane(data, (self.shape.0, self.shape.1))
    }

    fn picture(&self, data: u64) -> View<3> {
        View::picture(data, self.shape)
    }

    fn cover(&self) -> LaunchConfig {
        launch_config(Grid::cover_2d((self.shape.0, self.shape.1), BLOCK))
    }
}
