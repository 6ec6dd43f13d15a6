//! Fixtures: host memory, bodies as closures, and short forms of a stream's calls.

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Wake, Waker};
use std::thread::{self, ThreadId};

use smallvec::{SmallVec, smallvec};

use crate::{EmbeddedDevice, Emulation, EmulationLog};
use resident_backend::call_site::call_site;
use resident_backend::grid::Grid;
use resident_backend::{
    Address, Backend, BackendError, CopyBox, CopyWork, Dependencies, EventTiming, FailureKind,
    FillWork, Footprint, HostMemory, KernelBody, KernelCode, Label, LabelText, LaunchWork, Memory,
    PackedArguments, PackedArray, Position, RawStream, SourceDevice, TaskWaker, Work, rust_body,
};
use resident_core::Access;

/// Host memory shared by a test and queued work.
pub(super) struct HostBytes(Box<[UnsafeCell<u8>]>);

// SAFETY: tests read the bytes only after the work that writes them has completed.
unsafe impl Sync for HostBytes {}

// SAFETY: a boxed slice of initialised bytes, which does not move while the value lives.
unsafe impl HostMemory for HostBytes {
    fn base(&self) -> *mut u8 {
        self.0.as_ptr().cast_mut().cast()
    }

    fn len_bytes(&self) -> usize {
        self.0.len()
    }
}

impl HostBytes {
    pub(super) fn new(bytes: impl IntoIterator<Item = u8>) -> Arc<Self> {
        Arc::new(Self(bytes.into_iter().map(UnsafeCell::new).collect()))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        // SAFETY: no work uses these bytes when a test reads them.
        self.0.iter().map(|cell| unsafe { *cell.get() }).collect()
    }
}

impl fmt::Debug for HostBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBytes({})", self.0.len())
    }
}

/// An array argument of a body. Its length is in the launch's words.
pub(super) struct View {
    start: *mut u8,
    len_bytes: usize,
}

impl View {
    pub(super) fn get(&self, index: usize) -> u8 {
        assert!(index < self.len_bytes, "a body of a test reads in range");
        // SAFETY: the bytes lie within the argument, whose length in bytes is in its word
        // (`launch`).
        unsafe { self.start.wrapping_add(index).read() }
    }

    pub(super) fn set(&self, index: usize, value: u8) {
        assert!(index < self.len_bytes, "a body of a test writes in range");
        // SAFETY: as in `get`.
        unsafe { self.start.wrapping_add(index).write(value) };
    }

    pub(super) fn len(&self) -> usize {
        self.len_bytes
    }

    pub(super) fn address(&self) -> usize {
        self.start.addr()
    }
}

pub(super) fn body(
    name: &str,
    run: impl Fn(&[View]) + Send + Sync + 'static,
) -> Arc<dyn KernelBody> {
    let run = move |_: Grid, words: &[u64], pointers: &[*mut u8]| {
        let views = pointers
            .iter()
            .zip(words)
            .map(|(start, len)| View { start: *start, len_bytes: *len as usize });
        run(&views.collect::<SmallVec<[View; 4]>>());
    };
    // SAFETY: views check indices against the lengths in `words`, which `launch` sets.
    unsafe { rust_body(name.into(), run) }
}

pub(super) fn label(text: &str) -> Label {
    Label { text: LabelText::Text(text.into()), site: None }
}

pub(super) fn contiguous(offset_bytes: u64, run_bytes: u64) -> Footprint {
    Footprint { offset_bytes, run_bytes, axes: SmallVec::new() }
}

pub(super) fn flat(
    run_bytes: u64,
    source_offset_bytes: u64,
    destination_offset_bytes: u64,
) -> CopyBox {
    CopyBox { run_bytes, source_offset_bytes, destination_offset_bytes, axes: SmallVec::new() }
}

pub(super) fn copy(name: &str, source: Memory, destination: Memory, part: CopyBox) -> Work {
    Work::Copy(copy_from(None, name, source, destination, part))
}

/// A copy from the memory of another device.
pub(super) fn exchange(
    device: &Arc<EmbeddedDevice>,
    from: Address,
    to: Address,
    part: CopyBox,
) -> Box<CopyWork> {
    let (device, from, to) = (Arc::clone(device), Memory::Device(from), Memory::Device(to));
    copy_from(Some(device), "exchange", from, to, part)
}

fn copy_from(
    source_device: Option<Arc<dyn SourceDevice>>,
    name: &str,
    source: Memory,
    destination: Memory,
    part: CopyBox,
) -> Box<CopyWork> {
    Box::new(CopyWork {
        may_read_between: false,
        loss: FailureKind::Copy,
        source,
        destination,
        source_device,
        parts: smallvec![part],
        depends: Dependencies::new(),
        label: label(name),
    })
}

pub(super) fn upload(source: &Arc<HostBytes>, destination: Address, len_bytes: u64) -> Work {
    copy(
        "upload",
        Memory::Host(Arc::<HostBytes>::clone(source)),
        Memory::Device(destination),
        flat(len_bytes, 0, 0),
    )
}

pub(super) fn download(source: Address, destination: &Arc<HostBytes>, len_bytes: u64) -> Work {
    copy(
        "download",
        Memory::Device(source),
        Memory::Host(Arc::<HostBytes>::clone(destination)),
        flat(len_bytes, 0, 0),
    )
}

pub(super) fn fill(address: Address, footprint: Footprint, pattern: &[u8]) -> Work {
    let (parts, pattern) = (smallvec![footprint], SmallVec::from_slice(pattern));
    Work::Fill(Box::new(FillWork {
        loss: FailureKind::Copy,
        address,
        parts,
        pattern,
        depends: Dependencies::new(),
        label: label("fill"),
    }))
}

