//! Kernels with CUDA bodies on the stand-in driver, from source to result. The bodies are PTX,
//! which the driver loads directly, and host functions compute the results. `sources.rs` tests
//! NVRTC on the CUDA C.

use resident::launch::Slice;
use resident::ndarray::{Array2, Ix2, IxDyn, s};
use resident::{CudaSource, Device, Error, Grid, In, InOut, Kernel, Out, SmartArray};
use resident_stand_in::{Access, Fault, Launch, Length, Parameter, Settings};
use support::{assert_says, in_own_process, own_process};

/// Kernels of one source, as NVRTC compiles them: one with a scalar and flat arrays (slices), one
/// with sized arrays (views), and others for the tests of mismatches.
const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry axpy(
	.param .f32 axpy_param_0,
	.param .u64 axpy_param_1,
	.param .u64 axpy_param_2
)
{ ret; }
.visible .entry transpose(
	.param .align 8 .b8 transpose_param_0[40],
	.param .align 8 .b8 transpose_param_1[40]
)
{ ret; }
.visible .entry where_am_i(
	.param .u64 where_am_i_param_0
)
{ ret; }
.visible .entry wrong(
	.param .f32 wrong_param_0,
	.param .u64 wrong_param_1
)
{ ret; }
";

fn gpu() -> Device {
    resident_stand_in::load(Settings::new()).expect("the stand-in driver loads");
    register();
    let device = Device::cuda(0).expect("the stand-in driver has a device");
    resident_stand_in::take_calls();
    device
}

fn register() {
    let memory = |access| Parameter::Pointer { access, length: Length::ToEnd };
    let view = |access| Parameter::View { dimensions: 2, element_bytes: 4, access };
    let scalar = Parameter::Scalar { len_bytes: 4 };
    resident_stand_in::register(
        "axpy",
        &[scalar, memory(Access::Read), memory(Access::ReadWrite)],
        axpy,
    );
    resident_stand_in::register("transpose", &[view(Access::Read), view(Access::Write)], transpose);
    resident_stand_in::register("where_am_i", &[memory(Access::Write)], where_am_i);
    let block = Parameter::Scalar { len_bytes: 256 };
    resident_stand_in::register("unpack", &[scalar, block, memory(Access::Write)], unpack);
    let length = Parameter::Scalar { len_bytes: 8 };
    let (read, written) = (memory(Access::Read), memory(Access::Write));
    let escape_parameters = [scalar, read, length, read, length, written, length];
    resident_stand_in::register("escape", &escape_parameters, escape);
}

fn axpy(launch: &Launch<'_>) -> Result<(), Fault> {
    let a: f32 = launch.scalar(0);
    // SAFETY: this kernel reads the array, and the library orders other uses of it.
    let x = unsafe { launch.slice::<f32>(1) };
    // SAFETY: as above; this is another array.
    let y = unsafe { launch.slice_mut::<f32>(2) };
    y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
    Ok(())
}

fn transpose(launch: &Launch<'_>) -> Result<(), Fault> {
    let (a, b) = (launch.view(0), launch.view(1));
    let (rows, columns) = (a.shape[0] as usize, a.shape[1] as usize);
    for row in 0..rows {
        for column in 0..columns {
            b.set(column * rows + row, a.get::<f32>(row * columns + column));
        }
    }
    Ok(())
}

/// Writes the blocks, threads and shared bytes of the launch.
fn where_am_i(launch: &Launch<'_>) -> Result<(), Fault> {
    // SAFETY: this is the only array of the kernel.
    let seen = unsafe { launch.slice_mut::<u32>(0) };
    let what = [
        launch.grid()[0],
        launch.grid()[1],
        launch.block()[0],
        launch.block()[1],
        launch.shared_bytes(),
    ];
    seen[..5].copy_from_slice(&what);
    Ok(())
}

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(256))]
struct Block([u32; 64]);

/// Writes a number, and the words of a struct that is passed by value.
fn unpack(launch: &Launch<'_>) -> Result<(), Fault> {
    let (number, block) = (launch.scalar::<u32>(0), launch.scalar::<Block>(1));
    // SAFETY: this is the only array of the kernel.
    let out = unsafe { launch.slice_mut::<u32>(2) };
    out[0] = number;
    out[1..65].copy_from_slice(&block.0);
    Ok(())
}

