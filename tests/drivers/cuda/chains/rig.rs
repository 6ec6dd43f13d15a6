//! A device, its streams, and chains over matrices, with a model of what they compute.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use resident_backend::call_site::call_site;
use resident_backend::grid::Grid;
use resident_backend::{
    Address, Backend, ChainCall, ChainInstance, ChainStep, CopyBox, CopyWork, Dependencies,
    ElementLayout, FailureKind, FillWork, Footprint, HostMemory, KernelCode, Label, LabelText,
    LaunchWork, Maker, Memory, PackedArguments, PackedArray, ParameterLayout, Position, Program,
    RawStream, StreamId, Work,
};
use resident_core::Access;
use resident_gpu::GpuDevice;

use crate::face::{self as driver, Settings};

/// Rows and columns of a matrix.
pub(crate) const SIDE: usize = 8;
pub(crate) const LEN: usize = SIDE * SIDE;
pub(crate) const LEN_BYTES: u64 = 4 * LEN as u64;

/// The contents of a matrix.
pub(crate) type Values = [u32; LEN];

/// A device and a stream of it.
pub(crate) struct Gpu {
    pub(crate) device: Arc<GpuDevice>,
    pub(crate) stream: Arc<dyn RawStream>,
}

/// A step over matrices, which are numbers of a replay's arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// The second is the first and a number.
    Plus(u32, usize, usize),
    /// Adds the first to the second.
    Mix(usize, usize),
    /// Three times itself and a number.
    Scale(u32, usize),
    /// Copies the first to the second.
    CopyAll(usize, usize),
    /// Copies so many rows, but not their last column.
    CopyRows(usize, usize, usize),
    /// Fills with words of which the second follows the first.
    Fill(usize, [u32; 2]),
    /// A kernel that fails.
    Broken(usize),
}

use Step::{Broken, CopyAll, CopyRows, Fill, Mix, Plus, Scale};

impl Step {
    /// The matrices that it reads, and the one that it writes.
    fn uses(self) -> (Vec<usize>, usize) {
        match self {
            Plus(_, from, to) | CopyAll(from, to) | CopyRows(_, from, to) => (vec![from], to),
            Mix(from, to) => (vec![from, to], to),
            Scale(_, to) | Broken(to) => (vec![to], to),
            Fill(to, _) => (vec![], to),
        }
    }

    fn is_before(self, later: Self) -> bool {
        let ((reads, writes), (later_reads, later_writes)) = (self.uses(), later.uses());
        writes == later_writes || later_reads.contains(&writes) || reads.contains(&later_writes)
    }

    fn apply(self, matrices: &mut [Values]) {
        match self {
            Plus(k, from, to) => matrices[to] = matrices[from].map(|x| x.wrapping_add(k)),
            Mix(from, to) => {
                let from = matrices[from];
                matrices[to].iter_mut().zip(from).for_each(|(to, x)| *to = to.wrapping_add(x));
            }
            Scale(k, to) => matrices[to] = matrices[to].map(|x| x.wrapping_mul(3).wrapping_add(k)),
            CopyAll(from, to) => matrices[to] = matrices[from],
            CopyRows(rows, from, to) => {
                let from = matrices[from];
                for row in 0..rows {
                    let row = row * SIDE..row * SIDE + SIDE - 1;
                    matrices[to][row.clone()].copy_from_slice(&from[row]);
                }
            }
            Fill(to, words) => matrices[to] = std::array::from_fn(|index| words[index % 2]),
            Broken(_) => {}
        }
    }
}

/// What a replay leaves in the matrices.
pub(crate) fn apply(steps: &[Step], arguments: &[usize], matrices: &mut [Values]) {
    for step in steps {
        on(*step, arguments).apply(matrices);
    }
}

/// The step over the matrices that are a replay's arguments.
fn on(step: Step, arguments: &[usize]) -> Step {
    let to = |index: usize| arguments[index];
    match step {
        Plus(k, one, two) => Plus(k, to(one), to(two)),
        Mix(one, two) => Mix(to(one), to(two)),
        Scale(k, one) => Scale(k, to(one)),
        CopyAll(one, two) => CopyAll(to(one), to(two)),
        CopyRows(rows, one, two) => CopyRows(rows, to(one), to(two)),
        Fill(one, words) => Fill(to(one), words),
        Broken(one) => Broken(to(one)),
    }
}

