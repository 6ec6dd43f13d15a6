//! A self-test of a driver, on request: whether it keeps promises on which this library rests. A
//! driver that breaks one of them corrupts contents without an error, or lets programs wait for
//! ever. Other implementations of HIP than AMD's have been seen to break each.

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::code::{self, GpuKernel};
use super::context::Context;
use super::device::GpuDevice;
use super::driver::{Driver, StreamHandle, status};
use super::memory::pinned::{HostMapping, PinnedMemory};
use super::memory::registered::{HostBytes, HostRegistration};
use super::owned_stream::OwnedStream;
use resident_backend::{
    BackendError, ElementLayout, EventTiming, GpuSource, HostMemory, LoadError, LoadedKernel,
    ParameterLayout, PinnedOptions, Program, environment,
};
use resident_core::Access;

/// Each trial has its luck: a broken driver may do the right thing in one of them.
const TRIALS: u8 = 4;

/// Keeps a stream busy while the host queues more and writes.
const KERNEL: &str = "resident_delay";
const SOURCE: &str = r#"
extern "C" __global__ void resident_delay(unsigned *words, unsigned turns) {
    unsigned word = words[threadIdx.x];
    for (unsigned turn = 0; turn < turns; turn++)
        word = word * 3u + (word >> 7);
    words[threadIdx.x] = word;
}
"#;
const TURNS: u32 = 20_000;
const THREADS: u32 = 64;

/// What the kernel works on, and what the other work of a trial writes and reads behind it.
const WORDS_BYTES: usize = THREADS as usize * 4;
const VALUES_BYTES: usize = 4 << 10;

const WAITS: &str = "a stream that waits for an event (hipStreamWaitEvent) went on before the work \
                     that the event was recorded behind";
const QUERY: &str =
    "a stream was not said to be idle (hipStreamQuery) long after its work was over";
const REGISTERED: &str = "bytes that the host wrote to registered memory (hipHostRegister) while \
                          a kernel used other memory had their old values after it";

/// Tests the driver once in this process, by its first device that opens, if the vendor's variable
/// asks for it. The error says which promise is broken.
pub(super) fn check_if_asked(device: &GpuDevice) -> Result<(), String> {
    static OUTCOME: OnceLock<Result<(), String>> = OnceLock::new();
    let driver = device.core().context().driver();
    let Some(variable) = driver.vendor.check_variable else { return Ok(()) };
    if !environment::switch(variable)? {
        return Ok(());
    }
    let broken = |what: &str| {
        format!(
            "{} {} breaks a promise, by the test that {variable} asks for: {what}; contents would \
             be wrong without an error, or waits not end: use another version of the runtime, or \
             Device::cpu()",
            driver.vendor.name,
            driver.version_text()
        )
    };
    let outcome = OUTCOME.get_or_init(|| match broken_promise(device) {
        Ok(None) => Ok(()),
        Ok(Some(promise)) => Err(broken(promise)),
        Err(reason) => Err(format!("the test that {variable} asks for cannot be made: {reason}")),
    });
    outcome.clone()
}

/// The first promise that the driver breaks.
fn broken_promise(device: &GpuDevice) -> Result<Option<&'static str>, String> {
    let text = |error: BackendError| error.to_string();
    let kernel = load(device)?;
    let kernel = kernel.downcast_ref::<GpuKernel>().ok_or("no kernel was loaded")?;
    let bench = Bench::new(device, kernel).map_err(text)?;
    for trial in 1..=TRIALS {
        if !bench.waits_hold_back(device, trial).map_err(text)? {
            return Ok(Some(WAITS));
        }
    }
    if !bench.becomes_idle(device).map_err(text)? {
        return Ok(Some(QUERY));
    }
    for trial in 1..=TRIALS {
        if !bench.registered_memory_stays(device, trial).map_err(text)? {
            return Ok(Some(REGISTERED));
        }
    }
    Ok(None)
}

