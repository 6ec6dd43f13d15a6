//! Elements that one launch leaves out of its `Out` and another launch reads.

use resident::emulation::{Finding, FindingKind};
use resident::ndarray::{Array2, Ix1, Ix2, s};
use resident::{
    Arguments, CudaSource, Device, DeviceArray, Emulation, Error, Grid, In, InOut, Kernel,
    MappedArray, Out, PinnedArray, Result, Signature, SmartArray, ops,
};
use support::own_process;
use support::test_name;

/// `fill` writes the elements of `out` below `end`; the others do what their names say.
const SOURCE: &str = r#"
    extern "C" __global__ void fill(float *out, int end) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < end) out[i] = i;
    }
    extern "C" __global__ void copy(const float *in, float *out) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        out[i] = in[i];
    }
    extern "C" __global__ void add(float *x) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        x[i] += 1;
    }
    extern "C" __global__ void complete(float *x, int from) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= from) x[i] = 1;
        else x[i] += 1;
    }
    extern "C" __global__ void columns(resident::View2<float> out, int end) {
        int i = threadIdx.x;
        for (int column = 0; column < end; ++column) out(i, column) = i;
    }
    struct Padded { double x; char c; };
    extern "C" __global__ void by_field(Padded *out) {
        out[threadIdx.x].x = 1;
        out[threadIdx.x].c = 2;
    }
    extern "C" __global__ void whole(const Padded *in, Padded *out) {
        out[threadIdx.x] = in[threadIdx.x];
    }
"#;

const LEN: usize = 64;

/// A device that checks kernels, and the kernels; another device, which checks none.
struct Checks {
    device: Device,
    source: CudaSource,
    other: Device,
}

impl Checks {
    fn new() -> Self {
        let other = Device::emulated(Emulation::new());
        let checks = Self { device: crate::device(), source: CudaSource::c(SOURCE), other };
        // The first kernel names the code, which all tests share.
        let first = checks.kernel::<(InOut<f32>,)>("add").prepare(&checks.device);
        first.unwrap_or_else(|error| panic!("{error}"));
        checks
    }

    fn kernel<S: Signature>(&self, name: &str) -> Kernel<S> {
        // SAFETY: the device ends threads before they access what they must not.
        unsafe { Kernel::new(name).cuda(self.source.clone().entry(name)) }
    }

    fn run<S: Signature>(&self, name: &str, arguments: impl Arguments<S>) -> Result<()> {
        self.run_in(name, Grid::new(2, 32), arguments)
    }

    fn run_in<S: Signature>(&self, name: &str, grid: Grid, args: impl Arguments<S>) -> Result<()> {
        self.kernel::<S>(name).launch_on(&self.device.stream(), grid, args)
    }

    /// Writes all elements but the last four.
    fn fill(&self, x: &mut SmartArray<f32, Ix1>) -> Result<()> {
        self.run::<(Out<f32>, i32)>("fill", (x, LEN as i32 - 4))
    }

    fn copy(&self, x: &SmartArray<f32, Ix1>) -> Result<()> {
        let mut y = SmartArray::uninit(LEN);
        self.run::<(In<f32>, Out<f32>)>("copy", (x, &mut y))
    }

    /// The errors until now, once all work is done.
    fn errors(&self) -> Vec<Finding> {
        let _outcome = self.device.synchronize();
        let all = self.device.emulation().expect("it is emulated").findings();
        all.into_iter().filter(|finding| finding.kind.is_error()).collect()
    }

    fn finds_nothing(&self) {
        assert_eq!(self.errors(), []);
    }

    fn finds(&self, kernel: &str, element: i64) {
        let errors = self.errors();
        let [error] = &errors[..] else { panic!("{errors:#?}") };
        assert_eq!((error.kind, &*error.kernel), (FindingKind::Uninitialised, kernel));
        assert_eq!(error.element, Some(vec![element]));
        assert_eq!(error.left_out_by.as_deref(), Some("fill"));
        let text = error.to_string();
        let part = "which no thread has written since kernel \"fill\" left it out of its `Out`";
        assert!(text.contains(part), "{text}");
    }
}

