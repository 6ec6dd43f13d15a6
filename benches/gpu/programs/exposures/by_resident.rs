//! The program with this library.

use resident::ndarray::Array2;
use resident::{Device, SmartArray, Stream};

use super::{BRIGHTEN, COLUMN, Exposed, ROUNDS, row_of};
use crate::gpu::fault::Outcome;
use crate::gpu::ours::{self, Affine};

pub struct Camera {
    kernel: Affine,
    stream: Stream,
}

impl Camera {
    pub fn new(gpu: &Device) -> Outcome<Self> {
        Ok(Self { kernel: ours::affine(), stream: gpu.new_stream()? })
    }

    pub fn expose(&self, picture: Array2<f32>) -> Outcome<Exposed> {
        let mut picture = SmartArray::from(picture);
        let mut next = SmartArray::uninit_like(&picture);
        let ((factor, offset), len, mut sum) = (BRIGHTEN, picture.len(), 0.0);
        for round in 0..ROUNDS {
            let arguments = (factor, offset, &picture, &mut next, len as u64);
            self.kernel.launch_on(&self.stream, ours::cover(len), arguments)?;
            std::mem::swap(&mut picture, &mut next);
            let (row, value) = row_of(round);
            picture.row_mut(row).host_overwrite()?.fill(value);
            sum += picture.column(COLUMN).host()?.sum();
        }
        Ok(Exposed { picture: picture.into_array()?, sum })
    }
}
