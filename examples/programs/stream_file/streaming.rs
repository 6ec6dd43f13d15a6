//! Rows of samples on the host, of any number, through three kernels of a device that holds a few
//! chunks of them.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::{ops::Range, panic, thread};

use resident::ndarray::Array2;
use resident::{Device, Grid, Pending, Result, SmartArray, Stream};

use super::kernels::Kernels;

/// The samples of a row. The kernels use neighbours in the row, so that chunks of whole rows are
/// independent of each other.
pub const ROW_LEN: usize = 4096;

/// Chunks that are on the device at once: one is uploaded, one is computed, one is downloaded, and
/// one waits for whichever ends first.
const IN_FLIGHT: usize = 4;

/// Bytes on the device for each sample: 16-bit counts before and after, and two numbers between.
const BYTES_PER_SAMPLE: usize = 2 + 4 + 4 + 2;

/// Larger chunks would be no faster to copy.
const CHUNK_ROWS_MAX: usize = 2048;

/// The device memory below which there is no room for chunks of one row.
pub const MEMORY_BYTES_MIN: usize = IN_FLIGHT * ROW_LEN * BYTES_PER_SAMPLE;

/// The kernels, a stream for each stage, and the size of chunks.
pub struct Streaming {
    kernels: Kernels,
    upload: Stream,
    compute: Stream,
    /// The last work of each chunk is on this stream.
    pub download: Stream,
    chunk_rows: usize,
}

/// The samples of some rows, which an array reads where they are. They keep all samples alive: here
/// a mapped file.
struct Rows<S> {
    samples: Arc<S>,
    rows: Range<usize>,
}

impl<S: AsRef<[u16]>> AsRef<[u16]> for Rows<S> {
    fn as_ref(&self) -> &[u16] {
        &(*self.samples).as_ref()[self.rows.start * ROW_LEN..self.rows.end * ROW_LEN]
    }
}

impl Streaming {
    /// With chunks that take no more than so many bytes on the device together.
    ///
    /// # Errors
    ///
    /// As [`Device::new_stream`], and of compilers of the kernels.
    pub fn new(device: &Device, memory_bytes: usize) -> Result<Self> {
        let kernels = Kernels::new();
        kernels.calibrate.prepare(device)?;
        kernels.smooth.prepare(device)?;
        kernels.quantise.prepare(device)?;
        Ok(Self {
            kernels,
            upload: device.new_stream()?,
            compute: device.new_stream()?,
            download: device.new_stream()?,
            chunk_rows: (memory_bytes / MEMORY_BYTES_MIN).clamp(1, CHUNK_ROWS_MAX),
        })
    }

    /// The rows of each chunk.
    pub fn chunks(&self, rows: usize) -> impl ExactSizeIterator<Item = Range<usize>> + use<> {
        let chunk_rows = self.chunk_rows;
        let chunk = move |n: usize| n * chunk_rows..((n + 1) * chunk_rows).min(rows);
        (0..rows.div_ceil(chunk_rows)).map(chunk)
    }

    /// Queues one chunk, and returns without waiting for it. The arrays are dropped at the end:
    /// queued work keeps the memory that it needs.
    ///
    /// # Errors
    ///
    /// Those of the copies and launches.
    pub fn queue<S>(&self, samples: &Arc<S>, rows: Range<usize>) -> Result<Pending<Array2<u16>>>
    where
        S: AsRef<[u16]> + Send + Sync + 'static,
    {
        let shape = (rows.len(), ROW_LEN);
        let owner = Rows { samples: Arc::clone(samples), rows };
        let counts = SmartArray::from_owner_shaped(owner, shape)?.named("counts");
        let mut volts = SmartArray::<f32, _>::uninit(shape).named("volts");
        let mut smoothed = SmartArray::<f32, _>::uninit(shape).named("smoothed");
        let mut result = SmartArray::<u16, _>::uninit(shape).named("result");
        let (kernels, grid) = (&self.kernels, Grid::cover(counts.len()));
        counts.prefetch(&self.upload)?;
        kernels.calibrate.launch_on(&self.compute, grid, (&counts, &mut volts))?;
        kernels.smooth.launch_on(&self.compute, grid, (&volts, &mut smoothed))?;
        kernels.quantise.launch_on(&self.compute, grid, (&smoothed, &mut result))?;
        result.snapshot_on(&self.download)
    }

    /// Sends all rows through the kernels. Calls `write` for each chunk of results, in order, on a
    /// thread of its own.
    ///
    /// # Errors
    ///
    /// The first error of `write`, of a copy, or of a launch.
    pub fn run<S, E>(
        &self,
        samples: &Arc<S>,
        mut write: impl FnMut(&Array2<u16>) -> std::result::Result<(), E> + Send,
    ) -> std::result::Result<(), E>
    where
        S: AsRef<[u16]> + Send + Sync + 'static,
        E: From<resident::Error> + Send,
    {
        // Besides the chunks in the channel, one is waited for, and one waits for the channel.
        let (sender, results) = sync_channel::<Pending<Array2<u16>>>(IN_FLIGHT - 2);
        thread::scope(|scope| {
            let writer = scope
                .spawn(move || results.into_iter().try_for_each(|result| write(&result.wait()?)));
            let queued = self.queue_all(samples, sender);
            let written = writer.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
            written.and(queued.map_err(E::from))
        })
    }

    /// Queues chunks, and waits when enough of them are in flight.
    fn queue_all<S>(&self, samples: &Arc<S>, to: SyncSender<Pending<Array2<u16>>>) -> Result<()>
    where
        S: AsRef<[u16]> + Send + Sync + 'static,
    {
        for rows in self.chunks((**samples).as_ref().len() / ROW_LEN) {
            if to.send(self.queue(samples, rows)?).is_err() {
                break; // The writer has failed.
            }
        }
        Ok(())
    }
}