fn uninit() -> SmartArray<f32, Ix1> {
    SmartArray::uninit(LEN)
}

#[test]
fn a_launch_that_reads_what_another_left_out_is_found() -> Result<()> {
    let checks = Checks::new();
    let mut x = uninit();
    checks.fill(&mut x)?;
    checks.finds_nothing();
    checks.copy(&x)?;
    checks.finds("copy", 60);
    Ok(())
}

#[test]
fn an_update_of_what_another_left_out_is_found() -> Result<()> {
    let checks = Checks::new();
    let mut x = uninit();
    checks.fill(&mut x)?;
    checks.run::<(InOut<f32>,)>("add", (&mut x,))?;
    checks.finds("add", 60);
    Ok(())
}

#[test]
fn what_is_left_out_stays_so_when_others_are_written_or_read() -> Result<()> {
    let checks = Checks::new();
    let mut x = uninit();
    checks.fill(&mut x)?;
    checks.run_in::<(InOut<f32>,)>("add", Grid::new(1, 60), (&mut x,))?;
    assert_eq!(x.slice(s![..60]).to_vec()?[59], 60.0);
    checks.finds_nothing();
    checks.copy(&x)?;
    checks.finds("copy", 60);
    Ok(())
}

#[test]
fn a_device_array_is_checked_too() -> Result<()> {
    let checks = Checks::new();
    let mut x = DeviceArray::<f32, _>::zeros_on(&checks.device.stream(), LEN)?;
    checks.run::<(Out<f32>, i32)>("fill", (&mut x, 60))?;
    let mut y = uninit();
    checks.run::<(In<f32>, Out<f32>)>("copy", (&x, &mut y))?;
    checks.finds("copy", 60);
    Ok(())
}

#[test]
fn a_launch_that_writes_the_rest_ends_it() -> Result<()> {
    let checks = Checks::new();
    let mut x = uninit();
    checks.fill(&mut x)?;
    checks.run::<(InOut<f32>, i32)>("complete", (&mut x, 60))?;
    checks.copy(&x)?;
    checks.run::<(InOut<f32>,)>("add", (&mut x,))?;
    checks.finds_nothing();
    Ok(())
}

#[test]
fn a_host_body_and_operations_end_it() -> Result<()> {
    let checks = Checks::new();
    let mut x = uninit();
    checks.fill(&mut x)?;
    let body = Kernel::<(Out<f32>,)>::new("body").host(|_grid, (x,)| x.fill(2.0));
    body.launch_on(&checks.device.stream(), Grid::new(1, 1), (&mut x,))?;
    checks.copy(&x)?;
    checks.fill(&mut x)?;
    let ones = SmartArray::from(vec![1.0_f32; LEN]);
    ops::copy_on(&checks.device.stream(), &ones, &mut x)?;
    checks.copy(&x)?;
    checks.finds_nothing();
    Ok(())
}

#[test]
fn writes_of_the_host_and_fills_end_it() -> Result<()> {
    let checks = Checks::new();
    let mut x = uninit();
    checks.fill(&mut x)?;
    x.slice_mut(s![60..]).host_overwrite()?.fill(4.0);
    checks.copy(&x)?;
    checks.fill(&mut x)?;
    x.slice_mut(s![60..]).fill(7.0)?;
    checks.copy(&x)?;
    checks.finds_nothing();
    Ok(())
}

