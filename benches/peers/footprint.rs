//! Bytes of bookkeeping, counted by the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use resident::ndarray::{Array2, Ix2, s};
use resident::{Device, Grid, InOut, Kernel, SmartArray};

/// The system's allocator, counting what this thread holds in blocks below 64 KiB: data is larger.
pub struct Counting;

const DATA_BYTES: usize = 64 << 10;

thread_local! {
    static HELD_BYTES: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    if bytes.unsigned_abs() < DATA_BYTES {
        // A thread that is being torn down is not counted.
        let _ = HELD_BYTES.try_with(|held| held.set(held.get() + bytes));
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

/// Bytes that this thread holds more after `work` than before, and its result.
fn held_by<T>(work: impl FnOnce() -> T) -> (isize, T) {
    let before = HELD_BYTES.get();
    let value = work();
    (HELD_BYTES.get() - before, value)
}

pub fn print() {
    let stream = Device::cpu().stream();
    let touch = Kernel::<(InOut<f32, Ix2>,)>::new("touch").host(|_grid, (_array,)| ());
    // What is made once for all arrays is made before: the stream's line, the registry's shards.
    let mut warm = SmartArray::from(Array2::<f32>::zeros((256, 256)));
    (0..64).for_each(|_| touch.launch_on(&stream, Grid::cover(1), (&mut warm,)).expect("launched"));
    stream.synchronize().expect("nothing failed");
    let data = Array2::<f32>::zeros((256, 256));
    let (heap, mut array) = held_by(|| {
        let mut array = SmartArray::from(data);
        touch.launch_on(&stream, Grid::cover(1), (&mut array,)).expect("launched");
        stream.synchronize().expect("nothing failed");
        array
    });
    let inline = size_of::<SmartArray<f32, Ix2>>();
    println!("bookkeeping of a 2-D array on the host and one device: {inline} bytes inline, {heap} on the heap, registry included");
    let (interior, ()) = held_by(|| {
        touch.launch_on(&stream, Grid::cover(1), (&mut array.slice_mut(s![1..255, 1..255]),)).expect("launched");
        stream.synchronize().expect("nothing failed");
    });
    println!("more for a launch on its interior: {interior} bytes on the heap");
}