/// A chain and its instance for matrices of this size.
pub(crate) struct Chain {
    pub(crate) steps: Vec<Step>,
    pub(crate) instance: Mutex<ChainInstance>,
    kernels: Vec<(&'static str, KernelCode)>,
}

impl Gpu {
    pub(crate) fn open(ordinal: usize) -> Self {
        let device = resident_gpu::open(crate::KIND, ordinal).expect("it opens");
        let stream = device.new_stream(None).expect("a stream");
        Self { device, stream }
    }

    /// Loads the stand-in and its kernels, and opens its first device.
    pub(crate) fn with(settings: Settings) -> Self {
        crate::matrices::open(settings, 0);
        let gpu = Self::open(0);
        driver::take_calls();
        gpu
    }

    /// A matrix on the device.
    pub(crate) fn matrix(&self, values: &Values) -> Address {
        let address = self.stream.allocate(LEN_BYTES, &label("matrix")).expect("memory");
        self.upload(address, values);
        address
    }

    pub(crate) fn upload(&self, to: Address, values: &Values) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let host = Arc::new(Bytes(bytes.into())) as Arc<dyn HostMemory>;
        self.copy(Memory::Host(host), Memory::Device(to));
        self.wait();
    }

    pub(crate) fn download(&self, from: Address) -> Values {
        let host = Arc::new(Bytes(vec![0; LEN_BYTES as usize].into()));
        self.copy(Memory::Device(from), Memory::Host(Arc::clone(&host) as Arc<dyn HostMemory>));
        self.wait();
        let word = |index: usize| host.0[4 * index..4 * index + 4].try_into().expect("four bytes");
        std::array::from_fn(|index| u32::from_ne_bytes(word(index)))
    }

    fn copy(&self, source: Memory, destination: Memory) {
        let run = Footprint::run(0, LEN_BYTES).copy_to_same_offsets();
        let work = copy_work(source, destination, run);
        let _position = self.stream.copy(Box::new(work), Maker::Stream).expect("queued").position();
    }

    pub(crate) fn wait(&self) {
        self.stream.synchronize_to(self.stream.tail()).expect("nothing fails");
    }

    pub(crate) fn chain(&self, steps: &[Step]) -> Chain {
        self.chain_of(steps, &["plus", "mix", "scale", "broken"])
    }

    /// A chain whose kernels are among these.
    pub(crate) fn chain_of(&self, steps: &[Step], kernels: &[&'static str]) -> Chain {
        let kernels = kernels.iter().map(|name| (*name, self.load(name))).collect();
        let instance = ChainInstance { title: "chain \"c\"".into(), ..ChainInstance::default() };
        Chain { steps: steps.to_vec(), instance: Mutex::new(instance), kernels }
    }

    fn load(&self, name: &str) -> KernelCode {
        let scalar = ParameterLayout::Scalar(ElementLayout::of::<u32>());
        let view = |access| ParameterLayout::Sized {
            element: ElementLayout::of::<u32>(),
            ndim: Some(2),
            access,
        };
        let parameters: Box<[ParameterLayout]> = match name {
            "plus" => [scalar, view(Access::Read), view(Access::Overwrite)].into(),
            "mix" => [view(Access::Read), view(Access::ReadWrite)].into(),
            _ => [scalar, view(Access::ReadWrite)].into(),
        };
        let source = crate::matrices::source(name);
        let program = Program { kernel: name.into(), source, parameters };
        self.device.load(&program).expect("it is loaded")
    }
}

/// The number of calls, which is the version of the steps of each.
static CALLS: AtomicU64 = AtomicU64::new(0);

impl Chain {
    /// Replays the chain on a stream with matrices at these addresses.
    pub(crate) fn replay(
        &self,
        stream: &dyn RawStream,
        arguments: &[Address],
    ) -> Result<Position, resident_backend::BackendError> {
        self.repeat(stream, arguments, 1, &[])
    }

    pub(crate) fn repeat(
        &self,
        stream: &dyn RawStream,
        arguments: &[Address],
        count: u64,
        depends: &[(StreamId, Position)],
    ) -> Result<Position, resident_backend::BackendError> {
        let steps = self.steps(arguments, Step::is_before);
        self.call(stream, &steps, count, depends)
    }

    pub(crate) fn call(
        &self,
        stream: &dyn RawStream,
        steps: &[ChainStep],
        count: u64,
        depends: &[(StreamId, Position)],
    ) -> Result<Position, resident_backend::BackendError> {
        let (mut instance, site) = (self.instance.lock().expect("no panic"), call_site());
        // Another each time, so that the backend compares the steps.
        let version = CALLS.fetch_add(1, Ordering::Relaxed);
        let instance = &mut *instance;
        stream.run_chain(&mut ChainCall { instance, steps, version, count, depends, site })
    }

