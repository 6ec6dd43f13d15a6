//! Defects that safe code could once reach, each shown by a short program. A watchdog ends the
//! tests that could hang.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use resident::bytemuck::{Pod, Zeroable};
use support::bodies::{Gate, add, broken_update, one};
use support::prelude::*;

/// A device that runs queued work only when a thread waits.
fn idle_device() -> Device {
    Device::emulated(Emulation::new().seed(3))
}

/// An array whose newest contents are on the given device.
fn array_on(device: &Device) -> Result<SmartArray<u32, Ix1>> {
    let mut array = SmartArray::from(vec![1; 8]);
    drop(array.gpu_mut_on(&device.stream())?);
    Ok(array)
}

/// Runs user code when the body that captured this value is dropped, and records whether that code
/// ran to its end.
struct OnDrop<F: Fn()>(F, Arc<AtomicBool>);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
        self.1.store(true, Ordering::SeqCst);
    }
}

/// Queues on a separate stream a body whose capture runs `on_drop` when it is dropped.
fn queue_capture(
    device: &Device,
    on_drop: impl Fn() + Send + Sync + 'static,
) -> Result<Arc<AtomicBool>> {
    let dropped = Arc::<AtomicBool>::default();
    let capture = OnDrop(on_drop, Arc::clone(&dropped));
    let kernel = Kernel::<(InOut<u32>,)>::new("capturing").host(move |_, (x,): (&mut [u32],)| {
        let _capture = &capture;
        x[0] = 1;
    });
    kernel.launch_on(&device.new_stream()?, one(), (&mut SmartArray::from(vec![1_u32; 4]),))?;
    Ok(dropped)
}

/// Reads the array on more streams than an array's table of streams keeps.
fn use_on_many_streams(array: &SmartArray<u32, Ix1>, device: &Device) -> Result<Vec<Stream>> {
    let streams = (0..12).map(|_| device.new_stream()).collect::<Result<Vec<_>>>()?;
    streams.iter().try_for_each(|stream| array.gpu_on(stream).map(drop))?;
    Ok(streams)
}

/// Empty arrays of shape `[0, 3]` or `[3, 0]` whose other axis is reversed: by explicit strides,
/// and by slicing.
fn empty_and_reversed() -> [SmartArray<u32, Ix2>; 4] {
    let strided = |shape: (usize, usize), strides: (usize, usize), axis| {
        let mut array = Array2::<u32>::from_shape_vec(shape.strides(strides), vec![0; 3])
            .expect("ndarray takes it");
        array.invert_axis(Axis(axis));
        array
    };
    let sliced = Array2::<u32>::zeros((4, 3)).slice_move(s![..0, ..;-1]);
    let sliced_first = Array2::<u32>::zeros((3, 4)).slice_move(s![..;-1, 4..]);
    let arrays = [strided((0, 3), (3, 1), 1), strided((3, 0), (1, 3), 0), sliced, sliced_first]
        .map(SmartArray::from);
    assert!(
        arrays.iter().all(|array| array.strides().iter().any(|stride| *stride < 0)),
        "ndarray leaves them reversed"
    );
    arrays
}

/// Returns the pointer of a view without elements, which must not depend on reversed axes.
fn nowhere() -> *const u32 {
    std::ptr::dangling()
}

#[test]
fn an_empty_view_with_a_reversed_axis_points_where_a_straight_one_does() -> Result<()> {
    let kernel = Kernel::<(In<u32, Ix2>, InOut<u32>)>::new("looking")
        .host(|_, (x, y)| y[0] += u32::from(x.as_ptr() == nowhere()));
    let (device, mut count) = (idle_device(), SmartArray::from(vec![0]));
    assert_eq!(SmartArray::<u32, Ix2>::zeros((0, 3)).host()?.as_ptr(), nowhere());
    for mut array in empty_and_reversed() {
        assert_eq!(array.host()?.as_ptr(), nowhere());
        assert_eq!(array.host_mut()?.as_ptr(), nowhere());
        kernel.launch_on(&device.stream(), one(), (&array, &mut count))?;
    }
    assert_eq!(count.get(0)?, 4);
    Ok(())
}

