//! Memory that is committed to reserved addresses, on the stand-ins for both drivers: what the
//! backend counts, calls and refuses. `crate::face` is one of the two.

use std::ops::Range;
use std::sync::Arc;

use resident_backend::scope::BodyScope;
use resident_backend::{
    Address, Backend, BackendError, BackendErrorKind, CopyBox, CopyWork, Dependencies, FailureKind,
    FillWork, Footprint, ForeignMemory, HostMemory, Label, LabelText, Maker, Memory, MemoryUsage,
    PageRange, RawStream, SourceDevice,
};
use resident_gpu::GpuDevice;
use support::in_own_process;

use crate::face::{self as driver, Settings};

const PAGE: u64 = 4096;
/// Ten pages, of which the last is not needed as a whole.
const LEN: u64 = 9 * PAGE + 100;

const OUT_OF_MEMORY: u32 = 2;

/// The first device and a stream of it.
struct Gpu {
    device: Arc<GpuDevice>,
    stream: Arc<dyn RawStream>,
}

fn settings() -> Settings {
    Settings::new().page_bytes(PAGE)
}

/// Loads the stand-in, and opens its first device.
fn open(settings: Settings) -> Gpu {
    driver::load(settings).expect("the stand-in loads");
    Gpu::open(0)
}

fn label() -> Label {
    Label { text: LabelText::Text("grid".into()), site: None }
}

fn pages(reservation: Address, numbers: Range<u64>) -> PageRange {
    PageRange { reservation, bytes: numbers.start * PAGE..(numbers.end * PAGE).min(LEN) }
}

fn usage(in_use: u64, pooled: u64) -> MemoryUsage {
    MemoryUsage { in_use: in_use * PAGE, pooled: pooled * PAGE, ..MemoryUsage::default() }
}

impl Gpu {
    fn open(ordinal: usize) -> Self {
        let device = resident_gpu::open(crate::KIND, ordinal).expect("it opens");
        let stream = device.new_stream(None).expect("a stream");
        Self { device, stream }
    }

    fn reserve(&self) -> Address {
        self.device.reserve(LEN, &label()).expect("addresses are reserved")
    }

    fn commit(&self, grid: Address, numbers: Range<u64>) -> Result<(), BackendError> {
        self.device.commit(&pages(grid, numbers), &label())
    }

    fn decommit(&self, grid: Address, numbers: Range<u64>) {
        self.stream.decommit(&pages(grid, numbers)).expect("queued");
    }

    fn wait(&self) {
        self.stream.synchronize_to(self.stream.tail()).expect("nothing fails");
    }

    fn fill(&self, address: Address, len_bytes: u64, byte: u8) -> Result<(), BackendError> {
        let fill = FillWork {
            address,
            parts: [Footprint::run(0, len_bytes)].into_iter().collect(),
            pattern: [byte].into_iter().collect(),
            loss: FailureKind::Contents,
            depends: Dependencies::new(),
            label: label(),
        };
        self.stream.fill(Box::new(fill)).map(drop)
    }

    /// Copies bytes of a device to the host, and waits.
    fn download(&self, from: Address, len_bytes: u64) -> Vec<u8> {
        let host = Arc::new(Bytes(vec![0; len_bytes as usize].into()));
        let to = Memory::Host(Arc::clone(&host) as Arc<dyn HostMemory>);
        self.copy(Memory::Device(from), None, to, len_bytes);
        self.wait();
        host.0.to_vec()
    }

    fn copy(
        &self,
        source: Memory,
        source_device: Option<Arc<dyn SourceDevice>>,
        destination: Memory,
        len_bytes: u64,
    ) {
        let part: CopyBox = Footprint::run(0, len_bytes).copy_to_same_offsets();
        let work = CopyWork {
            source,
            destination,
            source_device,
            parts: [part].into_iter().collect(),
            may_read_between: false,
            loss: FailureKind::Copy,
            depends: Dependencies::new(),
            label: label(),
        };
        let _position = self.stream.copy(Box::new(work), Maker::Stream).expect("queued").position();
    }

