//! The settings of an emulated device: its memory, its link, its scheduling, its faults.

use std::time::Duration;

use super::faults::Fault;
use resident_backend::grid::GridLimits;

/// The unit in which embedded devices commit memory to reserved addresses, in bytes.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// The settings of a new emulated device, for tests and for what-if experiments. Like the [embedded
/// device](struct.Device.html#method.cpu), an emulated device is made of this process's memory and
/// threads.
///
/// By default it behaves like the embedded device: no memory limit except the machine's, a worker
/// thread for each stream, and transfers at the machine's speed. In addition it logs its calls and
/// checks the order of its work: see [`EmulationLog`](crate::EmulationLog).
///
/// ```
/// use std::time::Duration;
/// use resident::{Emulation, Fault, Link};
///
/// let link = Link { bytes_per_second: 55e9, latency: Duration::from_micros(5) };
/// let small_and_slow = Emulation::new().memory(64 << 20).link(link);           // 64 MiB
/// let reproducible = small_and_slow.clone().seed(7);
/// let failing = reproducible.clone().fail(Fault::nth(12)).fail(Fault::nth(20).late());
/// # let _ = failing;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Emulation {
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) seed: Option<u64>,
    pub(crate) link: Option<Link>,
    pub(crate) is_poisoning: bool,
    pub(crate) chunk_bytes_max: u64,
    pub(crate) page_bytes: u64,
    pub(crate) faults: Vec<Fault>,
    pub(crate) prefers_cuda: bool,
    pub(crate) sanitizes: bool,
    pub(crate) is_strict: bool,
    pub(crate) grid_limits: GridLimits,
}

impl Emulation {
    /// A device like the embedded one that also logs its calls and checks the order of its work. It
    /// writes poison bytes if debug assertions are enabled.
    pub fn new() -> Self {
        Self {
            memory_bytes: None,
            seed: None,
            link: None,
            is_poisoning: cfg!(debug_assertions),
            chunk_bytes_max: u64::MAX,
            page_bytes: PAGE_BYTES,
            faults: Vec::new(),
            prefers_cuda: false,
            sanitizes: false,
            is_strict: false,
            grid_limits: GridLimits::default(),
        }
    }

    /// Limits the device's memory to this many bytes. Arrays in use count, and so does freed memory
    /// that queued work still uses. An allocation above the limit evicts copies of other arrays; if
    /// all are in use, it returns `Error::OutOfMemory`.
    pub fn memory(self, len_bytes: u64) -> Self {
        Self { memory_bytes: Some(len_bytes), ..self }
    }

    /// Splits copies between host and device into chunks of at most this many bytes, as for a GPU,
    /// whose staging memory is bounded. By default copies are not split.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray, emulation::CallKind};
    ///
    /// let device = Device::emulated(Emulation::new().pieces(1000));
    /// let array = SmartArray::<u8, _>::from(vec![1; 2500]);
    /// array.prefetch(&device.stream())?;
    /// let calls = device.emulation().map_or(Vec::new(), |log| log.calls());
    /// assert_eq!(calls.iter().filter(|call| call.kind == CallKind::Upload).count(), 3);
    /// assert_eq!(array.traffic().to_device.count, 1);           // one copy, in three pieces
    /// # Ok::<(), resident::Error>(())
    /// ```
    pub fn pieces(self, len_bytes: u64) -> Self {
        Self { chunk_bytes_max: len_bytes.max(1), ..self }
    }

    /// Sets the unit in which the device gives memory to arrays of which it uses only parts, in
    /// bytes: 2 MiB as on most GPUs, for example. The default is 4,096. A device with 0 has no
    /// memory for parts: it holds whole arrays.
    ///
    /// ```
    /// use resident::{Device, Emulation};
    ///
    /// let like_a_gpu = Device::emulated(Emulation::new().page_bytes(2 << 20));
    /// let without = Device::emulated(Emulation::new().page_bytes(0));
    /// # let _ = (like_a_gpu, without);
    /// ```
    pub fn page_bytes(self, len_bytes: u64) -> Self {
        Self { page_bytes: len_bytes, ..self }
    }

    /// Runs work in an order that `seed` determines. No thread works in the background: a thread
    /// that waits or polls runs ready work, one operation at a time.
    ///
    /// Seeded devices that one thread makes share a simulation, as long as an earlier one of them
    /// (or one of its streams or events) is alive. A simulation has one queue of ready work, one
    /// modelled clock, and one random state, into which each seed is mixed. So a program that makes
    /// its devices on one thread and waits on that thread runs the same way each time, regardless
    /// of other threads with other devices.
    ///
    /// Work that no thread waits for is not run. Such work is dropped with the last handle of the
    /// devices. A body, and the drop of what it has captured, must not wait for another thread that
    /// waits for these devices: operations run one at a time.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Sets the time that transfers between this device and the host, or another device, take. With
    /// a seed this is modelled time, which events report. Without a seed, each transfer really
    /// takes at least this long. Between two devices the slower link determines the time.
    pub fn link(self, link: Link) -> Self {
        Self { link: Some(link), ..self }
    }