#[test]
fn an_array_like_an_empty_one_with_a_reversed_axis_is_of_use() -> Result<()> {
    for array in empty_and_reversed() {
        let mut like = SmartArray::<u32, _>::zeros_like(&array);
        assert_eq!(like.host_mut()?.shape(), array.shape());
        assert_eq!(like.into_array()?.shape(), array.shape());
        assert_eq!(SmartArray::<u32, _>::uninit_like(&array).into_array()?.shape(), array.shape());
    }
    Ok(())
}

#[test]
fn an_empty_array_with_a_reversed_axis_is_seen_on_the_host() -> Result<()> {
    for mut array in empty_and_reversed() {
        let shape = array.shape().to_vec();
        assert_eq!(array.host()?.shape(), shape);
        assert_eq!(array.host_mut()?.shape(), shape);
        assert_eq!(array.host_overwrite()?.iter().count(), 0);
        assert_eq!(array.try_clone()?.into_array()?.shape(), shape);
        assert_eq!(array.into_array()?.shape(), shape);
    }
    Ok(())
}

#[test]
fn an_empty_array_with_a_reversed_axis_is_cut() -> Result<()> {
    for mut array in empty_and_reversed() {
        let long = Axis(usize::from(array.shape()[1] == 3));
        assert_eq!(array.slice(s![..;-1, ..;-1]).host()?.len(), 0);
        assert_eq!(array.slice_mut(s![..;-1, ..;-1]).host_mut()?.len(), 0);
        for index in 0..=3 {
            let (first, second) = array.view().split_at(long, index);
            assert_eq!(
                (first.host()?.len_of(long), second.host()?.len_of(long)),
                (index, 3 - index)
            );
            let (mut first, mut second) = array.split_at_mut(long, index);
            assert_eq!((first.host_mut()?.len(), second.host_mut()?.len()), (0, 0));
        }
    }
    Ok(())
}

#[test]
fn an_empty_slice_with_a_reversed_axis_is_seen_where_its_array_is() -> Result<()> {
    let device = idle_device();
    let mut array = SmartArray::from(Array2::<u32>::ones((4, 3)));
    drop(array.gpu_mut_on(&device.stream())?);
    let empty = array.slice(s![4.., ..;-1]);
    let (first, second) = empty.split_at(Axis(1), 2);
    assert_eq!((first.host()?.shape(), second.host()?.shape()), (&[0, 2][..], &[0, 1][..]));
    assert_eq!(empty.gpu_on(&device.stream())?.shape(), [0, 3]);
    assert_eq!(empty.snapshot_on(&device.stream())?.wait()?.shape(), [0, 3]);
    Ok(())
}

#[test]
fn an_empty_array_with_a_reversed_axis_is_launched_on() -> Result<()> {
    let flat = Kernel::<(In<u32>, InOut<u32>)>::new("flat")
        .host(|_, (x, y): (&[u32], &mut [u32])| y[0] += x.len() as u32);
    let sized = Kernel::<(In<u32, Ix2>, InOut<u32>)>::new("sized")
        .host(|_, (x, y)| y[0] += 1 + x.iter().sum::<u32>());
    for emulation in support::bodies::modes() {
        let (device, mut count) = (Device::emulated(emulation()), SmartArray::from(vec![0]));
        for array in empty_and_reversed() {
            flat.launch_on(&device.stream(), one(), (&array, &mut count))?;
            sized.launch_on(&device.stream(), one(), (&array, &mut count))?;
            sized.launch_on(
                &device.stream(),
                one(),
                (&array.slice(s![..;-1, ..;-1]), &mut count),
            )?;
        }
        assert_eq!(count.get(0)?, 8);
    }
    Ok(())
}

/// Reads `array` on a new device, so that the mark of the read has the last handle of this device.
fn let_go_of_a_device_that_read(
    array: &SmartArray<u32, Ix1>,
    on_drop: impl Fn() + Send + Sync + 'static,
) -> Result<Arc<AtomicBool>> {
    let passing = idle_device();
    SmartArray::<u32, _>::uninit(8).assign_on(&passing.stream(), array)?;
    passing.synchronize()?;
    queue_capture(&passing, on_drop)
}