#[test]
fn a_copy_within_the_device_passes_on_what_was_left_out() -> Result<()> {
    let checks = Checks::new();
    let mut x = uninit().named("x");
    checks.fill(&mut x)?;
    let (mut y, clone) = (uninit().named("y"), x.try_clone()?);
    y.assign(&x)?;
    checks.finds_nothing();
    let error = y.to_vec().expect_err("the copy has no contents either");
    is_left_out(&error, "\"y\"", "[60]");
    assert!(clone.host().is_err());
    let mut reversed = uninit();
    reversed.assign(&y.slice(s![..;-1]))?;
    let error = reversed.get(3).expect_err("it is one of the last of x");
    is_left_out(&error, "f32[64]", "[3]");
    assert_eq!(reversed.get(4)?, 59.0);
    checks.copy(&y)?;
    checks.finds("copy", 60);
    Ok(())
}

/// That an error says which element of an array `fill` left out, and where it was launched.
fn is_left_out(error: &Error, name: &str, index: &str) {
    let Error::Uninitialised { array, part, left_out_by: Some(launch), .. } = error else {
        panic!("{error}")
    };
    assert!(array.starts_with(name) && part == index, "{error}");
    assert!(launch.starts_with("kernel \"fill\" at ") && launch.contains(file!()), "{error}");
    assert!(error.to_string().contains(&format!("{launch} left out of its `Out`")), "{error}");
}

/// A read of an array by something other than a kernel in CUDA C.
type Read = fn(&Checks, &SmartArray<f32, Ix1>) -> Result<()>;

/// Reads that find out at once.
const READS: [(&str, Read); 10] = [
    ("to_vec", |_, x| x.to_vec().map(drop)),
    ("host", |_, x| x.host().map(drop)),
    ("get", |_, x| x.get(60).map(drop)),
    ("a part", |_, x| x.slice(s![10..;2]).host().map(drop)),
    ("snapshot_on", |checks, x| x.snapshot_on(&checks.device.stream())?.wait().map(drop)),
    ("prefetch_host, then host", |_, x| x.prefetch_host().and_then(|()| x.host().map(drop))),
    ("another device", |checks, x| {
        ops::copy_on(&checks.other.stream(), x, &mut uninit()).map(drop)
    }),
    ("an assignment on another device", |checks, x| uninit().assign_on(&checks.other.stream(), x)),
    ("an operation", |checks, x| {
        let _here = checks.device.enter();
        x.sum().map(drop)
    }),
    ("the host's body", |checks, x| {
        let body = Kernel::<(In<f32>,)>::new("body").host(|_grid, (x,)| assert!(x[0] >= 0.0));
        body.launch_on(&checks.device.stream(), Grid::new(1, 1), (x,))
    }),
];

#[test]
fn no_other_reader_gets_what_a_launch_left_out() -> Result<()> {
    let checks = Checks::new();
    for (name, read) in READS {
        let mut x = uninit().named("x");
        checks.fill(&mut x)?;
        match read(&checks, &x) {
            Err(error) => is_left_out(&error, "\"x\"", "[60]"),
            Ok(()) => panic!("{name} reads what was never written"),
        }
        assert_eq!(x.slice(s![..60]).host()?[59], 59.0, "{name}");
        x.slice_mut(s![60..]).host_overwrite()?.fill(7.0);
        read(&checks, &x)?;
        assert_eq!(x.to_vec()?[58..62], [58.0, 59.0, 7.0, 7.0], "{name}");
        let _reported_above = checks.device.synchronize();
    }
    checks.finds_nothing();
    Ok(())
}

/// Calls that would both read and write leave the array as it is.
#[test]
fn an_update_that_is_refused_loses_nothing() -> Result<()> {
    let checks = Checks::new();
    let mut x = uninit().named("x");
    checks.fill(&mut x)?;
    let body = Kernel::<(InOut<f32>,)>::new("body").host(|_grid, (x,)| x[0] = 2.0);
    for device in [&checks.device, &checks.other] {
        let error = body.launch_on(&device.stream(), Grid::new(1, 1), (&mut x,));
        is_left_out(&error.expect_err("it reads all elements"), "\"x\"", "[60]");
    }
    is_left_out(&x.host_mut().map(drop).expect_err("it reads too"), "\"x\"", "[60]");
    x.slice_mut(s![60..]).fill(7.0)?;
    body.launch_on(&checks.other.stream(), Grid::new(1, 1), (&mut x,))?;
    assert_eq!((x.get(0)?, x.get(59)?, x.get(63)?), (2.0, 59.0, 7.0));
    Ok(())
}