/// Writes the lengths that it gets, and the number.
fn escape(launch: &Launch<'_>) -> Result<(), Fault> {
    // SAFETY: this is the only array that is written.
    let out = unsafe { launch.slice_mut::<u32>(5) };
    let length = |parameter| launch.scalar::<u64>(parameter) as u32;
    out[..4].copy_from_slice(&[launch.scalar(0), length(2), length(4), length(6)]);
    Ok(())
}

type Axpy = Kernel<(f32, In<f32>, InOut<f32>)>;
type Transpose = Kernel<(In<f32, Ix2>, Out<f32, Ix2>)>;

fn axpy_kernel() -> Axpy {
    let kernel =
        Axpy::new("axpy").require("both have one length", |_grid, (_, x, y)| x.len() == y.len());
    // SAFETY: `axpy` above accesses only the elements that both arrays have.
    unsafe { kernel.cuda(CudaSource::ptx(PTX)) }
}

fn transpose_kernel() -> Transpose {
    let turned = |a: &[usize], b: &[usize]| a[0] == b[1] && a[1] == b[0];
    let kernel = Transpose::new("transpose")
        .require("rows and columns change places", move |_grid, (a, b)| {
            turned(a.shape(), b.shape())
        });
    // SAFETY: `transpose` above stays within the shape of `a`; by the requirement `b` has the
    // transposed shape.
    unsafe { kernel.cuda(CudaSource::ptx(PTX)) }
}

fn where_am_i_kernel() -> Kernel<(Out<u32>,)> {
    let kernel = Kernel::<(Out<u32>,)>::new("where_am_i")
        .require("five numbers", |_grid, (seen,)| seen.len() == 5);
    // SAFETY: the kernel writes five numbers, and by the requirement the array has five elements.
    unsafe { kernel.cuda(CudaSource::ptx(PTX)) }
}

/// The number of calls of one driver function among these calls.
fn count(calls: &[resident_stand_in::Call], name: &str) -> usize {
    calls.iter().filter(|call| call.name == name).count()
}

#[test]
fn structs_of_large_alignment_are_parameters() -> resident::Result<()> {
    const UNPACK: &str = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry unpack(\n\
        .param .u32 p0,\n.param .align 256 .b8 p1[256],\n.param .u64 p2\n)\n{\nret;\n}\n";
    let device = in_own_process!(gpu());
    // SAFETY: `unpack` above writes the 65 elements of its array.
    let unpack =
        unsafe { Kernel::<(u32, Block, Out<u32>)>::new("unpack").cuda(CudaSource::ptx(UNPACK)) };
    let (block, mut out) = (Block(std::array::from_fn(|i| i as u32)), SmartArray::uninit(65));
    unpack.launch_on(&device.stream(), Grid::cover(1), (99, block, &mut out))?;
    let expected: Vec<u32> = std::iter::once(99).chain(0..64).collect();
    assert_eq!(out.to_vec()?, expected);
    Ok(())
}

/// What rustc made of the kernel of the guide.
#[test]
fn ptx_of_rust_gets_slices() -> resident::Result<()> {
    let device = in_own_process!(gpu());
    let ptx = include_str!("../../../docs/guide/kernels_in_rust/kernel.ptx");
    type Escape = (u32, Slice<In<f32>>, Slice<In<f32>>, Slice<Out<u32>>);
    // SAFETY: `escape` above writes four elements of the last array, which has more.
    let kernel = unsafe { Kernel::<Escape>::new("escape").cuda(CudaSource::ptx(ptx)) };
    let (x, y) = (SmartArray::<f32, _>::ones(10), SmartArray::<f32, _>::ones((2, 3)));
    let mut out = SmartArray::<u32, _>::uninit(7);
    kernel.launch_on(&device.stream(), Grid::cover(7), (99, &x, &y, &mut out))?;
    assert_eq!(out.to_vec()?[..4], [99, 10, 6, 7]);
    assert_eq!(resident_stand_in::take_notes(), Vec::<String>::new());
    Ok(())
}

