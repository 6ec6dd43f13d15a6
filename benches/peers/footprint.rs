//! Bytes of bookkeeping per array, counted by the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use resident::ndarray::{Array2, Ix2, s};
use resident::{Device, Grid, InOut, Kernel, SmartArray};

use crate::gate::Gate;

/// The system allocator, which counts live bytes in blocks below 64 KiB while counting is on; array
/// data is larger. It counts all threads, because a stream's worker frees what this thread
/// allocates.
pub struct Counting;

const DATA_BYTES: usize = 64 << 10;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static HELD_BYTES: AtomicIsize = AtomicIsize::new(0);

fn count(bytes: isize) {
    if IS_COUNTING.load(Ordering::Relaxed) && bytes.unsigned_abs() < DATA_BYTES {
        HELD_BYTES.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: all calls are passed to the system allocator; counting does not access its memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The increase of live bytes during `work`, and its result.
fn held_by<T>(work: impl FnOnce() -> T) -> (isize, T) {
    let before = HELD_BYTES.load(Ordering::Relaxed);
    let value = work();
    (HELD_BYTES.load(Ordering::Relaxed) - before, value)
}

/// The number of arrays in the mean. It is large, so that occasional allocations of the registry
/// and of the stream's queue hardly count.
const ARRAYS: isize = 64;

pub fn print() {
    IS_COUNTING.store(true, Ordering::Relaxed);
    let stream = Device::cpu().stream();
    let touch = Kernel::<(InOut<f32, Ix2>,)>::new("touch").host(|_grid, (_array,)| ());
    // The allocations that all arrays share happen here: the stream's queue, the registry's shards.
    let mut warm: Vec<_> =
        (0..16 * ARRAYS).map(|_| SmartArray::<f32, Ix2>::uninit((256, 256))).collect();
    warm.truncate(1);
    warm[0].fill(0.0).expect("a constant");
    // The gate blocks the stream, so that the queue grows to its largest size. The queue has two
    // halves, which alternate.
    let gate = Gate::new();
    for _ in 0..4 {
        gate.time_queueing(&stream, 4 * ARRAYS as usize, || {
            touch.launch_on(&stream, Grid::cover(1), (&mut warm[0],)).expect("launched");
        });
        touch.launch_on(&stream, Grid::cover(1), (&mut warm[0],)).expect("launched");
        stream.synchronize().expect("nothing failed");
    }
    stream.synchronize().expect("nothing failed");

    let inline = size_of::<SmartArray<f32, Ix2>>() as isize;
    let (bare, mut arrays) = held_by(|| {
        (0..ARRAYS).map(|_| SmartArray::<f32, Ix2>::uninit((256, 256))).collect::<Vec<_>>()
    });
    print_line("a 2-D array without memory", inline, bare / ARRAYS - inline);
    let mut data: Vec<_> = (0..ARRAYS).map(|_| Array2::<f32>::zeros((256, 256))).collect();
    let (adopted, ()) = held_by(|| {
        arrays
            .iter_mut()
            .zip(data.drain(..))
            .for_each(|(array, data)| *array = SmartArray::from(data));
    });
    let host = (bare + adopted) / ARRAYS - inline;
    print_line("an array with host memory", inline, host);
    let (read, ()) = held_by(|| {
        arrays.iter().for_each(|array| array.prefetch(&stream).expect("room"));
        stream.synchronize().expect("nothing failed");
    });
    print_line("an array with host memory and one device", inline, host + read / ARRAYS);
    let (launched, ()) = held_by(|| {
        arrays.iter_mut().for_each(|array| {
            touch.launch_on(&stream, Grid::cover(1), (array,)).expect("launched");
        });
        stream.synchronize().expect("nothing failed");
    });
    print_line("an array after a launch", inline, host + (read + launched) / ARRAYS);
    let (interior, ()) = held_by(|| {
        arrays.iter_mut().for_each(|array| {
            touch
                .launch_on(&stream, Grid::cover(1), (&mut array.slice_mut(s![1..255, 1..255]),))
                .expect("launched");
        });
        stream.synchronize().expect("nothing failed");
    });
    println!("additional for a launch on the interior: {} bytes on the heap", interior / ARRAYS);
}

fn print_line(what: &str, inline: isize, heap: isize) {
    println!(
        "bookkeeping of {what}: {inline} bytes inline, {heap} on the heap, {} in all",
        inline + heap
    );
}
