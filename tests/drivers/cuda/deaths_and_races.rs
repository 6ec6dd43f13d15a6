//! Contents that are lost because a device died, and races between threads: each test in its own
//! process, on the stand-in driver.

use std::sync::Barrier;
use std::sync::mpsc;
use std::time::Duration;

use resident::cudarc::driver::result;
use resident::ndarray::{Array2, Ix2, s};
use resident::{
    Device, DeviceMut, Error, Grid, In, InOut, Kernel, Out, Result, SmartArray, Stream, audit,
};
use resident_stand_in::{self as driver, Settings};
use support::driver::code;
use support::{in_own_process, own_process};

const ILLEGAL_ADDRESS: u32 = 700;

fn matrix(value: u32) -> SmartArray<u32, Ix2> {
    SmartArray::from(Array2::from_elem((8, 8), value))
}

/// Writes one matrix from another and a number.
type Plus = Kernel<(u32, In<u32, Ix2>, Out<u32, Ix2>)>;

/// The stand-in's host functions comply with these signatures, as `Kernel::cuda` requires.
fn plus() -> Plus {
    // SAFETY: the host function reads all of one matrix and writes all of the other.
    unsafe { Kernel::new("plus").cuda(code("plus")) }
}

fn broken() -> Kernel<(u32, InOut<u32, Ix2>)> {
    // SAFETY: the host function accesses no memory.
    unsafe { Kernel::new("broken").cuda(code("broken")) }
}

#[test]
fn a_watch_and_a_task_tell_that_the_device_died() {
    let devices = in_own_process!(support::driver::open(Settings::new().devices(2), 2));
    let (mut array, mut other) = (matrix(1), matrix(1));
    let (live, unharmed) =
        (array.watch().expect("it copies nothing"), other.watch().expect("as above"));
    let stream = devices[0].stream();
    broken().launch_on(&stream, Grid::cover(64), (1, &mut array)).expect("queued");
    let done = support::block_on::block_on(stream.done());
    assert!(matches!(done, Err(Error::DeviceLost { .. })), "{done:?}");
    let state = live.changed();
    assert!(matches!(state, Err(Error::DeviceLost { .. } | Error::Lost { .. })), "{state:?}");
    assert!(live.latest().is_none());
    drop(array);
    assert!(matches!(live.changed(), Ok(None) | Err(_)));
    drop(other.gpu_mut_on(&devices[1].stream()).expect("it lives"));
    let state = unharmed.changed().expect("it lives").expect("the array lives");
    assert_eq!(state.sum(), 64);
}

#[test]
fn what_a_dead_device_spoilt_is_lost_along_a_chain_of_streams_of_another() {
    let devices = in_own_process!(support::driver::open(Settings::new().devices(2).seed(7), 2));
    let (first, second) = (devices[1].stream(), devices[1].new_stream().expect("a stream"));
    let mut root = matrix(1);
    broken().launch_on(&devices[0].stream(), Grid::cover(64), (1, &mut root)).expect("queued");
    let (mut copy, mut made) =
        (SmartArray::<u32, Ix2>::uninit((8, 8)), SmartArray::<u32, Ix2>::uninit((8, 8)));
    copy.assign_on(&first, &root).expect("queued");
    plus().launch_on(&second, Grid::cover(64), (1, &copy, &mut made)).expect("queued");
    // The test waits only for the end of the chain.
    let _told = second.synchronize();
    let seen = made.host().map(|host| host.sum());
    assert!(matches!(seen, Err(Error::Lost { .. } | Error::DeviceLost { .. })), "{seen:?}");
    let seen = copy.host().map(|host| host.sum());
    assert!(matches!(seen, Err(Error::Lost { .. } | Error::DeviceLost { .. })), "{seen:?}");
}