#[test]
fn a_watch_and_copies_of_device_arrays_are_refused_too() -> Result<()> {
    let checks = Checks::new();
    let mut x = uninit().named("x");
    let watch = x.watch()?;
    checks.fill(&mut x)?;
    checks.finds_nothing();
    is_left_out(&watch.changed().map(drop).expect_err("a state is a read"), "\"x\"", "[60]");
    let mut x = DeviceArray::<f32, _>::zeros_on(&checks.device.stream(), LEN)?.named("x");
    checks.run::<(Out<f32>, i32)>("fill", (&mut x, 60))?;
    is_left_out(&x.copy_to_host().expect_err("a copy is a read"), "\"x\"", "[60]");
    let mut pinned = PinnedArray::<f32, _>::zeros(LEN)?;
    is_left_out(&x.copy_to_pinned(&mut pinned).expect_err("also to that"), "\"x\"", "[60]");
    let mut other = DeviceArray::<f32, _>::zeros_on(&checks.other.stream(), LEN)?;
    is_left_out(&other.copy_from_device(&x).expect_err("nor there"), "\"x\"", "[60]");
    assert_eq!(other.copy_to_host()?[60], 0.0);
    assert_eq!(x.slice(s![..60]).copy_to_host()?[59], 59.0);
    x.slice_mut(s![60..]).fill(7.0)?;
    assert_eq!(x.copy_to_host()?[60], 7.0);
    Ok(())
}

#[test]
fn freed_memory_forgets_what_was_left_out() -> Result<()> {
    let checks = Checks::new();
    for _ in 0..3 {
        let mut x = uninit();
        checks.fill(&mut x)?;
        drop(x);
        checks.device.synchronize()?;
        let y = SmartArray::from(vec![1.0_f32; LEN]);
        checks.copy(&y)?;
    }
    checks.finds_nothing();
    Ok(())
}

#[test]
fn a_launch_that_overwrites_all_ends_it() -> Result<()> {
    let checks = Checks::new();
    let mut x = uninit();
    checks.fill(&mut x)?;
    checks.run::<(Out<f32>, i32)>("fill", (&mut x, LEN as i32))?;
    checks.copy(&x)?;
    checks.finds_nothing();
    Ok(())
}

#[test]
fn parts_of_a_table_are_told_apart() -> Result<()> {
    let checks = Checks::new();
    let mut table = SmartArray::from(Array2::<f32>::ones((32, 6)));
    let mut part = table.slice_mut(s![.., ..;2]);
    checks.run_in::<(Out<f32, Ix2>, i32)>("columns", Grid::new(1, 32), (&mut part, 2))?;
    let others = table.slice(s![.., 1..;2]);
    let mut copies = SmartArray::<f32, _>::uninit((32, 3));
    ops::copy_on(&checks.device.stream(), &others, &mut copies)?;
    let read = r#"
        extern "C" __global__ void read(resident::View2<const float> x, float *sums, int end) {
            float sum = 0;
            for (int column = 0; column < end; ++column) sum += x(threadIdx.x, column);
            sums[threadIdx.x] = sum;
        }
    "#;
    // SAFETY: the device ends threads before they access what they must not.
    let read = unsafe { Kernel::<(In<f32, Ix2>, Out<f32>, i32)>::new("read").cuda(read) };
    let mut sums = SmartArray::uninit(32);
    let stream = checks.device.stream();
    read.launch_on(&stream, Grid::new(1, 32), (&table, &mut sums, 4))?;
    checks.finds_nothing();
    read.launch_on(&stream, Grid::new(1, 32), (&table, &mut sums, 5))?;
    let errors = checks.errors();
    let found = errors.first().map(|error| (error.kind, error.element.clone()));
    assert_eq!(found, Some((FindingKind::Uninitialised, Some(vec![0, 4]))));
    Ok(())
}

