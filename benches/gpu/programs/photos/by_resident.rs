//! The program with this library: the steps of the example `photos`.

use std::collections::VecDeque;

use resident::ndarray::Array3;
use resident::{Device, Pending, SmartArray, Stream};

use super::{HIGH, IN_FLIGHT, LOW, SIGMA};
use crate::gpu::fault::Outcome;
use resident_example_pipeline::kernels::Kernels;
use resident_example_pipeline::progress::Progress;
use resident_example_pipeline::steps::{Picture, Steps};

pub struct Studio {
    kernels: Kernels,
    pub upload: Stream,
    pub compute: Stream,
    download: Stream,
}

impl Studio {
    pub fn new(gpu: &Device) -> Outcome<Self> {
        Ok(Self {
            kernels: Kernels::new(),
            upload: gpu.new_stream()?,
            compute: gpu.new_stream()?,
            download: gpu.new_stream()?,
        })
    }

    /// Queues the kernels of one photograph.
    pub fn steps(&self, photo: &Picture) -> resident::Result<Picture> {
        let steps =
            Steps { kernels: &self.kernels, stream: &self.compute, progress: &Progress::hidden() };
        let soft = steps.blur(SIGMA, &steps.grey(photo)?)?;
        let (strength, direction) = steps.gradient(&soft)?;
        let edges = steps.connect(LOW, HIGH, &steps.thin(&strength, &direction)?)?;
        steps.overlay(photo, &edges)
    }

    fn queue(&self, photo: Array3<u8>) -> resident::Result<Pending<Array3<u8>>> {
        let photo = SmartArray::from(photo);
        photo.prefetch(&self.upload)?;
        self.steps(&photo)?.snapshot_on(&self.download)
    }

    /// Processes all photographs and returns the first `kept` results.
    pub fn process(&self, photos: Vec<Array3<u8>>, kept: usize) -> Outcome<Vec<Array3<u8>>> {
        let (mut under_way, mut first) = (VecDeque::new(), Vec::new());
        let mut finish = |edges: Pending<Array3<u8>>| -> Outcome {
            let edges = edges.wait()?;
            if first.len() < kept {
                first.push(edges);
            }
            Ok(())
        };
        for photo in photos {
            under_way.push_back(self.queue(photo)?);
            if under_way.len() >= IN_FLIGHT {
                under_way.pop_front().map_or(Ok(()), &mut finish)?;
            }
        }
        under_way.into_iter().try_for_each(&mut finish)?;
        Ok(first)
    }
}