#[test]
fn flat_and_sized_parameters_arrive() {
    let device = in_own_process!(gpu());
    let _here = device.enter();
    let x = SmartArray::from(vec![1.0_f32, 2.0, 3.0]);
    let mut y = SmartArray::<f32, _>::ones(3);
    axpy_kernel().launch(Grid::cover(3), (2.0, &x, &mut y)).expect("queued");
    assert_eq!(y.host().expect("the download succeeds").to_vec(), [3.0, 5.0, 7.0]);

    let numbers = Array2::from_shape_fn((4, 6), |(row, column)| (10 * row + column) as f32);
    let a = SmartArray::from(numbers.clone());
    let mut b = SmartArray::<f32, _>::uninit((3, 2));
    let part = s![1..;2, ..;-2];
    transpose_kernel()
        .launch(Grid::cover_2d((3, 2), (8, 32)), (&a.slice(part), &mut b))
        .expect("queued");
    assert_eq!(
        *b.host().expect("the download succeeds"),
        numbers.slice(part).t(),
        "strides, steps and reversed axes"
    );
    assert_eq!(resident_stand_in::take_notes(), Vec::<String>::new());
}

#[test]
fn kernels_of_one_source_share_a_module_which_is_loaded_once() {
    let device = in_own_process!(gpu());
    let source = || CudaSource::ptx(format!("{PTX}// of this test alone"));
    // SAFETY: as in `axpy_kernel`.
    let one = unsafe { Axpy::new("axpy").cuda(source()) };
    // SAFETY: as in `transpose_kernel`; nothing is launched.
    let other = unsafe { Transpose::new("transpose").cuda(source()) };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| one.prepare(&device).expect("it loads"));
            scope.spawn(|| other.prepare(&device).expect("it loads"));
        }
    });
    assert_eq!(count(&resident_stand_in::take_calls(), "cuModuleLoadDataEx"), 1);
    one.clone().prepare(&device).expect("it is loaded");
    assert_eq!(one.attributes(&device).expect("it is loaded").block_threads_max, 1024);
    assert_eq!(resident_stand_in::take_calls(), [], "loaded code makes no driver call");
}

#[test]
fn a_launch_of_what_is_loaded_makes_one_call() {
    let device = in_own_process!(gpu());
    let (kernel, stream) = (axpy_kernel(), device.stream());
    let x = SmartArray::<f32, _>::ones(1000);
    let mut y = SmartArray::<f32, _>::ones(1000);
    kernel.launch_on(&stream, Grid::cover(1000), (2.0, &x, &mut y)).expect("queued");
    resident_stand_in::take_calls();
    kernel.launch_on(&stream, Grid::cover(1000), (2.0, &x, &mut y)).expect("queued");
    let calls = resident_stand_in::take_calls();
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["cuCtxGetCurrent", "cuLaunchKernel"]);
}

#[test]
fn parameters_that_do_not_fit_the_signature_are_listed() {
    let device = in_own_process!(gpu());
    // SAFETY: the kernel does not load.
    let kernel = unsafe { Axpy::new("axpy").cuda(CudaSource::ptx(PTX).entry("wrong")) };
    let error = kernel.prepare(&device).expect_err("two parameters for three");
    let Error::Compile { kernel, device, log, .. } = &error else { panic!("{error}") };
    assert_eq!((&**kernel, &**device), ("\"axpy\"", "cuda:0"));
    assert_says(log, &["compiled are 2 of [4, 8] bytes, the signature has 3 of [4, 8, 8] bytes"]);
    assert!(
        log.ends_with("extern \"C\" __global__ void wrong(float a, const float *x, float *y)"),
        "{log}"
    );
}

#[test]
fn a_missing_entry_is_reported_with_the_existing_ones() {
    let device = in_own_process!(gpu());
    // SAFETY: the kernel does not load.
    let kernel = unsafe { Axpy::new("axpy").cuda(CudaSource::ptx(PTX).entry("missing")) };
    let error = kernel.prepare(&device).expect_err("there is none").to_string();
    assert_says(&error, &["`missing`", "axpy, transpose, where_am_i, wrong"]);
}

