//! The measured programs.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use resident::ndarray::{Array2, Ix1, Ix2, Shape, ShapeBuilder};
use resident::{Device, DeviceArray, Grid, Kernel, Out, SmartArray, Stream};

type Bytes = SmartArray<u8, Ix1>;

/// A program, and what makes its next run possible.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) prepare: Box<dyn FnMut()>,
    pub(crate) run: Box<dyn FnMut()>,
}

impl Program {
    fn new(
        name: &'static str,
        prepare: impl FnMut() + 'static,
        run: impl FnMut() + 'static,
    ) -> Self {
        Self { name, prepare: Box::new(prepare), run: Box::new(run) }
    }

    /// One whose next run is always possible.
    fn unprepared(name: &'static str, run: impl FnMut() + 'static) -> Self {
        Self::new(name, || (), run)
    }
}

/// Copies between memories that have been touched.
pub(crate) fn steady(len_bytes: usize) -> Vec<Program> {
    vec![
        memcpy(len_bytes),
        upload(len_bytes),
        upload_and_wait(len_bytes),
        upload_behind_work(len_bytes),
        download(len_bytes),
    ]
}

/// First uses of new memory.
pub(crate) fn fresh(len_bytes: usize) -> Vec<Program> {
    let shape = (1 << 10, len_bytes >> 10);
    let (by_rows, by_columns) = (shape.set_f(false), shape.f());
    vec![
        fresh_memcpy(len_bytes),
        fresh_download(len_bytes),
        download_to_new_array("explicit array by rows, down to a new array", by_rows),
        download_to_new_array("explicit array by columns, down to a new array", by_columns),
        fresh_upload(len_bytes),
    ]
}

fn memcpy(len_bytes: usize) -> Program {
    let (source, mut destination) = (vec![1_u8; len_bytes], vec![2_u8; len_bytes]);
    Program::unprepared("memcpy", move || {
        destination.copy_from_slice(black_box(&source));
        black_box(&mut destination);
    })
}

/// An array that host and device have both touched, and a stream.
fn touched(len_bytes: usize) -> (Rc<RefCell<Bytes>>, Stream) {
    let (array, stream) =
        (Bytes::from(vec![3_u8; len_bytes]), Device::cpu().new_stream().expect("a stream"));
    array.prefetch(&stream).expect("room");
    stream.synchronize().expect("nothing failed");
    (Rc::new(RefCell::new(array)), stream)
}

/// The time until the host may write the array again.
fn upload(len_bytes: usize) -> Program {
    let (array, stream) = touched(len_bytes);
    let (prepared, settled) = (Rc::clone(&array), stream.clone());
    Program {
        name: "up, until the host may write again",
        prepare: Box::new(move || {
            settled.synchronize().expect("nothing failed");
            prepared.borrow_mut().host_mut().expect("valid")[0] += 1;
        }),
        run: Box::new(move || {
            array.borrow().prefetch(&stream).expect("room");
            black_box(&*array.borrow_mut().host_mut().expect("valid"));
        }),
    }
}

/// The time until the device has the contents.
fn upload_and_wait(len_bytes: usize) -> Program {
    let (array, stream) = touched(len_bytes);
    let prepared = Rc::clone(&array);
    Program {
        name: "up, until the device has it",
        prepare: Box::new(move || prepared.borrow_mut().host_mut().expect("valid")[0] += 1),
        run: Box::new(move || {
            array.borrow().prefetch(&stream).expect("room");
            stream.synchronize().expect("nothing failed");
        }),
    }
}

/// The time until the host may write the array again, while the stream runs a kernel.
fn upload_behind_work(len_bytes: usize) -> Program {
    let (array, stream) = touched(len_bytes);
    let (prepared, busy) = (Rc::clone(&array), stream.clone());
    let may_end = Arc::new(AtomicBool::new(true));
    let may_end_body = Arc::clone(&may_end);
    let hold = Kernel::<(u8,)>::new("hold").host(move |_grid, _scalar| {
        while !may_end_body.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_micros(100));
        }
    });
    Program {
        name: "up behind a kernel, until the host may write again",
        prepare: Box::new(move || {
            may_end.store(true, Ordering::Release);
            busy.synchronize().expect("nothing failed");
            prepared.borrow_mut().host_mut().expect("valid")[0] += 1;
            may_end.store(false, Ordering::Release);
            hold.launch_on(&busy, Grid::cover(1), (0,)).expect("launched");
        }),
        run: Box::new(move || {
            array.borrow().prefetch(&stream).expect("room");
            black_box(&*array.borrow_mut().host_mut().expect("valid"));
        }),
    }
}

fn download(len_bytes: usize) -> Program {
    let (array, stream) = touched(len_bytes);
    let prepared = Rc::clone(&array);
    Program {
        name: "down",
        prepare: Box::new(move || {
            drop(prepared.borrow_mut().gpu_mut_on(&stream).expect("room"));
            stream.synchronize().expect("nothing failed");
        }),
        run: Box::new(move || {
            black_box(&*array.borrow().host().expect("valid"));
        }),
    }
}

/// An explicit array of this shape and order, copied to a new array in the same order.
fn download_to_new_array(name: &'static str, shape: Shape<Ix2>) -> Program {
    let array = DeviceArray::from_host_on(&Device::cpu().stream(), &Array2::from_elem(shape, 4_u8));
    let array = array.expect("room");
    Program::unprepared(name, move || {
        black_box(array.copy_to_host().expect("valid"));
    })
}

fn fresh_memcpy(len_bytes: usize) -> Program {
    let source = vec![1_u8; len_bytes];
    Program::unprepared("memcpy to a new vector", move || {
        black_box(black_box(&source).clone());
    })
}

/// A new array that a kernel writes and the host reads.
fn fresh_download(len_bytes: usize) -> Program {
    let stream = Device::cpu().new_stream().expect("a stream");
    let write = Kernel::<(Out<u8, Ix1>,)>::new("write").host(|_grid, _array| ());
    Program::unprepared("new array, written by an empty kernel, down", move || {
        let mut array = Bytes::uninit(len_bytes);
        write.launch_on(&stream, Grid::cover(1), (&mut array,)).expect("launched");
        black_box(&*array.host().expect("valid"));
    })
}

/// A new array over a vector that the host has touched, copied to new device memory.
fn fresh_upload(len_bytes: usize) -> Program {
    let stream = Device::cpu().new_stream().expect("a stream");
    let vector = Rc::new(RefCell::new(vec![1_u8; len_bytes]));
    Program::unprepared("touched vector, up to new device memory", move || {
        let array = Bytes::from(vector.take());
        array.prefetch(&stream).expect("room");
        stream.synchronize().expect("nothing failed");
        let (taken, _) = array.into_array().expect("valid").into_raw_vec_and_offset();
        vector.replace(taken);
    })
}
