//! Which body a device runs.

use resident::{CudaSource, Device, Emulation, Grid, InOut, Kernel, Result, SmartArray};

use crate::{device, kernel};

const ADD_ONE: &str = r#"
    extern "C" __global__ void add(int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
    extern "C" __global__ void spin(int *x) {
        for (int i = 0; i < 200; ++i) atomicAdd(x + blockIdx.x % 8, 1);
    }
"#;

/// Adds 1 in CUDA C and 10 in Rust.
fn both() -> Kernel<(InOut<i32>,)> {
    let kernel = kernel::<(InOut<i32>,)>("add", ADD_ONE);
    kernel.host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x += 10))
}

fn added(kernel: &Kernel<(InOut<i32>,)>, device: &Device) -> Result<Vec<i32>> {
    let mut x = SmartArray::from(vec![0, 100]);
    kernel.launch_on(&device.stream(), Grid::new(1, 2), (&mut x,))?;
    x.to_vec()
}

#[test]
fn cuda_c_runs_where_there_is_no_other_body_or_where_it_is_preferred() -> Result<()> {
    let (both, one) = (both(), kernel::<(InOut<i32>,)>("add", ADD_ONE));
    let preferring = Device::emulated(Emulation::new().prefer_cuda(true));
    assert_eq!(added(&one, &device())?, [1, 101]);
    assert_eq!(added(&both, &device())?, [10, 110]);
    assert_eq!(added(&both, &preferring)?, [1, 101]);
    let rust = Kernel::<(InOut<i32>,)>::new("add")
        .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x += 10));
    assert_eq!(added(&rust, &preferring)?, [10, 110]);
    Ok(())
}

#[test]
fn a_source_may_begin_with_a_byte_order_mark() -> Result<()> {
    let marked = format!("\u{feff}{ADD_ONE}");
    let path = std::env::temp_dir().join(format!("resident-mark-{}.cu", std::process::id()));
    std::fs::write(&path, &marked).expect("the folder for temporary files is writable");
    let text = kernel::<(InOut<i32>,)>("add", &*marked);
    assert_eq!(added(&text, &device())?, [1, 101]);
    let file = kernel::<(InOut<i32>,)>("add", CudaSource::file(&path));
    assert_eq!(added(&file, &device())?, [1, 101]);
    std::fs::remove_file(&path).expect("it was written above");
    Ok(())
}

#[test]
fn a_kernel_is_called_and_compared_with_its_body_in_cuda_c() -> Result<()> {
    let (both, one) = (both(), kernel::<(InOut<i32>,)>("add", ADD_ONE));
    let mut x = SmartArray::from(vec![5, 6]);
    one.call(Grid::new(1, 2), (&mut x,))?;
    assert_eq!(x.to_vec()?, [6, 7]);
    assert_eq!(x.traffic().to_device.count, 0, "it runs on the host's copy");
    let preferring = Device::emulated(Emulation::new().prefer_cuda(true));
    for device in [preferring, device()] {
        let difference = both.compare(&device, Grid::new(1, 2), (&mut x,), 0.0)?;
        assert!(difference.is_some(), "10 is not 1");
    }
    Ok(())
}

#[test]
fn seeded_devices_run_cuda_c() -> Result<()> {
    let one = kernel::<(InOut<i32>,)>("add", ADD_ONE);
    for seed in 0..3 {
        assert_eq!(added(&one, &Device::emulated(Emulation::new().seed(seed)))?, [1, 101]);
    }
    Ok(())
}

/// A thread of rayon that waits for a launch runs no other job of rayon's meanwhile: such a job
/// would run inside this one, and could not take the lock that it holds.
#[test]
fn threads_of_rayon_launch_and_run_nothing_else_meanwhile() {
    use rayon::prelude::{IntoParallelIterator, ParallelIterator};
    let spin = kernel::<(InOut<i32>,)>("add", CudaSource::c(ADD_ONE).entry("spin"));
    let inside = std::sync::atomic::AtomicUsize::new(0);
    thread_local! {
        static DEPTH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }
    (0..64).into_par_iter().for_each(|_| {
        DEPTH.set(DEPTH.get() + 1);
        inside.fetch_max(DEPTH.get(), std::sync::atomic::Ordering::Relaxed);
        let mut x = SmartArray::<i32, _>::zeros(8);
        spin.call(Grid::new(64, 256), (&mut x,)).expect("it runs");
        assert_eq!(x.to_vec().expect("on the host"), [64 / 8 * 256 * 200; 8]);
        DEPTH.set(DEPTH.get() - 1);
    });
    assert_eq!(inside.into_inner(), 1);
}
