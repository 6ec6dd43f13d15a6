//! The programs with cudarc only. Both keep the picture on the device.

use std::sync::Arc;

use resident::cudarc::driver::{CudaFunction, CudaSlice, CudaStream};
use resident::ndarray::{Array2, ArrayView1, s};

use super::{BRIGHTEN, COLUMN, Exposed, ROUNDS, SHAPE, row_of};
use crate::gpu::fault::{Fault, Outcome};
use crate::gpu::programs::Copies;
use crate::gpu::twin::{Twin, address, affine, fetch, fetch_column, new_memory};

pub struct Camera {
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    copies: Copies,
}

impl Camera {
    pub fn new(copies: Copies) -> Outcome<Self> {
        let twin = Twin::untracked()?;
        Ok(Self { stream: twin.stream()?, kernel: twin.function("affine")?, copies })
    }

    pub fn expose(&self, picture: Array2<f32>) -> Outcome<Exposed> {
        let (stream, len) = (&self.stream, picture.len());
        let pixels = picture.as_slice().ok_or_else(|| Fault::new("pixels are not in order"))?;
        let mut picture = stream.clone_htod(pixels)?;
        let (mut next, mut sum) = (new_memory::<f32>(stream, len)?, 0.0);
        for round in 0..ROUNDS {
            let addresses = (address(&picture, stream), address(&next, stream));
            affine(stream, &self.kernel, BRIGHTEN, addresses, len)?;
            std::mem::swap(&mut picture, &mut next);
            sum += self.retouch(&mut picture, round)?;
        }
        let picture = Array2::from_shape_vec(SHAPE, fetch(stream, &picture)?);
        Ok(Exposed { picture: picture.map_err(Fault::new)?, sum })
    }

    /// Writes the round's row, and returns the sum of the column.
    fn retouch(&self, picture: &mut CudaSlice<f32>, round: usize) -> Outcome<f32> {
        let (stream, columns, (row, value)) = (&self.stream, SHAPE.1, row_of(round));
        match self.copies {
            Copies::Parts => {
                let mut written = picture.slice_mut(row * columns..(row + 1) * columns);
                stream.memcpy_htod(&vec![value; columns], &mut written)?;
                let column = fetch_column(stream, picture, (columns, COLUMN))?;
                Ok(ArrayView1::from(&column).sum())
            }
            Copies::WholeArrays => {
                let all = fetch(stream, picture)?;
                let mut all = Array2::from_shape_vec(SHAPE, all).map_err(Fault::new)?;
                all.row_mut(row).fill(value);
                let sum = all.slice(s![.., COLUMN]).to_owned().sum();
                let pixels = all.as_slice().ok_or_else(|| Fault::new("pixels are in order"))?;
                stream.memcpy_htod(pixels, picture)?;
                Ok(sum)
            }
        }
    }
}
