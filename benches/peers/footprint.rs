//! Bytes of bookkeeping, counted by the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use resident::ndarray::{Array2, Ix2, s};
use resident::{Device, Grid, InOut, Kernel, SmartArray};

use crate::gate::Gate;

/// The system's allocator, which counts what is held in blocks below 64 KiB while it is asked to:
/// data is larger. Of all threads, since a stream's worker frees what was taken here.
pub struct Counting;

const DATA_BYTES: usize = 64 << 10;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static HELD_BYTES: AtomicIsize = AtomicIsize::new(0);

fn count(bytes: isize) {
    if IS_COUNTING.load(Ordering::Relaxed) && bytes.unsigned_abs() < DATA_BYTES {
        HELD_BYTES.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: everything is the system allocator's; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes that are held more after `work` than before, and its result.
fn held_by<T>(work: impl FnOnce() -> T) -> (isize, T) {
    let before = HELD_BYTES.load(Ordering::Relaxed);
    let value = work();
    (HELD_BYTES.load(Ordering::Relaxed) - before, value)
}

/// Arrays of which the mean is taken: what the registry and the stream's line take at times for all
/// is spread over them.
const ARRAYS: isize = 64;

pub fn print() {
    IS_COUNTING.store(true, Ordering::Relaxed);
    let stream = Device::cpu().stream();
    let touch = Kernel::<(InOut<f32, Ix2>,)>::new("touch").host(|_grid, (_array,)| ());
    // What is made once for all arrays is made before: the stream's line, the registry's shards.
    let mut warm: Vec<_> =
        (0..16 * ARRAYS).map(|_| SmartArray::<f32, Ix2>::uninit((256, 256))).collect();
    warm.truncate(1);
    warm[0].fill(0.0).expect("a constant");
    // Nothing runs behind the gate, so that the line gets as long as it ever will; it has two
    // halves, which take turns.
    let gate = Gate::new();
    for _ in 0..4 {
        gate.time_queueing(&stream, 4 * ARRAYS as usize, || {
            touch.launch_on(&stream, Grid::cover(1), (&mut warm[0],)).expect("launched")
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
            .for_each(|(array, data)| *array = SmartArray::from(data))
    });
    let host = (bare + adopted) / ARRAYS - inline;
    print_line("on the host", inline, host);
    let (read, ()) = held_by(|| {
        arrays.iter().for_each(|array| array.prefetch(&stream).expect("room"));
        stream.synchronize().expect("nothing failed");
    });
    print_line("on the host and one device", inline, host + read / ARRAYS);
    let (launched, ()) = held_by(|| {
        arrays.iter_mut().for_each(|array| {
            touch.launch_on(&stream, Grid::cover(1), (array,)).expect("launched")
        });
        stream.synchronize().expect("nothing failed");
    });
    print_line("and launched with", inline, host + (read + launched) / ARRAYS);
    let (interior, ()) = held_by(|| {
        arrays.iter_mut().for_each(|array| {
            touch
                .launch_on(&stream, Grid::cover(1), (&mut array.slice_mut(s![1..255, 1..255]),))
                .expect("launched")
        });
        stream.synchronize().expect("nothing failed");
    });
    println!("more for a launch on its interior: {} bytes on the heap", interior / ARRAYS);
}

fn print_line(what: &str, inline: isize, heap: isize) {
    println!(
        "bookkeeping of {what}: {inline} bytes inline, {heap} on the heap, {} in all",
        inline + heap
    );
}