#[test]
fn code_that_is_none_is_refused_before_and_by_the_driver() {
    let device = in_own_process!(gpu());
    let cases = [
        (CudaSource::ptx("this is no PTX"), "cannot load this PTX"),
        (CudaSource::ptx("before\0after"), "cannot load this PTX"),
        (CudaSource::ptx(""), "this PTX is an empty text"),
        (
            CudaSource::ptx(PTX).entry("before\0after"),
            "no `__global__` function `before\\u{0}after` in the code",
        ),
        (CudaSource::cubin(*b"this is no cubin"), "neither a cubin nor a fatbin"),
        (
            CudaSource::cubin(*b"\x7FELF\x02\x01 cut off"),
            "its headers do not fit into its 14 bytes",
        ),
        (CudaSource::cubin([]), "its 0 bytes are neither"),
        (CudaSource::file("no/such/file.cu"), "no/such/file.cu cannot be read"),
    ];
    for (source, words) in cases {
        // SAFETY: the kernel does not load.
        let kernel = unsafe { Axpy::new("axpy").cuda(source) };
        let error = kernel.prepare(&device).expect_err("no code");
        assert!(
            matches!(error, Error::Compile { .. }) && error.to_string().contains(words),
            "{error}"
        );
    }
}

#[test]
fn grids_are_checked_against_the_device_before_anything_moves() {
    let device = in_own_process!(gpu());
    let (kernel, stream) = (where_am_i_kernel(), device.stream());
    let mut seen = SmartArray::<u32, _>::zeros(5);
    let cases = [
        (Grid::new(1, 2048), "2048 threads in a block, where 1024 is the most"),
        (Grid::new((1, 70_000), 32), "70000 blocks along y"),
        (Grid::new(1, (1, 1, 128)), "128 threads in a block along z"),
        (
            Grid::new(1, 32).shared_bytes(300 << 10),
            "307200 bytes of dynamic shared memory, where 232448 is the most",
        ),
        (Grid::new(1, (u32::MAX, u32::MAX, u32::MAX)), "18446744073709551615 threads"),
    ];
    for (grid, words) in cases {
        let error = kernel.launch_on(&stream, grid, (&mut seen,)).expect_err("too much");
        assert!(
            matches!(error, Error::Grid { .. }) && error.to_string().contains(words),
            "{error}"
        );
    }
    assert_eq!(count(&resident_stand_in::take_calls(), "cuLaunchKernel"), 0);
    assert_eq!(seen.host().expect("its contents are unchanged").to_vec(), [0; 5]);
}

#[test]
fn more_shared_memory_than_usual_is_asked_for_once() {
    let device = in_own_process!(gpu());
    let (kernel, stream) = (where_am_i_kernel(), device.stream());
    let mut seen = SmartArray::<u32, _>::zeros(5);
    for shared_bytes in [40 << 10, 100 << 10, 64 << 10, 100 << 10] {
        kernel
            .launch_on(&stream, Grid::new(3, 64).shared_bytes(shared_bytes), (&mut seen,))
            .expect("queued");
        assert_eq!(
            seen.host().expect("the download succeeds").to_vec(),
            [3, 1, 64, 1, shared_bytes]
        );
    }
    assert_eq!(count(&resident_stand_in::take_calls(), "cuFuncSetAttribute"), 1);
}

/// The driver stores the limit in the function, which the two kernels share.
#[test]
fn kernels_of_one_function_do_not_take_shared_memory_from_each_other() {
    let device = in_own_process!(gpu());
    let source = || CudaSource::ptx(format!("{PTX}// for two kernels"));
    let kernel = || {
        let kernel = Kernel::<(Out<u32>,)>::new("where_am_i")
            .require("five numbers", |_grid, (seen,)| seen.len() == 5);
        // SAFETY: as in `where_am_i_kernel`.
        unsafe { kernel.cuda(source()) }
    };
    let (large, small, stream) = (kernel(), kernel(), device.stream());
    let mut seen = SmartArray::<u32, _>::zeros(5);
    small.prepare(&device).expect("it loads");
    for (kernel, shared_bytes) in [(&large, 100 << 10), (&small, 64 << 10), (&large, 100 << 10)] {
        kernel
            .launch_on(&stream, Grid::new(3, 64).shared_bytes(shared_bytes), (&mut seen,))
            .expect("the device has enough");
        assert_eq!(
            seen.host().expect("the download succeeds").to_vec(),
            [3, 1, 64, 1, shared_bytes]
        );
    }
    assert_eq!(
        count(&resident_stand_in::take_calls(), "cuFuncSetAttribute"),
        1,
        "the second asks for less"
    );
}

