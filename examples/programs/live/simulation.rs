//! A wave on a square: steps on a device, while any number of watches look at it.

use std::collections::VecDeque;

use resident::ndarray::Ix2;
use resident::{Device, Event, Grid, Result, SmartArray, Stream, Watch};

use super::kernels::Kernels;

/// Rows and columns of a block of threads.
const BLOCK: (u32, u32) = (8, 32);

/// After so many steps an event is recorded, and the host waits for the one before it: so the host
/// does not queue everything at once.
const STEPS_PER_EVENT: u64 = 32;

/// The heights of two moments that follow each other.
pub struct Simulation {
    kernels: Kernels,
    stream: Stream,
    size: usize,
    now: SmartArray<f32, Ix2>,
    before: SmartArray<f32, Ix2>,
    steps: u64,
    queued: VecDeque<Event>,
}

impl Simulation {
    /// A drop in still water, on the current device.
    pub fn new(size: usize) -> Result<Self> {
        let make = |name| SmartArray::uninit((size, size)).named(name);
        let (mut now, mut before) = (make("heights"), make("heights before"));
        let (kernels, stream) = (Kernels::new(), Device::current()?.stream());
        let (row, column, radius) =
            (0.4 * size as f32, 0.3 * size as f32, 0.02 * size as f32 + 1.0);
        let grid = Grid::cover_2d((size, size), BLOCK);
        for heights in [&mut now, &mut before] {
            kernels.drop.launch_on(&stream, grid, (row, column, radius, heights))?;
        }
        Ok(Self { kernels, stream, size, now, before, steps: 0, queued: VecDeque::new() })
    }

    /// The heights now.
    pub fn heights(&self) -> &SmartArray<f32, Ix2> {
        &self.now
    }

    /// Watches the memory that has the heights now, which every second step writes: a state after
    /// each `every` steps, or less often.
    pub fn watch_every(&self, every: u64) -> Result<Watch<f32, Ix2>> {
        self.now.watch_every(every.div_ceil(2))
    }

    /// Queues steps, and stays a little ahead of the device. Calls `told` now and then with the
    /// number of steps that the device has done.
    pub fn run(&mut self, steps: u64, mut told: impl FnMut(u64)) -> Result<()> {
        let grid = Grid::cover_2d((self.size, self.size), BLOCK);
        for _ in 0..steps {
            self.kernels.wave.launch_on(&self.stream, grid, (&self.now, &mut self.before))?;
            std::mem::swap(&mut self.now, &mut self.before);
            self.steps += 1;
            if self.steps.is_multiple_of(STEPS_PER_EVENT) {
                self.queued.push_back(self.stream.record()?);
                if self.queued.len() > 2 {
                    self.queued.pop_front().map_or(Ok(()), |event| event.synchronize())?;
                    told(self.steps - 2 * STEPS_PER_EVENT);
                }
            }
        }
        self.queued.clear();
        self.stream.synchronize()?;
        told(self.steps);
        Ok(())
    }
}