    /// Whether fresh, freed and stale memory is filled with poison bytes, and so are the elements
    /// of each [`Out`](struct.Out.html) argument before the body runs. Tests then detect reads of
    /// such memory, and elements that a body leaves out. All bits of a poison byte are set, which
    /// reads as NaN, or as -1. The default is `cfg!(debug_assertions)`.
    pub fn poison(self, poison: bool) -> Self {
        Self { is_poisoning: poison, ..self }
    }

    /// Runs the CUDA C bodies of kernels, compiled for the host, also where they have a body in
    /// Rust: see [`Kernel::cuda`](struct.Kernel.html#method.cuda). The environment variable
    /// `RESIDENT_CPU_KERNELS=cuda` does this for all embedded devices.
    pub fn prefer_cuda(self, prefer: bool) -> Self {
        Self { prefers_cuda: prefer, ..self }
    }

    /// Checks the CUDA C bodies of kernels while they run: for accesses out of bounds, misaligned
    /// ones, reads of what nothing has written, writes to an `In`, races, barriers that some
    /// threads miss, and wrong masks of warps. Local arrays and memory of `malloc` have bounds too.
    /// Kernels run their CUDA C body, also where they have one in Rust. A launch with such an error
    /// fails like one whose body panics, and
    /// [`EmulationLog::findings`](crate::EmulationLog::findings) describes it. After an error the
    /// launch goes on for a while, to find up to 16, one for each kind, line and array; the error
    /// of the launch is the first. A thread ends before an access that must not happen. The others
    /// go on until one of them reads what nothing has written, which may be that thread's fault, or
    /// waits at a barrier for others that do not come. The environment variable
    /// `RESIDENT_SANITIZE=1` (or `true`, `yes`, `on`) does this for all embedded devices;
    /// [`EmulationLog::checked`](crate::EmulationLog::checked) tells how much was checked.
    /// Notes, which fail nothing, tell of an `Out` that is not written in full, of an `InOut` that
    /// is overwritten in full and could be an `Out`, and of local variables that the C++ compiler
    /// knows to be read before they are written. With that variable, errors and notes are
    /// also printed on standard error, each once, unless a subscriber of `tracing` wants them
    /// (target `resident::finding`, level ERROR or INFO). So if the exit code is 0 and standard
    /// error empty, nothing was found.
    ///
    /// Writes of equal values by several threads are no race unless the device is
    /// [`strict`](Self::strict), and a plain read that begins a loop of `atomicCAS` is none.
    /// `volatile` orders nothing, but for the first volatile write behind a fence, which is a
    /// signal to others.
    ///
    /// What a launch leaves out of an `Out` is uninitialised until a launch, a copy, a fill or the
    /// host has written it. A launch that reads it has an error. For the host, for another device
    /// and for other memory it is [`Error::Uninitialised`](enum.Error.html): a copy that includes
    /// such an element fails, loses nothing, and names the kernel, the array, the first such
    /// element and the line of the launch. Parts that are written can be read. A copy on the same
    /// device (`assign`, a clone) copies what was left out as such. Bodies in Rust and most of
    /// `ops` read all elements of their arguments; before these, before copies to other devices and
    /// to pinned arrays, and before a tensor is handed out, the call waits for the launch, so that
    /// it returns the error itself. Memory that the host or other code may access in place is not
    /// checked so.
    ///
    /// A copy of shared memory that nothing has written, to other shared memory, is no error, but a
    /// read of the copy is one.
    ///
    /// The blocks of a launch run one after the other, many times slower than unchecked ones. What
    /// is not found: an index of one bare pointer that reaches another array of the launch; a
    /// shuffle up or down from a lane that does not take part, unless the last or the first lane
    /// reads it; with GCC a negative index of a local array; an `int` or a `double` that a cast
    /// puts at a constant odd place of a shared array; races and unwritten contents of memory from
    /// `malloc`; elements of local arrays that are read before they are written, and with Clang
    /// fields of local records; accesses that the C++ compiler removes because nothing uses them
    /// (but not stores to shared memory), and those it does not announce, to tables of constants
    /// and to records that are passed by value to functions that cannot be inlined. A copy of
    /// unwritten shared memory to a local array is an error, whether or not the thread uses it, but
    /// not that of a record as a whole, of which at least one byte is written. This is what
    /// compute-sanitizer does on NVIDIA's GPUs; it needs Linux and a C++ compiler (GCC since 11, or
    /// Clang since 14), but no GPU.
    ///
    /// ```
    /// use resident::{Device, Emulation, Grid, InOut, Kernel, SmartArray, emulation::FindingKind};
    ///
    /// let source = r#"
    ///     extern "C" __global__ void double_all(float *x) {
    ///         x[blockIdx.x * blockDim.x + threadIdx.x] *= 2;     // no test of the length
    ///     }
    /// "#;
    /// // SAFETY: none; it writes behind the end. The checker stops it before.
    /// let kernel = unsafe { Kernel::<(InOut<f32>,)>::new("double_all").cuda(source) };
    /// let device = Device::emulated(Emulation::new().sanitize(true));
    /// # if kernel.prepare(&device).is_err() { return Ok(()) }
    /// let mut x = SmartArray::from(vec![1.0; 1000]);
    /// kernel.launch_on(&device.stream(), Grid::cover(1000), (&mut x,))?;
    /// assert!(device.synchronize().is_err());
    /// let findings = device.emulation().expect("it is emulated").findings();
    /// assert_eq!(findings[0].kind, FindingKind::OutOfBounds);
    /// assert_eq!(findings[0].argument, Some(0));
    /// assert_eq!(findings[0].element, Some(vec![1000]));
    /// # Ok::<(), resident::Error>(())
    /// ```
    pub fn sanitize(self, sanitize: bool) -> Self {
        Self { sanitizes: sanitize, ..self }
    }