fn load(device: &GpuDevice) -> Result<Arc<dyn LoadedKernel>, String> {
    let element = ElementLayout::of::<u32>();
    let words = ParameterLayout::Flat { element, access: Access::ReadWrite };
    let program = Program {
        kernel: KERNEL.into(),
        source: GpuSource::c(SOURCE),
        parameters: [words, ParameterLayout::Scalar(element)].into(),
    };
    let core = device.core();
    code::load(core.context(), core.programs(), &program).map_err(|error| match error {
        LoadError::Program(reason) => reason,
        LoadError::Refused(error) => error.to_string(),
    })
}

/// What the trials use. The streams are dropped first.
struct Bench<'a> {
    kernel: &'a GpuKernel,
    streams: [OwnedStream; 2],
    words: DeviceBytes,
    values: DeviceBytes,
}

impl<'a> Bench<'a> {
    fn new(device: &GpuDevice, kernel: &'a GpuKernel) -> Result<Self, BackendError> {
        let context = device.core().context();
        let stream = || OwnedStream::new(context, None);
        let bench = Self {
            kernel,
            streams: [stream()?, stream()?],
            words: DeviceBytes::new(context, WORDS_BYTES)?,
            values: DeviceBytes::new(context, VALUES_BYTES)?,
        };
        bench.words.fill(1, bench.streams[0].handle())?;
        bench.values.fill(0, bench.streams[0].handle())?;
        synchronize(context.driver(), &bench.streams[0])?;
        Ok(bench)
    }

    /// The first stream is busy, and then writes values. The second waits for that, and copies the
    /// values to the host.
    fn waits_hold_back(&self, device: &GpuDevice, value: u8) -> Result<bool, BackendError> {
        let core = device.core();
        let (context, [busy, waiting]) = (core.context(), &self.streams);
        let driver = context.driver();
        let unmapped = HostMapping::Unmapped;
        let options = PinnedOptions::new();
        let host = PinnedMemory::allocate(context, VALUES_BYTES, options, unmapped, core.pinned())?;
        let event = core.events().take(EventTiming::Disabled)?;
        self.delay(driver, busy.handle())?;
        self.values.fill(value, busy.handle())?;
        event.record(busy.handle())?;
        event.make_wait(waiting.handle(), context.place().token)?;
        self.values.copy_to(&host, waiting.handle())?;
        synchronize(driver, waiting)?;
        let is_kept = is_filled(host.base(), VALUES_BYTES, value);
        synchronize(driver, busy)?;
        Ok(is_kept)
    }

    /// A stream's work ends, and nothing waits for it.
    fn becomes_idle(&self, device: &GpuDevice) -> Result<bool, BackendError> {
        const LIMIT: Duration = Duration::from_secs(2);
        let (driver, [stream, _]) = (device.core().context().driver(), &self.streams);
        self.delay(driver, stream.handle())?;
        let start = Instant::now();
        while is_busy(driver, stream) {
            if start.elapsed() > LIMIT {
                return Ok(false);
            }
            std::thread::yield_now();
        }
        Ok(true)
    }

    /// The host writes to registered memory while a kernel runs that does not use it: part by part,
    /// because the driver may copy the memory at any time.
    fn registered_memory_stays(&self, device: &GpuDevice, value: u8) -> Result<bool, BackendError> {
        const PARTS: usize = 256;
        let (core, [stream, _]) = (device.core(), &self.streams);
        let (context, driver) = (core.context(), core.context().driver());
        let mut memory = vec![0_u8; VALUES_BYTES * 8];
        let (start, len_bytes) = (memory.as_mut_ptr(), memory.len());
        let bytes = HostBytes { start, len_bytes, access: Access::ReadWrite };
        let registration =
            HostRegistration::register(context, bytes, HostMapping::Unmapped, core.pinned())?;
        let part_bytes = bytes.len_bytes / PARTS;
        let mut written_bytes = 0;
        self.delay(driver, stream.handle())?;
        while written_bytes < bytes.len_bytes && is_busy(driver, stream) {
            fill(bytes.start.wrapping_add(written_bytes), part_bytes, value);
            written_bytes += part_bytes;
        }
        synchronize(driver, stream)?;
        let is_kept = is_filled(bytes.start, written_bytes, value);
        drop(registration);
        Ok(is_kept)
    }