#[test]
fn a_capture_may_ask_the_array_that_its_stream_was_kept_by() {
    without_deadlock(|| {
        let device = Device::emulated(Emulation::new());
        let array = Arc::new(array_on(&device).expect("enough memory"));
        // The reference is weak, since the array keeps the stream alive, and the stream's queued
        // body contains the captured value.
        let asked: Weak<_> = Arc::downgrade(&array);
        let ask = move || drop(asked.upgrade().map(|array| array.residency()));
        let dropped = let_go_of_a_device_that_read(&array, ask).expect("it is queued");
        device.synchronize().expect("nothing fails");
        use_on_many_streams(&array, &device).expect("streams");
        assert!(dropped.load(Ordering::SeqCst), "the array keeps no idle stream");
    });
}

#[test]
fn a_capture_may_wait_for_the_device_that_its_stream_visited() {
    without_deadlock(|| {
        let device = Device::emulated(Emulation::new());
        let array = array_on(&device).expect("enough memory");
        let asked = device.clone();
        let dropped = let_go_of_a_device_that_read(&array, move || {
            asked.synchronize().expect("nothing fails");
        })
        .expect("it is queued");
        drop(array);
        device.synchronize().expect("nothing fails");
        assert!(dropped.load(Ordering::SeqCst), "the device keeps no completed remote use");
    });
}

#[test]
fn a_capture_may_ask_for_the_current_device_when_a_scope_is_left() -> Result<()> {
    let device = idle_device();
    let here = device.enter();
    let dropped = queue_capture(&device, || drop(Device::current()))?;
    drop(device);
    assert!(!dropped.load(Ordering::SeqCst), "the scope has the last handle");
    drop(here);
    assert!(dropped.load(Ordering::SeqCst));
    Ok(())
}

/// An array with copies on 63 devices, which is the maximum.
fn everywhere() -> Result<(Vec<Device>, SmartArray<u32, Ix1>)> {
    let devices: Vec<Device> = (0..63).map(|_| idle_device()).collect();
    let array = SmartArray::from(vec![7; 4]);
    devices.iter().try_for_each(|device| array.gpu_on(&device.stream()).map(drop))?;
    Ok((devices, array))
}

#[test]
fn a_snapshot_of_what_the_last_of_63_devices_holds_is_exact() -> Result<()> {
    let (devices, mut array) = everywhere()?;
    let last = devices[62].stream();
    add().launch_on(&last, one(), (1, &mut array))?;
    // The host waits for the launch, so that the snapshot is taken from the device.
    array.prefetch_host()?;
    assert_eq!(array.snapshot_on(&last)?.wait()?.to_vec(), [8; 4]);
    assert_eq!(array.host()?.to_vec(), [8; 4]);
    Ok(())
}

#[test]
fn a_64th_device_is_never_taken_for_the_newest() -> Result<()> {
    let (devices, mut array) = everywhere()?;
    drop(array.gpu_mut_on(&devices[62].stream())?);
    let refused = array.gpu_changed_on(&idle_device().stream()).expect_err("it is empty");
    assert!(matches!(refused, Error::LostUpdate { .. }), "{refused}");
    assert_eq!(array.host()?.to_vec(), [7; 4]);
    Ok(())
}

/// A scalar of 512 KiB: 2^16 words.
type Words = [[u64; 256]; 256];

fn launch_with_words() -> Result<()> {
    let kernel =
        Kernel::<(Words, InOut<u32>)>::new("words").host(|_, (words, x): (Words, &mut [u32])| {
            assert_eq!((words[0][0], x.len()), (1 << 40, 4), "not the scalar's first word");
            x.iter_mut().for_each(|x| *x += words[255][255] as u32);
        });
    let (device, mut array) = (idle_device(), SmartArray::from(vec![1; 4]));
    let mut words: Box<Words> = Box::new([[1; 256]; 256]);
    words[0][0] = 1 << 40;
    kernel.launch_on(&device.stream(), one(), (&*words, &mut array))?;
    assert_eq!(array.host()?.to_vec(), [2; 4]);
    Ok(())
}