/// Launches on parts that are remembered do not name what they read from on their own device.
fn parts_behind_a_broken_kernel_are_lost(stream_count: usize) {
    let device = support::driver::open(Settings::new().seed(7), 1).remove(0);
    let streams: Vec<Stream> =
        (0..stream_count).map(|_| device.new_stream().expect("a stream")).collect();
    let (mut from, mut to) = (matrix(1), matrix(1));
    drop((from.gpu_mut_on(&streams[0]).unwrap(), to.gpu_mut_on(&streams[0]).unwrap()));
    let (plus, broken, grid) = (plus(), broken(), Grid::cover(16));
    for round in 0..8 {
        for (tile, stream) in (0..4).zip(streams.iter().cycle()) {
            let [top, left] = [tile / 2 * 4, tile % 2 * 4];
            let at = s![top..top + 4, left..left + 4];
            let read = from.slice(at);
            plus.launch_on(stream, grid, (1, &read, &mut to.slice_mut(at))).expect("queued");
        }
        std::mem::swap(&mut from, &mut to);
        assert_eq!(driver::take_hazards(), Vec::<String>::new(), "round {round}");
    }
    assert_eq!(from.to_vec().expect("nothing fails"), [9; 64]);
    let (first, last) = (&streams[0], &streams[stream_count - 1]);
    let at = s![..4, ..4];
    broken.launch_on(first, grid, (1, &mut from.slice_mut(at))).expect("queued");
    plus.launch_on(last, grid, (1, &from.slice(at), &mut to.slice_mut(at))).expect("queued");
    assert!(last.synchronize().is_err(), "the device died");
    for array in [&from, &to] {
        let seen = array.slice(at).to_vec();
        assert!(matches!(seen, Err(Error::Lost { .. } | Error::DeviceLost { .. })), "{seen:?}");
    }
}

#[test]
fn parts_behind_a_broken_kernel_of_one_stream_are_lost() {
    own_process!();
    parts_behind_a_broken_kernel_are_lost(1);
}

#[test]
fn parts_behind_a_broken_kernel_of_another_stream_are_lost() {
    own_process!();
    parts_behind_a_broken_kernel_are_lost(2);
}

#[test]
fn an_array_that_a_dead_device_was_reading_leaves_the_library_all_the_same() {
    let device = in_own_process!(support::driver::open(Settings::new().seed(7), 1).remove(0));
    let _here = device.enter();
    let array = matrix(3);
    array.page_lock().expect("locked");
    driver::fail_late(1, ILLEGAL_ADDRESS);
    array.prefetch(&device.stream()).expect("queued");
    assert_eq!(array.into_array().expect("the host has it").sum(), 3 * 64);
}

#[test]
fn memory_is_taken_on_the_right_device_after_others_were_looked_at() {
    own_process!();
    const LEN: usize = 1 << 12;
    let settings = Settings::new().devices(2).without_pools().memory(LEN as u64 * 3 / 2).seed(7);
    let devices = support::driver::open(settings, 2);
    let (main, side) = (devices[1].stream(), devices[1].new_stream().expect("a stream"));
    let locked = SmartArray::<u8, _>::from(vec![1; LEN]);
    {
        let _here = devices[0].enter();
        locked.page_lock().expect("locked by the first device");
    }
    // The second device reads memory that was pinned on the first. The last use of the array is
    // on another stream, and its memory is freed there.
    locked.prefetch(&side).expect("queued");
    let mut locked = locked;
    drop(locked.gpu_mut_on(&main).expect("queued"));
    drop(locked);
    let mut next = SmartArray::<u8, _>::uninit(LEN);
    drop(
        next.gpu_overwrite_on(&main).expect("there is enough memory once the other array is freed"),
    );
    assert_eq!((driver::memory_in_use(0), driver::memory_in_use(1)), (0, LEN as u64));
}

#[test]
fn threads_that_take_and_free_memory_at_once_leave_none_behind() {
    let device = in_own_process!(support::driver::open(Settings::new(), 1).remove(0));
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let device = &device;
            scope.spawn(move || {
                let stream = device.new_stream().expect("a stream");
                for turn in 0..300 {
                    let mut array = SmartArray::<u8, _>::uninit(64 + (thread + turn) % 3);
                    drop(array.gpu_overwrite_on(&stream).expect("there is enough memory"));
                }
            });
        }
    });
    device.synchronize().expect("nothing fails");
    device.trim().expect("nothing fails");
    assert_eq!((device.memory().in_use, driver::memory_in_use(0)), (0, 0));
}

