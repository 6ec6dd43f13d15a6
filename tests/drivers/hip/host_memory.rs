//! Memory of the host that is registered: by this library, and by others beside it.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use libloading::os::unix::Library;
use resident::ndarray::{Array1, Ix1};
use resident::{
    DeviceArray, Error, Grid, InOut, Kernel, MappedArray, PinnedArray, PinnedOptions, SmartArray,
    with_pinned,
};
use resident_stand_in_hip::{self as driver, Access, Parameter, Settings};
use support::hip::face;
use support::in_own_process;
use support::own_process::HANG_LIMIT;

use super::open;

const BYTES: usize = 3 * 4096;

/// The runtime as another library of the process uses it.
struct Other {
    register: unsafe extern "C" fn(usize, usize, u32) -> u32,
    unregister: unsafe extern "C" fn(usize) -> u32,
    flags: unsafe extern "C" fn(*mut u32, usize) -> u32,
}

impl Other {
    fn find() -> Self {
        // SAFETY: the stand-in with this SONAME is loaded, and has no initialisers of its own.
        let library = unsafe { Library::new("libamdhip64.so") }.expect("it is loaded");
        // SAFETY: the function has this type in HIP's headers, as those below.
        let register = *unsafe { library.get("hipHostRegister") }.expect("a function");
        // SAFETY: as above.
        let unregister = *unsafe { library.get("hipHostUnregister") }.expect("a function");
        // SAFETY: as above.
        let flags = *unsafe { library.get("hipHostGetFlags") }.expect("a function");
        Self { register, unregister, flags }
    }

    fn register(&self, start: usize, len_bytes: usize) {
        // SAFETY: the callers keep the memory until `unregister`.
        assert_eq!(unsafe { (self.register)(start, len_bytes, 1) }, 0);
    }

    fn unregister(&self, start: usize) {
        // SAFETY: no work uses the memory.
        assert_eq!(unsafe { (self.unregister)(start) }, 0, "it is still registered");
    }

    /// Whether the runtime knows the address.
    fn knows(&self, start: usize) -> bool {
        self.flags_of(start).is_some()
    }

    /// The flags with which the memory was allocated or registered.
    fn flags_of(&self, start: usize) -> Option<u32> {
        let mut flags = 0;
        // SAFETY: the function writes one number.
        let status = unsafe { (self.flags)(&raw mut flags, start) };
        (status == 0).then_some(flags)
    }
}

fn array() -> (SmartArray<u8, Ix1>, usize) {
    let array = Array1::from_shape_fn(BYTES, |index| index as u8);
    let start = array.as_ptr().addr();
    (SmartArray::from(array), start)
}

fn count(name: &str) -> usize {
    driver::calls().iter().filter(|call| call.name == name).count()
}

/// The runtime would take a second registration of the same memory, and one call would end both.
#[test]
fn a_registration_of_another_library_survives_ours() {
    let device = in_own_process!(open(Settings::new()));
    let (_here, other, (mut array, start)) = (device.enter(), Other::find(), array());
    other.register(start, BYTES);
    driver::take_calls();
    array.page_lock().expect("another library registered all of it");
    drop(array.gpu_mut().expect("it uploads"));
    assert_eq!(array.host().expect("it downloads")[700], 700_u16 as u8);
    drop(array);
    assert_eq!([count("hipHostRegister"), count("hipHostUnregister")], [0, 0]);
    assert!(other.knows(start));
    other.unregister(start);
    assert!(!other.knows(start));
}

#[test]
fn memory_that_another_library_registered_in_part_is_refused() {
    let device = in_own_process!(open(Settings::new()));
    let (_here, other) = (device.enter(), Other::find());
    let mut lent = Array1::<u8>::ones(BYTES);
    for (place, len_bytes) in [(0, 100), (BYTES - 100, 100)] {
        let start = lent.as_mut_ptr().addr() + place;
        other.register(start, len_bytes);
        let refused = with_pinned(&mut lent, |pinned| pinned.fill(0));
        let Err(Error::Backend { cause, .. }) = &refused else { panic!("{refused:?}") };
        assert!(cause.contains("another library registered a part"), "{cause}");
        assert_eq!(lent.iter().filter(|byte| **byte == 1).count(), BYTES, "nothing was done");
        assert!(other.knows(start));
        other.unregister(start);
    }
    with_pinned(&mut lent, |pinned| pinned.fill(0)).expect("it is free now");
    assert_eq!(lent.sum(), 0);
}

/// A registration of another library that begins while ours lasts is not ended by ours alone.
#[test]
fn a_neighbour_of_another_library_survives_ours() {
    let device = in_own_process!(open(Settings::new()));
    let (_here, other, (array, start)) = (device.enter(), Other::find(), array());
    let neighbour = Array1::<u8>::zeros(BYTES);
    array.page_lock().expect("it is registered");
    other.register(neighbour.as_ptr().addr(), BYTES);
    drop(array);
    assert!(!other.knows(start) && other.knows(neighbour.as_ptr().addr()));
    other.unregister(neighbour.as_ptr().addr());
}