#[test]
fn a_scalar_of_512_kib_stands_before_an_array() -> Result<()> {
    // Such large values are moved on the stack a few times, so the thread that waits, on which the
    // body runs, gets a large stack.
    let thread = std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(launch_with_words)
        .expect("a thread");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[test]
fn a_guard_knows_its_stream_after_a_failure_was_taken_in() -> Result<()> {
    let device = idle_device();
    let stream = device.new_stream()?;
    let mut array = SmartArray::from(vec![1_u32; 8]);
    let (mut low, high) = array.split_at_mut(Axis(0), 4);
    let gate = Gate::default();
    gate.open();
    broken_update(&gate).launch_on(&stream, one(), (&mut low,))?;
    let guard = low.gpu_mut_on(&stream)?;
    device.synchronize().expect_err("the body panicked");
    // The other half is used on more streams than an array's table keeps, so that the array removes
    // idle streams. The guard's stream is in use, so the array must keep it.
    let streams = (0..12).map(|_| device.new_stream()).collect::<Result<Vec<_>>>()?;
    streams.iter().try_for_each(|stream| high.gpu_on(stream).map(drop))?;
    assert_eq!(guard.stream(), stream);
    assert_eq!(guard.device(), device);
    assert!(format!("{guard:?}").contains(&stream.to_string()));
    Ok(())
}

#[test]
fn an_assign_that_a_device_has_no_room_for_writes_nothing() -> Result<()> {
    let (roomy, full) = (idle_device(), Device::emulated(Emulation::new().seed(4).memory(256)));
    let (mut source, mut destination) =
        (SmartArray::from(vec![1; 64]), SmartArray::from(vec![5; 64]));
    add().launch_on(&roomy.stream(), one(), (1, &mut source.slice_mut(s![..32])))?;
    add().launch_on(&full.stream(), one(), (1, &mut source.slice_mut(s![32..])))?;
    let refused = destination.assign(&source).expect_err("the source fills the device");
    assert!(matches!(refused, Error::OutOfMemory { .. }), "{refused}");
    assert_eq!(destination.host()?.to_vec(), [5; 64]);
    assert_eq!(source.host()?.to_vec(), [2; 64]);
    Ok(())
}

/// An element that is aligned to 256 bytes, like device memory. A larger alignment does not
/// compile: see the documentation of `Element`.
#[repr(C, align(256))]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Page([u8; 256]);

#[test]
fn a_body_sees_elements_where_their_alignment_puts_them() -> Result<()> {
    let kernel = Kernel::<(InOut<Page>,)>::new("pages").host(|_, (pages,): (&mut [Page],)| {
        assert_eq!(pages.as_ptr().addr() % align_of::<Page>(), 0);
        pages[2].0[255] = 1;
    });
    let (device, mut array) = (idle_device(), SmartArray::<Page, _>::zeros(3));
    kernel.launch_on(&device.stream(), one(), (&mut array,))?;
    assert_eq!(array.host()?[2].0[255], 1);
    Ok(())
}

/// More one-byte elements than the largest possible array of 1024-byte elements has.
fn very_long(device: &Device) -> SmartArray<u8, Ix1> {
    let _here = device.enter();
    SmartArray::uninit((1 << 54) + 1)
}

#[test]
#[should_panic(expected = "Shape too large, product of non-zero axis lengths overflows isize")]
fn an_array_like_another_of_smaller_elements_is_not_too_long() {
    drop(SmartArray::<[u8; 1024], Ix1>::uninit_like(&very_long(&idle_device())));
}

#[test]
#[should_panic(expected = "Shape too large, product of non-zero axis lengths overflows isize")]
fn zeros_like_an_array_of_smaller_elements_are_not_too_many() {
    drop(SmartArray::<[u8; 1024], Ix1>::zeros_like(&very_long(&idle_device())));
}
