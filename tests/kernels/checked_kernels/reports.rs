//! What findings say, and what they do to a launch.

use std::sync::LazyLock;

use resident::emulation::{Finding, FindingKind, OtherThread};
use resident::ndarray::{Ix2, s};
use resident::{CudaSource, Device, Error, Grid, In, InOut, Kernel, Out, Result, SmartArray};

use crate::{check, device};

/// Kernels of one source, the first of which tells its line.
const SOURCE: &str = r#"
    extern "C" __global__ void race(int *x) {
        unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
        x[block % 5] = block;
    }
    extern "C" __global__ void add(const int *from, int *to) {
        to[threadIdx.x] += from[threadIdx.x];
    }
    extern "C" __global__ void second(int *x) { x[1] = 1; }
    extern "C" __global__ void copy(const float *in, float *out) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        out[i] = in[i];
    }
    extern "C" __global__ void several(int *x, int *y) {
        __shared__ int tile[64];
        tile[threadIdx.x] = x[threadIdx.x];
        y[threadIdx.x] = tile[63 - threadIdx.x]; // first
        y[threadIdx.x / 2] = threadIdx.x;
        if (threadIdx.x == 63) x[64] = 0;
    }
    extern "C" __global__ void consequence(int *x, int *y) {
        __shared__ int tile[64];
        if (threadIdx.x == 5) y[64] = 0;
        tile[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        y[threadIdx.x] = tile[63 - threadIdx.x];
    }
"#;

/// One of them.
fn one(name: &str) -> CudaSource {
    static ALL: LazyLock<CudaSource> = LazyLock::new(|| CudaSource::c(SOURCE));
    ALL.clone().entry(name)
}

#[test]
fn a_race_names_both_threads_the_element_and_the_line() {
    let mut x = SmartArray::<i32, _>::zeros(5).named("sums");
    let grid = Grid::new((2, 3), (1, 1));
    let found = check::<(InOut<i32>,)>(one("race"), grid, (&mut x,));
    let [race] = &found[..] else { panic!("{found:?}") };
    assert_eq!((race.kind, race.argument, race.len_bytes), (FindingKind::Race, Some(0), 4));
    assert_eq!(race.element, Some(vec![0]));
    assert_eq!((race.block, race.thread, race.is_write), ([1, 2, 0], [0, 0, 0], true));
    let other = race.other.map(|OtherThread { block, thread, .. }| (block, thread));
    assert_eq!(other, Some(([0, 0, 0], [0, 0, 0])));
    assert_eq!(
        race.to_string(),
        "kernel \"kernel\" writes element [0] of `x` (argument 0, array \"sums\"), and nothing \
         orders that and an access by block (0, 0, 0), thread (0, 0, 0) (4 bytes, block (1, 2, 0), \
         thread (0, 0, 0), kernel.cu:4); nothing orders blocks: use atomic operations, or a launch \
         of its own"
    );
}

const SHIFT: &str = r#"
    namespace steps {
    template <typename T, int Distance>
    __global__ void shift(int scale, const T *from, resident::View2<T> into) {
        into(threadIdx.y, threadIdx.x) = scale * from[threadIdx.x + Distance];
    }
    }
    template __global__ void steps::shift<float, 2>(int, const float *, resident::View2<float>);
"#;

/// The findings of that kernel for a grid of threads, and how the launch failed.
fn shifted(threads: (u32, u32)) -> (Vec<Finding>, Error) {
    let device = device();
    let source = CudaSource::c(SHIFT).entry("steps::shift<float, 2>");
    // SAFETY: the device ends threads before they access what they must not.
    let kernel = unsafe { Kernel::<(i32, In<f32>, Out<f32, Ix2>)>::new("shift").cuda(source) };
    kernel.prepare(&device).unwrap_or_else(|error| panic!("{error}"));
    let from = SmartArray::from(vec![1.0_f32; 8]).named("from the camera");
    let mut into = SmartArray::<f32, _>::zeros((2, 9)).named("into");
    let mut part = into.slice_mut(s![.., ..6]);
    let grid = Grid::new(1, threads);
    kernel.launch_on(&device.stream(), grid, (3, &from, &mut part)).expect("it is queued");
    let failure = device.synchronize().expect_err("an access is out of bounds");
    (device.emulation().expect("it is emulated").findings(), failure)
}

/// Of a template in a namespace too, and in the launch's error.
#[test]
fn a_finding_names_parameter_array_and_shape() {
    let (found, failure) = shifted((8, 1));
    let text = found[0].to_string();
    let expected = "kernel \"shift\" reads element [8] of `from` (argument 1, array \"from the \
                    camera\"), which is out of bounds: its shape is [8] (4 bytes";
    assert!(text.starts_with(expected), "{text}");
    assert!(failure.to_string().contains(expected), "{failure}");
    assert_eq!(found[0].parameter.as_deref(), Some("from"));
    assert_eq!(found[0].array.as_deref(), Some("\"from the camera\""));
    assert_eq!(found[0].shape, Some(vec![8]));
    let (found, _) = shifted((6, 3));
    let text = found[0].to_string();
    let expected = "kernel \"shift\" reads element [2, 0] of `into` (argument 2, array \
                    \"into\"), which is out of bounds: its shape is [2, 6] (4 bytes";
    assert!(text.starts_with(expected), "{text}");
}

/// Nothing but the array that the kernel was to write is lost, and the device goes on.
#[test]
fn a_launch_with_a_finding_fails_like_a_body_that_panics() -> Result<()> {
    // SAFETY: the device ends threads before they access what they must not.
    let kernel = unsafe { Kernel::<(In<i32>, InOut<i32>)>::new("kernel").cuda(one("add")) };
    let device = device();
    let stream = device.stream();
    let from = SmartArray::from(vec![1, 2, 3, 4]);
    let (mut short, mut long) = (SmartArray::<i32, _>::zeros(3), SmartArray::<i32, _>::zeros(4));
    kernel.launch_on(&stream, Grid::new(1, 4), (&from, &mut short))?;
    kernel.launch_on(&stream, Grid::new(1, 4), (&from, &mut long))?;
    assert!(matches!(short.host(), Err(Error::Lost { .. })));
    assert_eq!(long.to_vec()?, [1, 2, 3, 4]);
    assert_eq!(from.to_vec()?, [1, 2, 3, 4]);
    let findings = device.emulation().expect("it is emulated").findings();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].element, Some(vec![3]));
    Ok(())
}