#[test]
fn padding_of_records_is_not_left_out() -> Result<()> {
    let checks = Checks::new();
    let grid = Grid::new(1, 16);
    let (mut x, mut y) = (SmartArray::<[u64; 2], _>::uninit(16), SmartArray::uninit(16));
    checks.run_in::<(Out<[u64; 2]>,)>("by_field", grid, (&mut x,))?;
    checks.run_in::<(In<[u64; 2]>, Out<[u64; 2]>)>("whole", grid, (&x, &mut y))?;
    checks.run_in::<(In<[u64; 2]>, Out<[u64; 2]>)>("whole", grid, (&y, &mut x))?;
    checks.finds_nothing();
    Ok(())
}

#[test]
fn memory_that_the_host_accesses_in_place_is_not_checked() -> Result<()> {
    let checks = Checks::new();
    let _here = checks.device.enter();
    let mut x = MappedArray::<f32, _>::zeros(LEN)?;
    checks.run::<(Out<f32>, i32)>("fill", (&mut x, 60))?;
    x.host_mut()?[61] = 4.0;
    let mut y = uninit();
    checks.run::<(In<f32>, Out<f32>)>("copy", (&x, &mut y))?;
    checks.finds_nothing();
    Ok(())
}

#[test]
#[ignore = "needs a variable: run in processes of its own by the test below"]
fn fills_on_the_embedded_device() -> Result<()> {
    let checks = Checks { device: Device::cpu(), ..Checks::new() };
    for _ in 0..2 {
        let mut x = uninit().named("x");
        checks.fill(&mut x)?;
        checks.device.synchronize()?;
        is_left_out(&x.to_vec().expect_err("it is not whole"), "\"x\"", "[60]");
    }
    Ok(())
}

#[test]
fn a_note_is_printed_once_if_nothing_else_wants_it() {
    let test = test_name!(fills_on_the_embedded_device);
    for (checks, count) in [("1", 1), ("off", 0)] {
        let output = own_process::run(test, &[("RESIDENT_SANITIZE", checks)]);
        let text = String::from_utf8_lossy(&output.stderr);
        let is_note =
            |line: &&str| line.starts_with("resident: note: kernel \"fill\" leaves unwritten");
        assert_eq!(text.lines().filter(is_note).count(), count, "{text}");
        assert_eq!(output.status.success(), count == 1, "{text}");
    }
}

#[test]
fn a_device_that_checks_nothing_finds_nothing() -> Result<()> {
    let checks = Checks::new();
    let plain = Checks { device: checks.other.clone(), ..checks };
    let mut x = uninit();
    plain.fill(&mut x)?;
    plain.copy(&x)?;
    plain.finds_nothing();
    Ok(())
}

/// Other code keeps no account of contents.
#[cfg(feature = "dlpack")]
#[test]
fn a_tensor_of_what_a_launch_left_out_is_refused() -> Result<()> {
    use resident::ReadOnlyDeviceArray;

    let checks = Checks::new();
    let mut x = DeviceArray::<f32, _>::zeros_on(&checks.device.stream(), LEN)?.named("x");
    checks.run::<(Out<f32>, i32)>("fill", (&mut x, 60))?;
    let x = ReadOnlyDeviceArray::from(x);
    is_left_out(&x.to_dlpack().map(drop).expect_err("it is not whole"), "\"x\"", "[60]");
    let mut x = x.into_device_array().expect("the only handle");
    x.slice_mut(s![60..]).fill(7.0)?;
    drop(ReadOnlyDeviceArray::from(x).to_dlpack()?);
    Ok(())
}
