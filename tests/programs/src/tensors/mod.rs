//! Programs over tensors of other code, most of them malformed: a device takes each over or refuses
//! it, as an oracle says that calculates in 128 bits. Arrays over them are read, written, handed
//! out and taken over again, beside a copy of the memory.

mod describe;
mod exchange;
mod oracle;

use std::any::Any;

use arbitrary::Arbitrary;
use num_complex::Complex;
use resident::ndarray::{Ix1, Ix2, IxDyn};
use resident::{Device, Emulation};

use self::describe::Tensor;
use self::exchange::take_over;

/// The bytes of the memory that the tensors describe, and no more.
const MEMORY_BYTES: usize = 2048;

/// How often a step hands its array out and takes it over again.
const ROUND_TRIPS_MAX: u8 = 2;

/// Tensors over one memory, on a device that runs its work in the order of a seed.
#[derive(Arbitrary, Debug)]
pub struct Program {
    seed: u64,
    steps: Vec<Step>,
}

/// A tensor that is taken over as an array of these elements and axes.
#[derive(Arbitrary, Debug)]
struct Step {
    tensor: Tensor,
    element: Element,
    axes: Axes,
    is_legacy: bool,
    is_read_only: bool,
    /// Written to the array's elements, if it may be written.
    byte: u8,
    /// How often the array is handed out and taken over again.
    round_trips: u8,
    /// Whether the array lives until the program's end, so that its memory is in use.
    is_kept: bool,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Element {
    U8,
    I16,
    F32,
    C128,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Axes {
    One,
    Two,
    Any,
}

/// What the steps share.
struct Bench {
    device: Device,
    /// Aligned for every element.
    memory: Vec<u128>,
    /// What the memory contains.
    model: Vec<u8>,
    kept: Vec<Kept>,
    /// The tensors whose deleter was called, and those that were made with one.
    freed: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    made: usize,
}

/// The bytes that an array of an earlier step uses, and the array.
struct Kept {
    bytes: std::ops::Range<i128>,
    _array: Box<dyn Any>,
}

impl Program {
    /// Runs the program; panics if a check fails.
    pub fn run(&self) {
        let model: Vec<u8> = (0..MEMORY_BYTES).map(|byte| (byte * 7 + byte / 256) as u8).collect();
        let words = model.chunks_exact(16).map(|word| word.try_into().expect("16 bytes"));
        let mut bench = Bench {
            device: Device::emulated(
                Emulation::new().seed(self.seed).poison(true).page_bytes(self.seed % 9),
            ),
            memory: words.map(u128::from_ne_bytes).collect(),
            model,
            kept: Vec::new(),
            freed: Default::default(),
            made: 0,
        };
        self.steps.iter().take(8).for_each(|step| bench.run(step));
        bench.end();
    }
}

impl Bench {
    fn run(&mut self, step: &Step) {
        match step.element {
            Element::U8 => self.run_of::<u8>(step),
            Element::I16 => self.run_of::<i16>(step),
            Element::F32 => self.run_of::<f32>(step),
            Element::C128 => self.run_of::<Complex<f64>>(step),
        }
    }

    fn run_of<T: resident::TensorElement>(&mut self, step: &Step) {
        match step.axes {
            Axes::One => take_over::<T, Ix1>(self, step),
            Axes::Two => take_over::<T, Ix2>(self, step),
            Axes::Any => take_over::<T, IxDyn>(self, step),
        }
    }

    /// The memory's bytes are those of the model, once all work has run.
    fn expect_model(&self) {
        self.device.synchronize().expect("no call fails");
        let words = self.memory.as_ptr();
        for (position, expected) in self.model.chunks_exact(16).enumerate() {
            // Arrays write the memory behind the pointer that they got.
            // SAFETY: the model has as many words as the memory, and no work is queued.
            let word = unsafe { words.wrapping_add(position).read_volatile() };
            assert_eq!(word.to_ne_bytes(), expected, "word {position}");
        }
    }

    /// Waits until all that is dropped is freed. Each deleter of a tensor over an array of a tensor
    /// queues the next free.
    fn settle(&self) {
        for _ in 0..=ROUND_TRIPS_MAX + 1 {
            self.device.synchronize().expect("no call fails");
        }
    }

    /// Each tensor's deleter is called once, when its array is gone and the work has run.
    fn end(mut self) {
        self.kept.clear();
        self.settle();
        assert_eq!(self.freed.load(std::sync::atomic::Ordering::SeqCst), self.made);
        assert_eq!(self.device.memory().in_use, 0);
        let hazards = self.device.emulation().map_or(0, |log| log.hazards().len());
        assert_eq!(hazards, 0);
        self.expect_model();
    }
}