    /// The steps, each behind those that `is_before` says.
    pub(crate) fn steps(
        &self,
        arguments: &[Address],
        is_before: fn(Step, Step) -> bool,
    ) -> Vec<ChainStep> {
        let after = |index: usize| {
            let earlier =
                (0..index).filter(|earlier| is_before(self.steps[*earlier], self.steps[index]));
            earlier.map(|earlier| earlier as u32).collect()
        };
        let step = |(index, step): (usize, &Step)| ChainStep {
            work: self.work(*step, arguments),
            after: after(index),
        };
        self.steps.iter().enumerate().map(step).collect()
    }

    fn work(&self, step: Step, arguments: &[Address]) -> Work {
        use Access::{Overwrite, Read, ReadWrite};
        let at = |index: usize| arguments[index];
        match step {
            Plus(k, one, two) => {
                self.launch("plus", Some(k), &[(at(one), Read), (at(two), Overwrite)])
            }
            Mix(one, two) => self.launch("mix", None, &[(at(one), Read), (at(two), ReadWrite)]),
            Scale(k, one) => self.launch("scale", Some(k), &[(at(one), ReadWrite)]),
            Broken(one) => self.launch("broken", Some(0), &[(at(one), ReadWrite)]),
            CopyAll(one, two) => {
                let run = Footprint::run(0, LEN_BYTES).copy_to_same_offsets();
                let (from, to) = (Memory::Device(at(one)), Memory::Device(at(two)));
                Work::Copy(Box::new(copy_work(from, to, run)))
            }
            CopyRows(rows, one, two) => {
                let row = 4 * SIDE as u64;
                let part = CopyBox {
                    run_bytes: row - 4,
                    source_offset_bytes: 0,
                    destination_offset_bytes: 0,
                    axes: [(rows as u64, row, row)].into_iter().collect(),
                };
                let (from, to) = (Memory::Device(at(one)), Memory::Device(at(two)));
                Work::Copy(Box::new(copy_work(from, to, part)))
            }
            Fill(one, words) => Work::Fill(Box::new(FillWork {
                address: at(one),
                parts: [Footprint::run(0, LEN_BYTES)].into_iter().collect(),
                pattern: words.iter().flat_map(|word| word.to_ne_bytes()).collect(),
                loss: FailureKind::Contents,
                depends: Dependencies::new(),
                label: label("fill"),
            })),
        }
    }

    fn launch(&self, kernel: &str, scalar: Option<u32>, arrays: &[(Address, Access)]) -> Work {
        let mut arguments = PackedArguments::default();
        arguments.words.extend(scalar.map(u64::from));
        for (address, access) in arrays {
            arguments.arrays.push(PackedArray {
                address: *address,
                origin_bytes: 0,
                element_bytes: 4,
                at_word: arguments.words.len() as u32,
                is_flat: false,
                access: *access,
            });
            let side = SIDE as u64;
            arguments.words.extend_from_slice(&[2, side, side, side, 1]);
        }
        let known = self.kernels.iter().find(|(name, _)| *name == kernel);
        Work::Launch(LaunchWork {
            code: known.expect("it is loaded").1.clone(),
            grid: Grid::cover(LEN),
            arguments,
            depends: Dependencies::new(),
            site: call_site(),
        })
    }
}

pub(crate) fn label(text: &str) -> Label {
    Label { text: LabelText::Text(text.into()), site: None }
}

fn copy_work(source: Memory, destination: Memory, part: CopyBox) -> CopyWork {
    CopyWork {
        source,
        destination,
        source_device: None,
        parts: [part].into_iter().collect(),
        may_read_between: false,
        loss: FailureKind::Contents,
        depends: Dependencies::new(),
        label: label("copy"),
    }
}

/// Matrices that differ.
pub(crate) fn matrices(count: usize) -> Vec<Values> {
    (0..count).map(|one| std::array::from_fn(|index| (100 * one + index) as u32)).collect()
}

/// Host memory that only the test and the copy use.
#[derive(Debug)]
struct Bytes(Box<[u8]>);

// SAFETY: the value owns its bytes.
unsafe impl HostMemory for Bytes {
    fn base(&self) -> *mut u8 {
        self.0.as_ptr().cast_mut()
    }

    fn len_bytes(&self) -> usize {
        self.0.len()
    }
}