#[test]
fn devices_find_their_own_and_keep_a_thousand() -> Result<()> {
    // SAFETY: as above.
    let kernel = unsafe { Kernel::<(InOut<i32>,)>::new("kernel").cuda(one("second")) };
    let (one, other) = (device(), device());
    for _ in 0..1100 {
        let mut x = SmartArray::<i32, _>::zeros(1);
        kernel.launch_on(&one.stream(), Grid::new(1, 1), (&mut x,))?;
        let _lost = one.synchronize();
    }
    let count = |device: &Device| device.emulation().expect("it is emulated").findings().len();
    assert_eq!((count(&one), count(&other)), (1024, 0));
    Ok(())
}

#[test]
fn streams_check_their_launches_at_the_same_time() -> Result<()> {
    let source = r#"
        __device__ int calls;
        extern "C" __global__ void kernel(int *x, int n) {
            __shared__ int tile[32];
            extern __shared__ int part[];
            tile[threadIdx.x] = x[threadIdx.x];
            part[threadIdx.x] = n;
            __syncthreads();
            x[threadIdx.x] = tile[31 - threadIdx.x] + part[31 - threadIdx.x];
            atomicAdd(&calls, 1);
        }
    "#;
    // SAFETY: the kernel keeps to its signature.
    let kernel = unsafe { Kernel::<(InOut<i32>, i32)>::new("kernel").cuda(source) };
    let device = device();
    let mut arrays: Vec<_> = (0..8).map(|_| SmartArray::<i32, _>::zeros(32)).collect();
    let streams: Vec<_> = (0..8).map(|_| device.new_stream()).collect::<Result<_>>()?;
    for _ in 0..50 {
        for (array, stream) in arrays.iter_mut().zip(&streams) {
            kernel.launch_on(stream, Grid::new(1, 32).shared_bytes(128), (array, 2))?;
        }
    }
    for array in &arrays {
        assert_eq!(array.to_vec()?, [100; 32]);
    }
    assert_eq!(device.emulation().expect("it is emulated").findings(), []);
    Ok(())
}

/// Four blocks of 64 threads, of which each reads one number and writes another.
#[test]
fn a_device_tells_how_much_it_has_checked() {
    let device = device();
    let log = device.emulation().expect("it is emulated");
    // SAFETY: each thread accesses its own elements of two arrays of 256.
    let kernel = unsafe { Kernel::<(In<f32>, Out<f32>)>::new("kernel").cuda(one("copy")) };
    kernel.prepare(&device).unwrap_or_else(|error| panic!("{error}"));
    let (from, mut into) = (SmartArray::<f32, _>::ones(256), SmartArray::uninit(256));
    for _ in 0..3 {
        kernel.launch_on(&device.stream(), Grid::new(4, 64), (&from, &mut into)).expect("queued");
    }
    device.synchronize().expect("there is no defect");
    let checked = log.checked();
    assert_eq!(checked.launches, 3);
    // Each launch also reads its parameters.
    assert!((3 * 2 * 256..3 * 2 * 300).contains(&checked.accesses), "{checked:?}");
    let unchecked = Device::emulated(resident::Emulation::new().prefer_cuda(true));
    kernel.launch_on(&unchecked.stream(), Grid::new(4, 64), (&from, &mut into)).expect("queued");
    unchecked.synchronize().expect("there is no defect");
    let checked = unchecked.emulation().expect("it is emulated").checked();
    let is_asked_for = std::env::var_os("RESIDENT_SANITIZE").is_some();
    assert_eq!(checked.launches, u64::from(is_asked_for));
}