/// The runtime waits for the device when memory is unregistered. Meanwhile other threads register
/// theirs.
#[test]
fn unpinning_waits_for_the_device_and_holds_up_no_other_thread() {
    let device = in_own_process!(open(Settings::new()));
    let (gate, opened) = mpsc::channel::<()>();
    let opened = Mutex::new(opened);
    let view = Parameter::View { dimensions: 1, element_bytes: 1, access: Access::ReadWrite };
    driver::register("waits", &[view], move |_| {
        let _open = opened.lock().expect("one launch").recv();
        Ok(())
    });
    let kernel = Kernel::<(InOut<u8, Ix1>,)>::new("waits");
    // SAFETY: a host function replaces it, which accesses nothing.
    let kernel = unsafe { kernel.hip(face::code("waits", &[view])) };
    let (_here, mut busy, (first, _)) = (device.enter(), array().0, array());
    first.page_lock().expect("it is registered");
    kernel.launch(Grid::cover(1), (&mut busy,)).expect("it is queued");
    let (said, heard) = mpsc::channel();
    let dropping = std::thread::spawn(move || drop(first));
    // Until that thread is in the call; if it is not yet, the test checks less.
    std::thread::sleep(Duration::from_millis(100));
    let here = device.clone();
    let registering = std::thread::spawn(move || {
        let (_here, (second, _)) = (here.enter(), array());
        said.send(second.page_lock()).expect("somebody listens");
        second
    });
    let outcome = heard.recv_timeout(HANG_LIMIT).expect("the lock is free");
    outcome.expect("it is registered");
    assert!(!dropping.is_finished(), "the runtime waits for the kernel");
    gate.send(()).expect("the kernel waits");
    dropping.join().expect("it ends");
    drop(registering.join().expect("it ends"));
    device.synchronize().expect("the kernel ends");
    assert_eq!([count("hipHostRegister"), count("hipHostUnregister")], [2, 2]);
}

/// An event tells the device alone, unless it is made to release to the host too. The memory that a
/// download is staged in is not coherent.
#[test]
fn events_release_to_the_host_what_copies_wrote() {
    let device = in_own_process!(open(Settings::new()));
    let (_here, stream) = (device.enter(), device.stream());
    let array = DeviceArray::from_host(&Array1::<u32>::from_elem(10_000, 7)).expect("memory");
    let pending = array.copy_to_host_on(&stream).expect("it is queued");
    let event = stream.record().expect("an event");
    event.synchronize().expect("it works");
    assert!(event.is_complete().expect("it works"));
    assert_eq!(pending.wait().expect("a download").sum(), 70_000);
    let is_told = ["hipEventSynchronize", "hipEventQuery"].map(count) != [0, 0];
    assert!(count("hipMemcpyDtoHAsync") > 0 && is_told, "{:?}", driver::calls());
    assert_eq!(driver::take_notes(), [""; 0]);
}

const PORTABLE: u32 = 1;
const MAPPED: u32 = 2;
const WRITE_COMBINED: u32 = 4;
const COHERENT: u32 = 0x4000_0000;
const NON_COHERENT: u32 = 0x8000_0000;

/// Whether the runtime makes memory fine-grained that is allocated with these flags: the host and
/// running kernels see each other's writes (`hipHostMalloc` of ROCm's clr, without variables of the
/// environment).
fn is_fine_grained(flags: u32) -> bool {
    flags & NON_COHERENT == 0 && (flags == 0 || flags & (MAPPED | COHERENT) != 0)
}

/// Numba's `roc.finegrain_array` allocated the same coarse-grained memory as
/// `roc.coarsegrain_array`. Its `mapped_array` ignored `portable` and `wc`.
#[test]
fn d15_fine_grained_memory_is_not_coarse_grained() {
    let device = in_own_process!(open(Settings::new()));
    let (_here, other) = (device.enter(), Other::find());
    for (is_portable, is_write_combined) in
        [(false, false), (true, false), (false, true), (true, true)]
    {
        let options = PinnedOptions::new().portable(is_portable).write_combined(is_write_combined);
        let fine = MappedArray::<u8, _>::zeros_with(100, options).expect("memory");
        let flags = other.flags_of(fine.host().expect("valid").as_ptr().addr());
        let flags = flags.expect("the runtime allocated it");
        assert!(is_fine_grained(flags), "{options:?}: {flags}");
        assert_eq!(flags & PORTABLE != 0, is_portable, "{options:?}: {flags}");
        assert_eq!(flags & WRITE_COMBINED != 0, is_write_combined, "{options:?}: {flags}");
        let coarse = PinnedArray::<u8, _>::zeros_with(100, options).expect("memory");
        let flags = other.flags_of(coarse.host().expect("valid").as_ptr().addr());
        let flags = flags.expect("the runtime allocated it");
        assert!(!is_fine_grained(flags), "{options:?}: {flags}");
        assert_eq!(flags & WRITE_COMBINED != 0, is_write_combined, "{options:?}: {flags}");
    }
}