    /// Trims the device. Then the driver has no memory of it.
    fn assert_nothing_left(&self) {
        self.device.trim().expect("nothing fails");
        assert_eq!(self.device.memory(), usage(0, 0));
        assert_eq!(driver::memory_in_use(0), 0);
        assert_eq!(driver::take_hazards(), Vec::<String>::new());
        assert_eq!(driver::take_notes(), Vec::<String>::new());
    }
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

/// The names of successful calls since the last time, without the vendor's prefix.
fn take_calls() -> Vec<String> {
    let done = driver::take_calls().into_iter().filter(|call| call.code == 0);
    let name = |name: String| name.trim_start_matches("cu").trim_start_matches("hip").to_owned();
    done.map(|call| name(call.name)).filter(|name| name != "Init").collect()
}

fn count(calls: &[String], name: &str) -> usize {
    calls.iter().filter(|call| *call == name).count()
}

/// The name of a function in this vendor's driver.
fn named(name: &str) -> String {
    format!("{}{name}", crate::PREFIX)
}

fn at(address: Address, page: u64) -> Address {
    Address(address.0 + page * PAGE)
}

#[track_caller]
fn assert_full(outcome: Result<(), BackendError>) {
    let kind = outcome.map_err(|error| error.kind);
    assert!(matches!(kind, Err(BackendErrorKind::OutOfMemory { .. })), "{kind:?}");
}

#[test]
fn pages_have_what_is_written_to_them() {
    let gpu = in_own_process!(open(settings().seed(1)));
    assert_eq!(gpu.device.properties().page_bytes, Some(PAGE));
    let grid = gpu.reserve();
    assert_eq!(gpu.device.memory(), usage(0, 0), "addresses are no memory");
    gpu.commit(grid, 2..5).expect("memory");
    gpu.commit(grid, 9..10).expect("memory");
    assert_eq!(gpu.device.memory(), usage(4, 0));
    gpu.fill(at(grid, 2), 3 * PAGE, 7).expect("queued");
    gpu.fill(at(grid, 9), 100, 8).expect("queued");
    assert_eq!(gpu.download(at(grid, 3), 2 * PAGE), vec![7; 2 * PAGE as usize]);
    assert_eq!(gpu.download(at(grid, 9), 100), vec![8; 100]);
    gpu.stream.free(grid).expect("queued");
    assert_eq!(gpu.device.memory().in_use, 0);
    gpu.assert_nothing_left();
}

#[test]
fn a_steady_state_creates_no_memory() {
    let gpu = in_own_process!(open(settings().seed(1)));
    let grid = gpu.reserve();
    gpu.commit(grid, 0..2).expect("memory");
    assert_eq!(count(&take_calls(), "MemCreate"), 2);
    for page in 1..8 {
        gpu.fill(at(grid, page - 1), 2 * PAGE, 7).expect("queued");
        gpu.decommit(grid, page - 1..page);
        assert_eq!(gpu.device.memory(), usage(1, 1), "pooled from the call on");
        gpu.wait();
        assert_eq!(gpu.device.memory(), usage(1, 1), "and until something needs it");
        gpu.commit(grid, page + 1..page + 2).expect("memory");
        assert_eq!(gpu.device.memory(), usage(2, 0));
        let calls = take_calls();
        let each = ["MemUnmap", "MemMap", "MemSetAccess"].map(|name| count(&calls, name));
        assert_eq!((each, count(&calls, "MemCreate")), ([1; 3], 0), "{calls:?}");
    }
    gpu.stream.free(grid).expect("queued");
    gpu.wait();
    assert_eq!(gpu.device.memory(), usage(0, 2));
    let calls = take_calls();
    let each = ["MemUnmap", "MemAddressFree", "MemRelease"].map(|name| count(&calls, name));
    assert_eq!(each, [2, 1, 0], "{calls:?}");
    gpu.assert_nothing_left();
    assert_eq!(count(&take_calls(), "MemRelease"), 2);
}

/// Nothing is unmapped before the work that uses it is complete: the stand-in would find a hazard.
#[test]
fn a_commit_waits_for_the_decommit_of_the_same_page() {
    let gpu = in_own_process!(open(settings().seed(1)));
    let grid = gpu.reserve();
    gpu.commit(grid, 0..3).expect("memory");
    let other = gpu.device.new_stream(None).expect("a stream");
    gpu.fill(grid, 3 * PAGE, 7).expect("queued");
    let event = gpu.stream.record(resident_backend::EventTiming::Disabled).expect("an event");
    other.wait(&*event).expect("queued");
    other.decommit(&pages(grid, 2..3)).expect("queued");
    gpu.decommit(grid, 0..1);
    take_calls();
    let in_body = BodyScope::enter();
    let refused = gpu.commit(grid, 0..1).map_err(|error| error.kind);
    assert_eq!(refused, Err(BackendErrorKind::InsideKernel), "it must not wait");
    drop(in_body);
    gpu.commit(grid, 0..1).expect("memory");
    gpu.commit(grid, 2..3).expect("memory");
    assert_eq!(count(&take_calls(), "MemUnmap"), 2);
    gpu.fill(grid, PAGE, 9).expect("queued");
    assert_eq!(gpu.download(at(grid, 1), PAGE), vec![7; PAGE as usize]);
    gpu.stream.free(grid).expect("queued");
    gpu.assert_nothing_left();
}

#[test]
fn what_is_no_page_is_refused_and_changes_nothing() {
    let gpu = in_own_process!(open(settings().seed(1)));
    let grid = gpu.reserve();
    gpu.commit(grid, 2..4).expect("memory");
    let bytes = |bytes| PageRange { reservation: grid, bytes };
    let elsewhere = PageRange { reservation: at(grid, 1), bytes: 0..PAGE };
    let wrong =
        [bytes(0..100), bytes(100..PAGE), bytes(PAGE..PAGE), bytes(9 * PAGE..10 * PAGE), elsewhere];
    for range in wrong.into_iter().chain([pages(grid, 1..3), pages(grid, 3..5)]) {
        gpu.device.commit(&range, &label()).expect_err("refused");
        gpu.stream.decommit(&range).expect_err("refused");
    }
    gpu.device.commit(&pages(grid, 2..4), &label()).expect_err("they have memory");
    gpu.device.reserve(0, &label()).expect_err("no bytes");
    gpu.stream.free(at(grid, 2)).expect_err("not the start");
    assert_eq!(gpu.device.memory(), usage(2, 0));
    gpu.decommit(grid, 2..3);
    gpu.stream.decommit(&pages(grid, 2..3)).expect_err("it is queued already");
    gpu.stream.free(grid).expect("queued");
    gpu.stream.free(grid).expect_err("it is freed");
    gpu.commit(grid, 0..1).expect_err("it is freed");
    gpu.assert_nothing_left();
}

#[test]
fn a_limit_counts_pages_and_what_is_kept() {
    let gpu = in_own_process!(open(settings().seed(1)));
    let grid = gpu.reserve();
    gpu.device.set_memory_limit(Some(3 * PAGE));
    assert_full(gpu.commit(grid, 0..4));
    assert_eq!(gpu.device.memory(), usage(0, 0), "none of the pages");
    gpu.commit(grid, 0..3).expect("within the limit");
    assert_full(gpu.commit(grid, 3..4));
    assert_full(gpu.stream.allocate(PAGE, &label()).map(drop));
    gpu.decommit(grid, 1..3);
    gpu.commit(grid, 3..4).expect("as many bytes as are in use no more");
    let memory = gpu.device.memory();
    assert!(memory.in_use + memory.pooled <= 3 * PAGE, "{memory:?}");
    let block = gpu.stream.allocate(PAGE, &label()).expect("within the limit");
    let memory = gpu.device.memory();
    assert!(memory.in_use + memory.pooled <= 3 * PAGE, "{memory:?}");
    gpu.stream.free(block).expect("queued");
    gpu.stream.free(grid).expect("queued");
    gpu.assert_nothing_left();
}

/// The device has memory for eight pages. What the pool keeps gives way to pages, and the other way
/// round.
#[test]
fn a_full_device_uses_what_is_kept() {
    let gpu = in_own_process!(open(settings().memory(8 * PAGE).seed(1)));
    let grid = gpu.reserve();
    for _ in 0..3 {
        let block = gpu.stream.allocate(6 * PAGE, &label()).expect("memory");
        assert_full(gpu.commit(grid, 0..3));
        assert_eq!(gpu.device.memory().in_use, 6 * PAGE);
        gpu.fill(block, 6 * PAGE, 1).expect("queued");
        gpu.stream.free(block).expect("queued");
        gpu.commit(grid, 0..7).expect("what the pool kept");
        gpu.fill(grid, 7 * PAGE, 2).expect("queued");
        assert_full(gpu.stream.allocate(3 * PAGE, &label()).map(drop));
        gpu.decommit(grid, 0..7);
    }
    gpu.stream.free(grid).expect("queued");
    gpu.assert_nothing_left();
}

#[test]
fn devices_without_pages_hold_whole_arrays() {
    let gpu = in_own_process!(open(Settings::new().page_bytes(0)));
    assert_eq!(gpu.device.properties().page_bytes, None);
    gpu.device.reserve(LEN, &label()).expect_err("no pages");
    let range = pages(Address(PAGE), 0..1);
    gpu.device.commit(&range, &label()).expect_err("no pages");
    gpu.stream.decommit(&range).expect_err("no pages");
    let calls = take_calls();
    assert!(!calls.iter().any(|call| call.starts_with("MemAddress")), "{calls:?}");
}

#[test]
fn pages_work_beside_allocations_without_pools() {
    let gpu = in_own_process!(open(settings().without_pools().seed(1)));
    let grid = gpu.reserve();
    let block = gpu.stream.allocate(PAGE, &label()).expect("memory");
    gpu.commit(grid, 0..2).expect("memory");
    assert_eq!(gpu.device.memory(), usage(3, 0));
    gpu.fill(grid, PAGE, 1).expect("queued");
    gpu.stream.free(block).expect("queued");
    gpu.decommit(grid, 0..1);
    assert_eq!(gpu.device.memory(), usage(1, 2));
    gpu.wait();
    assert_eq!(gpu.device.memory(), usage(1, 1));
    gpu.stream.free(grid).expect("queued");
    gpu.assert_nothing_left();
}

#[test]
fn peers_copy_pages_of_before_and_after() {
    let here = in_own_process!(open(settings().devices(2).seed(1)));
    let there = Gpu::open(1);
    let grid = here.reserve();
    here.commit(grid, 0..1).expect("memory");
    here.commit(grid, 2..4).expect("memory");
    let block = there.stream.allocate(PAGE, &label()).expect("memory");
    take_calls();
    assert!(there.device.can_access_peer(&*here.device));
    let copy = |page, byte| {
        here.fill(at(grid, page), PAGE, byte).expect("queued");
        here.wait();
        let source = Arc::clone(&here.device) as Arc<dyn SourceDevice>;
        let (from, to) = (Memory::Device(at(grid, page)), Memory::Device(block));
        there.copy(from, Some(source), to, PAGE);
        assert_eq!(there.download(block, PAGE), vec![byte; PAGE as usize]);
    };
    copy(3, 5);
    // CUDA's call for the peer is one for each run of pages, and HIP's one for each page.
    let calls = if crate::PREFIX == "cu" { 2 } else { 3 };
    assert_eq!(count(&take_calls(), "MemSetAccess"), calls);
    here.commit(grid, 1..2).expect("memory");
    assert_eq!(count(&take_calls(), "MemSetAccess"), 2, "for the device and for the peer");
    copy(1, 6);
    there.stream.free(block).expect("queued");
    there.wait();
    here.stream.free(grid).expect("queued");
    here.assert_nothing_left();
}

#[test]
fn an_access_without_memory_ends_the_context_and_nothing_is_unmapped() {
    let gpu = in_own_process!(open(settings()));
    let grid = gpu.reserve();
    gpu.commit(grid, 0..2).expect("memory");
    gpu.decommit(grid, 1..2);
    gpu.wait();
    gpu.fill(grid, 2 * PAGE, 1).expect("queued");
    let lost = gpu.stream.synchronize_to(gpu.stream.tail());
    let _recorded = lost.map_err(|error| assert_eq!(error.kind, BackendErrorKind::DeviceLost));
    take_calls();
    let refused = gpu.commit(grid, 1..2).expect_err("the context is lost");
    assert_eq!(refused.kind, BackendErrorKind::DeviceLost);
    gpu.stream.decommit(&pages(grid, 0..1)).expect_err("the context is lost");
    gpu.stream.free(grid).expect_err("the context is lost");
    gpu.device.trim().expect_err("the context is lost");
    let calls = take_calls();
    assert_eq!(count(&calls, "MemUnmap") + count(&calls, "MemRelease"), 0, "{calls:?}");
}

#[test]
fn memory_of_a_reservation_is_taken_over_only_after_it_was_handed_out() {
    let gpu = in_own_process!(open(settings().seed(1)));
    let grid = gpu.reserve();
    gpu.commit(grid, 0..10).expect("memory");
    let memory = || {
        let start = std::ptr::without_provenance_mut(at(grid, 3).0 as usize);
        ForeignMemory { start, len_bytes: PAGE, owner: Box::new(()) }
    };
    // SAFETY: the memory is refused.
    let refused = unsafe { gpu.device.take_over(memory()) };
    refused.expect_err("an array uses it");
    gpu.device.hand_out(grid);
    // SAFETY: nothing uses the memory, which lives until the reservation is freed below.
    let taken = unsafe { gpu.device.take_over(memory()) };
    assert_eq!(taken, Ok(at(grid, 3)));
    assert_eq!(gpu.device.memory(), usage(10, 0), "it counts once");
    gpu.stream.free(at(grid, 3)).expect("queued");
    gpu.stream.free(grid).expect("queued");
    gpu.assert_nothing_left();
}

/// What a fault in any call of the driver may leave: an error, and memory as before; what could not
/// be unmapped or released then is later.
#[test]
fn a_fault_in_any_call_leaves_memory_as_it_was() {
    let gpu = in_own_process!(open(settings().seed(1)));
    for code in [OUT_OF_MEMORY, 1] {
        let mut nth = 0;
        let mut is_over = false;
        while !is_over {
            nth += 1;
            driver::fail_any(nth, code);
            use_pages(&gpu);
            driver::forget_faults();
            let failed = driver::take_calls().into_iter().filter(|call| call.code == code);
            is_over = failed.count() == 0;
            gpu.assert_nothing_left();
        }
        assert!(nth > 30, "{nth} calls");
    }
}

/// Uses pages, whatever call is refused, and frees them.
fn use_pages(gpu: &Gpu) {
    let before = gpu.device.memory().in_use;
    let is_refused = |outcome: Result<(), BackendError>| outcome.is_err();
    let Ok(grid) = gpu.device.reserve(LEN, &label()) else { return };
    for numbers in [0..3, 5..7] {
        let now = gpu.device.memory().in_use;
        if is_refused(gpu.commit(grid, numbers.clone())) {
            assert_eq!(gpu.device.memory().in_use, now, "none of the pages");
            gpu.commit(grid, numbers).expect("there was one fault");
        }
    }
    let filled = gpu.fill(grid, 3 * PAGE, 7).or_else(|_| gpu.fill(grid, 3 * PAGE, 7));
    filled.expect("there was one fault");
    let decommit = || gpu.stream.decommit(&pages(grid, 1..3));
    decommit().or_else(|_| decommit()).expect("there was one fault");
    let commit = || gpu.commit(grid, 1..2);
    commit().or_else(|_| commit()).expect("there was one fault");
    assert_eq!(gpu.device.memory().in_use, before + 4 * PAGE);
    let _fault = gpu.device.trim();
    let free = || gpu.stream.free(grid);
    free().or_else(|_| free()).expect("there was one fault");
    assert_eq!(gpu.device.memory().in_use, before);
    let _fault = gpu.device.trim();
}

/// A commit that fails late unmaps what it mapped, even if the driver first refuses that.
#[test]
fn a_failed_commit_has_no_memory() {
    let gpu = in_own_process!(open(settings().seed(1)));
    let grid = gpu.reserve();
    driver::fail_nth(&named("MemSetAccess"), 1, 1);
    driver::fail_nth(&named("MemUnmap"), 2, 1);
    gpu.commit(grid, 0..3).expect_err("no access");
    assert_eq!(gpu.device.memory(), usage(0, 1), "one page is still mapped");
    gpu.commit(grid, 0..3).expect("it is unmapped before");
    assert_eq!(gpu.device.memory(), usage(3, 0));
    gpu.stream.free(grid).expect("queued");
    gpu.assert_nothing_left();
}
