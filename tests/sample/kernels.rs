//! CUDA C compiled for the host: what a kernel computes, what the checker finds, and a text.

use resident::emulation::FindingKind;
use resident::ops::{Elementwise, Reduction};
use resident::{CudaSource, Device, Emulation, Grid, In, InOut, Kernel, Out, Result, SmartArray};

/// The sums of blocks of 64 elements, by a tree in shared memory; and three kernels with a defect.
const SOURCE: &str = r#"
extern "C" __global__ void sums(const float *in, float *out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
}
extern "C" __global__ void beyond(const float *in, float *out) {
    out[blockIdx.x] = in[256 + threadIdx.x];
}
extern "C" __global__ void race(const float *in, float *out) {
    out[blockIdx.x] = in[threadIdx.x];
}
extern "C" __global__ void unwritten(const float *in, float *out) {
    out[blockIdx.x] = out[blockIdx.x] + in[0];
}
"#;

type Sums = Kernel<(In<f32>, Out<f32>)>;

fn kernel(source: &CudaSource, entry: &'static str) -> Sums {
    // SAFETY: `sums` accesses the elements of whole blocks, which the test passes; the others are
    // launched only on a device that ends threads before they access what they must not.
    unsafe { Kernel::new(entry).cuda(source.clone().entry(entry)) }
}

#[test]
#[cfg_attr(not(cxx), ignore = "there is no C++ compiler: install g++")]
fn a_kernel_computes_and_its_defects_are_found() -> Result<()> {
    let source = CudaSource::c(SOURCE);
    let numbers = || SmartArray::from((0..256).map(|x| x as f32).collect::<Vec<_>>());
    let expected: Vec<f32> = (0..4).map(|block| (block * 64 * 64 + 63 * 32) as f32).collect();
    for sanitizes in [false, true] {
        let device = Device::emulated(Emulation::new().sanitize(sanitizes));
        let mut out = SmartArray::uninit(4);
        let arguments = (&numbers(), &mut out);
        kernel(&source, "sums").launch_on(&device.stream(), Grid::new(4, 64), arguments)?;
        assert_eq!(out.to_vec()?, expected);
    }
    for (entry, kind, says) in [
        ("beyond", FindingKind::OutOfBounds, "] of `in` (argument 0, array f32[256] made at"),
        ("race", FindingKind::Race, ", 0, 0), thread (0, 0, 0) (4 bytes, block ("),
        ("unwritten", FindingKind::Uninitialised, "] of `out` (argument 1, array f32[4] made at"),
    ] {
        let device = Device::emulated(Emulation::new().sanitize(true));
        let mut out = SmartArray::uninit(4);
        let arguments = (&numbers(), &mut out);
        kernel(&source, entry).launch_on(&device.stream(), Grid::new(4, 64), arguments)?;
        assert!(device.synchronize().is_err(), "{entry}");
        let findings = device.emulation().expect("it is emulated").findings();
        let marked = SOURCE.lines().position(|line| line.contains(entry)).expect("it is there");
        let first = findings.iter().find(|one| one.kind.is_error()).expect("an error");
        let line = first.line.as_ref().map(|line| line.number as usize);
        assert_eq!((first.kind, line), (kind, Some(marked + 2)), "{entry}: {findings:#?}");
        assert!(first.to_string().contains(says), "{first}");
    }
    Ok(())
}

#[test]
#[cfg_attr(not(cxx), ignore = "there is no C++ compiler: install g++")]
fn texts_compute() -> Result<()> {
    let _here = Device::cpu().enter();
    let x = SmartArray::from(vec![1.0_f32, 2.0, 3.0]);
    let mut y = SmartArray::from(vec![10.0_f32, 20.0, 30.0]);
    let axpy =
        Elementwise::<(f32, In<f32>, InOut<f32>)>::new("axpy", "y = a * x + y", ["a", "x", "y"]);
    axpy.apply((2.0, &x, &mut y))?;
    assert_eq!(y.to_vec()?, [12.0, 24.0, 36.0]);
    let squares = Reduction::<(In<f32>,), f32>::new("squares", ["x"], "x * x", "a + b", 0.0);
    assert_eq!(squares.apply((&x,))?, 14.0);
    Ok(())
}