#[test]
fn automatic_blocks_are_the_drivers_choice_which_is_asked_for_once() {
    let device = in_own_process!(gpu());
    let (kernel, stream) = (where_am_i_kernel(), device.stream());
    let mut seen = SmartArray::<u32, _>::zeros(5);
    for len in [100_000_u32, 50_000, 100_001] {
        kernel.launch_on(&stream, Grid::cover(len as usize).auto(), (&mut seen,)).expect("queued");
        let [blocks, _, threads, ..] = seen.host().expect("the download succeeds").to_vec()[..]
        else {
            panic!("five numbers")
        };
        assert!(threads > 256 && blocks == len.div_ceil(threads), "{blocks} blocks of {threads}");
    }
    kernel
        .launch_on(&stream, Grid::cover_2d((100, 1000), (8, 32)).auto(), (&mut seen,))
        .expect("queued");
    let [blocks_x, blocks_y, threads_x, threads_y, _] =
        seen.host().expect("the download succeeds").to_vec()[..]
    else {
        panic!("five numbers")
    };
    assert!(
        threads_x == 32
            && threads_y > 8
            && blocks_x == 32
            && blocks_y == 100_u32.div_ceil(threads_y),
        "as wide, and higher"
    );
    assert_eq!(count(&resident_stand_in::take_calls(), "cuOccupancyMaxPotentialBlockSize"), 1);
}

#[test]
fn requirements_hold_for_the_grid_that_the_device_chose() {
    let device = in_own_process!(gpu());
    let exact = where_am_i_kernel()
        .require("1280 threads", |grid, _| grid.blocks().count() * grid.threads().count() == 1280);
    let mut seen = SmartArray::<u32, _>::zeros(5);
    exact.launch_on(&device.stream(), Grid::cover(1280), (&mut seen,)).expect("five blocks of 256");
    let error = exact
        .launch_on(&device.stream(), Grid::cover(1280).auto(), (&mut seen,))
        .expect_err("two blocks of 1024");
    assert!(matches!(error, Error::Requirement { .. }), "{error}");
}

#[test]
fn an_empty_launch_is_legal_and_launches_nothing() {
    let device = in_own_process!(gpu());
    let mut nothing = SmartArray::<f32, _>::uninit(0);
    let x = SmartArray::<f32, _>::uninit(0);
    for grid in [Grid::cover(0), Grid::cover(0).auto()] {
        axpy_kernel().launch_on(&device.stream(), grid, (1.0, &x, &mut nothing)).expect("legal");
    }
    assert_eq!(count(&resident_stand_in::take_calls(), "cuLaunchKernel"), 0);
}

#[test]
fn what_could_not_be_loaded_is_tried_again() {
    own_process!();
    const OUT_OF_MEMORY: u32 = 2;
    let device = in_own_process!(gpu());
    let source = || CudaSource::ptx(format!("{PTX}// loaded twice"));
    // SAFETY: as in `axpy_kernel`; nothing is launched.
    let kernel = unsafe { Axpy::new("axpy").cuda(source()) };
    for call in ["cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncGetAttribute"] {
        resident_stand_in::fail_nth(call, 1, OUT_OF_MEMORY);
        let error = kernel.prepare(&device).expect_err("a fault");
        assert!(error.to_string().contains(call), "{error}");
    }
    kernel.prepare(&device).expect("it loads");
}