/// One for each line, until an access that must not happen.
#[test]
fn a_launch_has_several_findings_and_its_error_says_how_many() {
    let device = device();
    // SAFETY: the device ends threads before they access what they must not.
    let kernel = unsafe { Kernel::<(InOut<i32>, Out<i32>)>::new("kernel").cuda(one("several")) };
    kernel.prepare(&device).unwrap_or_else(|error| panic!("{error}"));
    let (mut x, mut y) = (SmartArray::<i32, _>::zeros(64), SmartArray::uninit(64));
    kernel.launch_on(&device.stream(), Grid::new(1, 64), (&mut x, &mut y)).expect("queued");
    let text = device.synchronize().expect_err("it has defects").to_string();
    let found = device.emulation().expect("it is emulated").findings();
    let lines = found.iter().map(|one| one.line.as_ref().map_or(0, |line| line.number));
    let kinds: Vec<_> = found.iter().map(|one| one.kind).zip(lines).collect();
    let (race, outside) = (FindingKind::Race, FindingKind::OutOfBounds);
    let first = SOURCE.lines().position(|line| line.ends_with("// first")).expect("it is there");
    let line = first as u32 + 1;
    assert_eq!(kinds, [(race, line), (race, line + 1), (outside, line + 2)], "{found:#?}");
    assert!(text.contains("The launch has 2 more findings"), "{text}");
}

/// Each thread writes beyond the array on a line of its own.
#[test]
fn a_launch_has_sixteen_findings_at_most() {
    let line = |thread| format!("if (threadIdx.x == {thread}) x[64 + {thread}] = 0;\n");
    let lines: String = (0..20).map(line).collect();
    let source = format!("extern \"C\" __global__ void kernel(int *x) {{\n{lines}}}");
    let mut x = SmartArray::<i32, _>::zeros(64);
    let found = check::<(InOut<i32>,)>(source, Grid::new(2, 32), (&mut x,));
    let lines: Vec<_> =
        found.iter().flat_map(|one| one.line.as_ref()).map(|at| at.number).collect();
    assert_eq!(lines, (2..18).collect::<Vec<_>>(), "{found:#?}");
    assert!(found.iter().all(|one| one.kind == FindingKind::OutOfBounds), "{found:#?}");
}

/// A thread that was stopped does not write what others read.
#[test]
fn what_follows_from_a_finding_is_none() {
    let (mut x, mut y) = (SmartArray::<i32, _>::zeros(64), SmartArray::<i32, _>::zeros(64));
    let arguments = (&mut x, &mut y);
    let found = check::<(InOut<i32>, InOut<i32>)>(one("consequence"), Grid::new(1, 64), arguments);
    let kinds: Vec<_> = found.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [FindingKind::OutOfBounds], "{found:#?}");
}

/// It is one of the kernel's own, and fails nothing.
#[test]
fn a_local_variable_that_is_read_too_early_is_noted() {
    let source = r#"
        extern "C" __global__ void kernel(int *x) { x[threadIdx.x] += 1; }
        extern "C" __global__ void unset(int *x) {
            int sum;
            for (int k = 0; k < 4; ++k) sum += x[k]; // here
            x[threadIdx.x] = sum;
        }
    "#;
    let mut x = SmartArray::<i32, _>::zeros(4);
    let found = check::<(InOut<i32>,)>(source, Grid::new(1, 4), (&mut x,));
    assert_eq!(found, []);
    let source = CudaSource::c(source).entry("unset");
    let found = check::<(InOut<i32>,)>(source, Grid::new(1, 1), (&mut x,));
    let [note] = &found[..] else { panic!("{found:?}") };
    assert_eq!((note.kind, note.kind.is_error()), (FindingKind::UninitialisedLocal, false));
    let text = "kernel \"kernel\" reads `sum`, a local variable, before it is written \
                (kernel.cu:5); initialise it";
    assert_eq!(note.to_string(), text);
}