    /// With [`sanitize`](Self::sanitize): also reports what is an error in some programs and meant
    /// in others: a barrier that threads do not reach because they have left the kernel by
    /// `return`, which GPUs since Volta allow, and writes of one value by several threads.
    ///
    /// ```
    /// use resident::{Device, Emulation, Grid, InOut, Kernel, SmartArray, emulation::FindingKind};
    ///
    /// let source = r#"
    ///     extern "C" __global__ void count(int *x, int n) {
    ///         if (threadIdx.x >= n) return;
    ///         x[threadIdx.x] = __syncthreads_count(1);
    ///     }
    /// "#;
    /// // SAFETY: `n` is at most the number of elements.
    /// let kernel = unsafe { Kernel::<(InOut<i32>, i32)>::new("count").cuda(source) };
    /// let device = Device::emulated(Emulation::new().sanitize(true).strict(true));
    /// # if kernel.prepare(&device).is_err() { return Ok(()) }
    /// let mut x = SmartArray::<i32, _>::zeros(3);
    /// kernel.launch_on(&device.stream(), Grid::new(1, 4), (&mut x, 3))?;
    /// assert!(device.synchronize().is_err());
    /// let findings = device.emulation().expect("it is emulated").findings();
    /// assert_eq!(findings[0].kind, FindingKind::MissedBarrier);
    /// # Ok::<(), resident::Error>(())
    /// ```
    pub fn strict(self, strict: bool) -> Self {
        Self { is_strict: strict, ..self }
    }

    /// Sets the largest grids that the device launches, as those of the GPU that a program is for.
    /// The default is [`GridLimits::default`], those of current GPUs. CUDA C bodies have at most
    /// 227 KiB of dynamic shared memory, whatever the limit.
    pub fn limits(self, limits: GridLimits) -> Self {
        Self { grid_limits: limits, ..self }
    }

    /// Adds a fault, which makes one call fail.
    pub fn fail(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }
}

impl Default for Emulation {
    fn default() -> Self {
        Self::new()
    }
}

/// A modelled link between a device and the host: a transfer of n bytes takes `latency` + n /
/// `bytes_per_second`.
///
/// ```
/// use std::time::Duration;
///
/// let pcie = resident::Link { bytes_per_second: 25e9, latency: Duration::from_micros(8) };
/// assert_eq!(pcie.transfer_time(25_000), Duration::from_micros(9));
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Bytes per second. If this is not a positive number, the transfer time does not depend on the
    /// number of bytes.
    pub bytes_per_second: f64,
    /// The time that every transfer takes in addition to its bytes.
    pub latency: Duration,
}

impl Link {
    /// How long a transfer of `len_bytes` takes, to the nearest nanosecond; at most 584 years.
    #[must_use]
    pub fn transfer_time(self, len_bytes: u64) -> Duration {
        let length_ns = len_bytes as f64 / self.bytes_per_second * 1e9;
        // The cast saturates, and turns NaN into 0.
        let length_ns = if self.bytes_per_second > 0.0 { length_ns.round() as u64 } else { 0 };
        self.latency.saturating_add(Duration::from_nanos(length_ns))
    }
}