#[test]
fn an_array_that_threads_lock_at_once_is_locked() {
    let device = in_own_process!(support::driver::open(Settings::new(), 1).remove(0));
    for _ in 0..500 {
        let (array, start) = (matrix(1), Barrier::new(4));
        driver::take_calls();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let _here = device.enter();
                    start.wait();
                    array.page_lock().expect("locked");
                });
            }
        });
        let calls = driver::take_calls();
        assert!(!calls.iter().any(|call| call.name == "cuMemHostUnregister"), "{calls:?}");
    }
}

#[test]
fn a_child_of_a_fork_is_refused_and_does_not_crash() {
    use std::os::unix::process::CommandExt;

    let device = in_own_process!(support::driver::open(Settings::new(), 1).remove(0));
    let upload = |device: &Device| -> Result<()> {
        let array = SmartArray::<u8, _>::from(vec![1; 2 << 20]);
        array.prefetch(&device.stream())
    };
    let mut there = SmartArray::<u8, _>::from(vec![1; 2 << 20]);
    there.prefetch(&device.stream()).expect("queued");
    device.synchronize().expect("nothing fails");
    upload(&device).expect("in the parent");
    device.synchronize().expect("nothing fails");
    there.host_mut().expect("it is there").fill(2);
    let stream = device.stream();
    let in_child = move || match there.prefetch(&stream) {
        Err(_refused) => Ok(()),
        Ok(()) => Err(std::io::Error::other("a child of a fork used the GPU")),
    };
    let mut command = std::process::Command::new("true");
    // A child that hangs must not keep the test's pipes open.
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    // SAFETY: this does not follow the advice of `pre_exec`: the child allocates. No other
    // thread of this process holds the allocator's lock, since none is running.
    unsafe { command.pre_exec(in_child) };
    assert!(command.status().expect("the child was refused").success());
}

#[test]
fn a_device_that_waits_for_a_dead_one_lives() {
    let devices = in_own_process!(support::driver::open(Settings::new().devices(2).seed(7), 2));
    let (dying, living) = (devices[0].stream(), devices[1].stream());
    let mut root = matrix(1);
    broken().launch_on(&dying, Grid::cover(64), (1, &mut root)).expect("queued");
    let event = dying.record().expect("recorded");
    let (source, mut made) = (matrix(1), SmartArray::<u32, Ix2>::uninit((8, 8)));
    assert!(matches!(dying.synchronize(), Err(Error::DeviceLost { .. })));
    // If a call uses two devices, a driver may report the loss of either.
    driver::fail_nth("cuStreamWaitEvent", 1, ILLEGAL_ADDRESS);
    assert!(matches!(living.wait(&event), Err(Error::Backend { .. })));
    plus()
        .launch_on(&living, Grid::cover(64), (1, &source, &mut made))
        .expect("the other device is usable");
    assert_eq!(made.host().expect("the other device is usable").sum(), 2 * 64);
}

#[test]
fn memory_of_which_others_locked_a_part_is_not_taken_for_locked() {
    own_process!();
    const LEN: usize = 1 << 16;
    let device = support::driver::open(Settings::new(), 1).remove(0);
    let _here = device.enter();
    device.cuda_context().expect("a GPU").bind_to_thread().expect("its context");
    for locked_bytes in [LEN / 2, LEN] {
        let array = SmartArray::<u8, _>::from(vec![5; LEN]);
        let start = array.host().expect("it is there").as_ptr().cast_mut();
        // SAFETY: the array owns these bytes and keeps them until they are unregistered below.
        let outcome = unsafe {
            resident::cudarc::driver::sys::cuMemHostRegister_v2(start.cast(), locked_bytes, 1)
        };
        assert_eq!(outcome, resident::cudarc::driver::sys::CUresult::CUDA_SUCCESS);
        assert_eq!(array.page_lock().is_ok(), locked_bytes == LEN);
        array.prefetch(&device.stream()).expect("staged, or read from pinned memory");
        device.synchronize().expect("nothing fails");
        // SAFETY: the memory was registered above, and nothing uses it any more.
        let outcome = unsafe { resident::cudarc::driver::sys::cuMemHostUnregister(start.cast()) };
        assert_eq!(outcome, resident::cudarc::driver::sys::CUresult::CUDA_SUCCESS);
    }
}