    /// Queues the kernel.
    fn delay(&self, driver: &Driver, stream: StreamHandle) -> Result<(), BackendError> {
        let (mut words, mut turns) = (self.words.address, TURNS);
        let mut parameters: [*mut c_void; 2] = [(&raw mut words).cast(), (&raw mut turns).cast()];
        let launch = &driver.launch;
        // SAFETY: the parameters are those of the kernel in `SOURCE`, which `load` compared; the
        // driver copies them during the call. The words are live until the streams are over.
        launch.check(unsafe {
            (launch.function)(
                self.kernel.function(),
                1,
                1,
                1,
                THREADS,
                1,
                1,
                0,
                stream,
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }
}

/// Device memory outside any pool, freed on drop: the driver then waits for its uses.
struct DeviceBytes {
    address: u64,
    len_bytes: usize,
    context: Arc<Context>,
}

impl DeviceBytes {
    /// Allocates; the context is current.
    fn new(context: &Arc<Context>, len_bytes: usize) -> Result<Self, BackendError> {
        let (mut address, allocate) = (0, &context.driver().allocate);
        // SAFETY: the driver writes one address.
        allocate.check(unsafe { (allocate.function)(&raw mut address, len_bytes) })?;
        Ok(Self { address, len_bytes, context: Arc::clone(context) })
    }

    fn fill(&self, value: u8, stream: StreamHandle) -> Result<(), BackendError> {
        let set = &self.context.driver().set_8;
        // SAFETY: the memory is live until `drop`, which waits.
        set.check(unsafe { (set.function)(self.address, value, self.len_bytes, stream) })
    }

    /// Queues a copy to memory of the same size.
    fn copy_to(&self, host: &PinnedMemory, stream: StreamHandle) -> Result<(), BackendError> {
        let copy = &self.context.driver().copy_to_host;
        let to = host.base().cast();
        // SAFETY: the memory is live until `drop`, which waits, as does the drop of pinned memory.
        copy.check(unsafe { (copy.function)(to, self.address, self.len_bytes, stream) })
    }
}

impl Drop for DeviceBytes {
    fn drop(&mut self) {
        let free = &self.context.driver().free;
        // SAFETY: `new` allocated the memory, and no work is queued that uses it: the streams are
        // dropped before. If the driver refuses, the memory leaks.
        let _leaked = unsafe { (free.function)(self.address) };
    }
}

fn synchronize(driver: &Driver, stream: &OwnedStream) -> Result<(), BackendError> {
    let wait = &driver.stream_synchronize;
    // SAFETY: the stream is live.
    wait.check(unsafe { (wait.function)(stream.handle()) })
}

/// Whether the driver does not say yet that the stream's work is over.
fn is_busy(driver: &Driver, stream: &OwnedStream) -> bool {
    // SAFETY: the stream is live.
    unsafe { (driver.stream_query.function)(stream.handle()) == status::NOT_READY }
}

/// Writes bytes that a broken driver may write too.
fn fill(start: *mut u8, len_bytes: usize, value: u8) {
    for index in 0..len_bytes {
        // SAFETY: the callers' memory has this many bytes, of which no reference exists.
        unsafe { start.wrapping_add(index).write_volatile(value) };
    }
}

/// Whether all bytes have a value; a broken driver may write them meanwhile.
fn is_filled(start: *mut u8, len_bytes: usize, value: u8) -> bool {
    (0..len_bytes).all(|index| {
        // SAFETY: as in `fill`.
        unsafe { start.wrapping_add(index).read_volatile() == value }
    })
}