/// A launch over whole arrays: address, length in bytes, access.
#[track_caller]
pub(super) fn launch(body: &Arc<dyn KernelBody>, arrays: &[(Address, u64, Access)]) -> Work {
    let argument =
        |(at_word, &(address, _, access)): (usize, &(Address, u64, Access))| PackedArray {
            address,
            origin_bytes: 0,
            element_bytes: 1,
            at_word: at_word as u32,
            is_flat: true,
            access,
        };
    let words = arrays.iter().map(|array| array.1).collect();
    let arguments =
        PackedArguments { words, arrays: arrays.iter().enumerate().map(argument).collect() };
    let (body, depends, site) = (Arc::clone(body), Dependencies::new(), call_site());
    Work::Launch(LaunchWork {
        code: KernelCode::Host(body),
        grid: Grid::new(1, 1),
        arguments,
        depends,
        site,
    })
}

/// The same work, with dependencies on other work.
pub(super) fn depending(mut work: Work, on: &[(&Arc<dyn RawStream>, Position)]) -> Work {
    let depends: Dependencies =
        on.iter().map(|(stream, position)| (stream.id(), *position)).collect();
    match &mut work {
        Work::Copy(copy) => copy.depends = depends,
        Work::Fill(fill) => fill.depends = depends,
        Work::Launch(launch) => launch.depends = depends,
    }
    work
}

/// A body that blocks until the sender is dropped.
pub(super) fn gate() -> (mpsc::Sender<()>, Arc<dyn KernelBody>) {
    let (open, gate) = mpsc::channel();
    let gate = Mutex::new(gate);
    let wait = move |_: &[View]| {
        let _dropped = gate.lock().expect("one body at a time uses a gate").recv();
    };
    (open, body("gate", wait))
}

/// As `gate`, with a receiver that gets a message when the body runs.
pub(super) fn entered_gate() -> (mpsc::Receiver<()>, mpsc::Sender<()>, Arc<dyn KernelBody>) {
    let ((enter, entered), (open, opened)) = (mpsc::channel(), mpsc::channel());
    let ends = Mutex::new((enter, opened));
    let wait = move |_: &[View]| {
        let ends = ends.lock().expect("one body at a time uses a gate");
        let _forgotten = ends.0.send(());
        let _dropped: Result<(), mpsc::RecvError> = ends.1.recv();
    };
    (entered, open, body("gate", wait))
}

/// Sends the thread on which it wakes.
struct Sending(mpsc::Sender<ThreadId>);

impl Wake for Sending {
    fn wake(self: Arc<Self>) {
        let _test_has_ended = self.0.send(thread::current().id());
    }
}

pub(super) fn task(waker: Waker) -> Arc<TaskWaker> {
    let task = Arc::new(TaskWaker::default());
    task.set(&waker);
    task
}

/// A task, and a receiver that gets the thread on which it is woken.
pub(super) fn sending_task() -> (mpsc::Receiver<ThreadId>, Arc<TaskWaker>) {
    let (sender, receiver) = mpsc::channel();
    (receiver, task(Waker::from(Arc::new(Sending(sender)))))
}

/// A body that adds one to each byte.
pub(super) fn increment() -> Arc<dyn KernelBody> {
    body("increment", |views| {
        (0..views[0].len())
            .for_each(|index| views[0].set(index, views[0].get(index).wrapping_add(1)));
    })
}

/// Short forms of a stream's calls that the test expects to be accepted.
pub(super) trait Accepting {
    #[track_caller]
    fn queued(&self, work: Work) -> Position;

    #[track_caller]
    fn launched(&self, body: &Arc<dyn KernelBody>, arrays: &[(Address, u64, Access)]) -> Position {
        self.queued(launch(body, arrays))
    }

    /// Orders later work after all earlier work of another stream.
    fn follow(&self, before: &Arc<dyn RawStream>);
}

impl Accepting for Arc<dyn RawStream> {
    #[track_caller]
    fn queued(&self, work: Work) -> Position {
        self.submit(work).expect("the work is accepted")
    }

    fn follow(&self, before: &Arc<dyn RawStream>) {
        let event = before.record(EventTiming::Disabled).expect("an event is recorded");
        self.wait(event.as_ref()).expect("the wait is accepted");
    }
}

pub(super) fn seeded(seed: u64) -> Arc<EmbeddedDevice> {
    EmbeddedDevice::emulated(Emulation::new().seed(seed))
}

pub(super) fn queue_of(device: &Arc<EmbeddedDevice>) -> Arc<dyn RawStream> {
    device.default_stream().expect("a default stream is always there")
}

pub(super) fn finish(stream: &Arc<dyn RawStream>) {
    stream.synchronize_to(stream.tail()).expect("waiting is allowed here");
}

/// The contents of device memory after all work of the stream.
pub(super) fn contents(stream: &Arc<dyn RawStream>, address: Address, len_bytes: u64) -> Vec<u8> {
    let cells = HostBytes::new(vec![0; len_bytes as usize]);
    stream.submit(download(address, &cells, len_bytes)).expect("a download is accepted");
    finish(stream);
    cells.bytes()
}

pub(super) fn log_of(device: &Arc<EmbeddedDevice>) -> EmulationLog {
    device.log().expect("an emulated device keeps a log")
}

pub(super) fn allocate(
    stream: &Arc<dyn RawStream>,
    len_bytes: u64,
) -> Result<Address, BackendError> {
    stream.allocate(len_bytes, &label("memory"))
}

/// A small generator for tests that try many cases.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(0x9E37_79B9_7F4A_7C15))
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}