/// While the host waits for a device of another kind, the work of that device may query any array's
/// state.
#[test]
fn an_array_on_two_kinds_of_device_is_downloaded_while_a_body_reads_it() {
    let gpu = in_own_process!(support::driver::open(Settings::new(), 1).remove(0));
    let (opened, opening) = mpsc::channel::<()>();
    let opening = std::sync::Mutex::new(opening);
    let look = Kernel::<(InOut<u32, Ix2>,)>::new("look").host(move |_grid, (mut x,)| {
        opening.lock().expect("alone").recv().expect("the sender is alive");
        assert!(!audit::inventory().is_empty());
        x.fill(2);
    });
    let mut array = matrix(1);
    look.launch_on(&Device::cpu().stream(), Grid::cover(64), (&mut array,)).expect("queued");
    array.prefetch_host().expect("queued");
    let stream = gpu.stream();
    let mut newest = array.gpu_overwrite_on(&stream).expect("enough memory");
    stream.cudarc().memset_zeros(&mut newest).expect("queued");
    drop(newest);
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        opened.send(()).expect("the body waits");
    });
    assert_eq!(array.host().expect("it is there").sum(), 0);
    opener.join().expect("it was opened");
    assert_eq!(
        array.host().expect("it is there").sum(),
        0,
        "the earlier download does not overwrite it"
    );
}

/// One thread only polls, and thereby unpacks a large download, while the rest of the program
/// writes newer contents of a part of it.
#[test]
fn an_older_download_does_not_overwrite_a_newer_one() {
    const ROWS: usize = 2048;
    const COLUMNS: usize = 4096;
    let gpu = in_own_process!(support::driver::open(Settings::new(), 1).remove(0));
    let (first, second) =
        (gpu.new_stream().expect("a stream"), gpu.new_stream().expect("a stream"));
    let mut array = SmartArray::from(Array2::<u32>::zeros((ROWS, COLUMNS)));
    let (looks, goes_on) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let looker = gpu.clone();
        scope.spawn(move || {
            // Runs until the other thread has ended, even by a panic.
            while goes_on.try_recv() == Err(mpsc::TryRecvError::Empty) {
                drop(looker.new_stream());
            }
        });
        let _until_here = looks;
        for turn in 0..60_u8 {
            set(&mut array.gpu_overwrite_on(&first).expect("enough memory"), &first, turn);
            array.prefetch_host().expect("queued");
            // The varying delay makes the write sometimes coincide with the unpacking.
            std::thread::sleep(Duration::from_micros(300 * u64::from(turn)));
            let last = s![ROWS - 1.., ..];
            set(
                &mut array.slice_mut(last).gpu_overwrite_on(&second).expect("enough memory"),
                &second,
                100 + turn,
            );
            let expected = u32::from_ne_bytes([100 + turn; 4]);
            let is_new = |array: &SmartArray<u32, Ix2>| {
                array.slice(last).host().expect("it is there").iter().all(|x| *x == expected)
            };
            assert!(is_new(&array), "turn {turn}");
            first.synchronize().expect("nothing failed");
            assert!(is_new(&array), "turn {turn}, after all unpacking");
        }
    });
}

/// Sets all bytes of the memory.
fn set(memory: &mut DeviceMut<'_, u32, Ix2>, stream: &Stream, value: u8) {
    let (address, len_bytes) = (memory.address(), memory.len() * size_of::<u32>());
    // SAFETY: the guard keeps this many bytes allocated, and its accesses are ordered on its
    // stream.
    unsafe { result::memset_d8_async(address, value, len_bytes, stream.cudarc().cu_stream()) }
        .expect("queued");
}