/// A driver that loads code lazily reports its errors when a function is looked up.
#[test]
fn code_that_is_refused_when_it_is_first_needed_is_the_codes_fault() {
    let device = in_own_process!(gpu());
    // SAFETY: as in `axpy_kernel`; nothing is launched.
    let kernel = unsafe { Axpy::new("axpy").cuda(CudaSource::ptx(format!("{PTX}// loaded late"))) };
    let codes = [
        (200, "INVALID_IMAGE"),
        (209, "NO_BINARY_FOR_GPU"),
        (218, "INVALID_PTX"),
        (222, "UNSUPPORTED_PTX_VERSION"),
    ];
    for (code, name) in
        codes.into_iter().chain([(300, "INVALID_SOURCE"), (302, "SHARED_OBJECT_SYMBOL_NOT_FOUND")])
    {
        for call in ["cuModuleGetFunction", "cuFuncGetAttribute"] {
            resident_stand_in::fail_nth(call, 1, code);
            let error = kernel.prepare(&device).expect_err("a fault");
            let Error::Compile { log, .. } = &error else { panic!("{call}, {code}: {error}") };
            assert!(
                log.contains("cannot load this PTX on sm_90") && log.contains(name),
                "{call}: {log}"
            );
        }
    }
    kernel.prepare(&device).expect("it loads");
}

#[test]
fn a_view_of_open_dimensions_takes_what_was_compiled() {
    let device = in_own_process!(gpu());
    let kernel = Kernel::<(In<f32, IxDyn>, Out<f32, Ix2>)>::new("transpose");
    let kernel = kernel.require("as many elements", |_grid, (a, b)| a.len() == b.len());
    // SAFETY: `transpose` above stays within the shape of `a`, which has as many elements as `b`;
    // the test passes transposed shapes.
    let kernel = unsafe { kernel.cuda(CudaSource::ptx(PTX)) };
    let mut b = SmartArray::<f32, _>::uninit((3, 2));
    let flat = SmartArray::from(Array2::<f32>::ones((2, 3)).into_dyn());
    kernel
        .launch_on(&device.stream(), Grid::cover(6), (&flat, &mut b))
        .expect("two dimensions, as compiled");
    assert_eq!(b.host().expect("the download succeeds").sum(), 6.0);
    let deep = SmartArray::from(
        Array2::<f32>::ones((2, 3)).into_shape_with_order((1, 2, 3)).expect("as many").into_dyn(),
    );
    let error = kernel
        .launch_on(&device.stream(), Grid::cover(6), (&deep, &mut b))
        .expect_err("three dimensions")
        .to_string();
    assert!(error.contains("compiled for 2 dimensions and is given an array of 3"), "{error}");
}

#[test]
fn bodies_are_compared_on_copies() {
    let device = in_own_process!(gpu());
    let right =
        axpy_kernel().host(|_grid, (a, x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x));
    let wrong = axpy_kernel()
        .host(|_grid, (a, x, y)| y.iter_mut().zip(x).skip(1).for_each(|(y, x)| *y += a * x + 1.0));
    let x = SmartArray::from(vec![1.0_f32, 2.0, 3.0]).named("x");
    let mut y = SmartArray::<f32, _>::ones(3).named("y");
    assert_eq!(
        right.compare(&device, Grid::cover(3), (2.0, &x, &mut y), 0.0).expect("both run"),
        None
    );
    let difference = wrong
        .compare(&device, Grid::cover(3), (2.0, &x, &mut y), 0.01)
        .expect("both run")
        .expect("they differ");
    assert_eq!((difference.parameter, &*difference.index, difference.count), (2, &[0][..], 3));
    let text = difference.to_string();
    let said = "kernel \"axpy\" gives \"y\" (parameter 2) two values at [0]: 1 by its host body, 3 \
                on cuda:0; 3 of 3";
    assert_says(&text, &[said]);
    assert_eq!(
        y.host().expect("its contents are unchanged").to_vec(),
        [1.0; 3],
        "the arguments are unchanged"
    );
}

#[test]
fn a_kernel_without_a_cuda_body_says_so() {
    let device = in_own_process!(gpu());
    let host_only = Kernel::<(InOut<f32>,)>::new("host only").host(|_grid, _| ());
    let error = host_only.prepare(&device).expect_err("no body").to_string();
    assert_says(&error, &["\"host only\" has none for cuda:0; add one with `.cuda(..)`"]);
    let bare = Kernel::<(InOut<f32>,)>::new("bare");
    let error = bare.prepare(&Device::cpu()).expect_err("no body").to_string();
    assert!(error.contains("add one with `.host(..)` or `.cuda(..)`"), "{error}");
}
