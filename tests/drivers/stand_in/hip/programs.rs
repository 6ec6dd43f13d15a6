//! Modules, functions and launches.

use std::ffi::c_void;

use resident_stand_in_hip::{
    Access, Described, Kind, Length, Parameter, Settings, code_object, register, take_notes,
};
use support::in_own_process;

use super::api::{at, get, hiprtc, load, ok};

const INVALID_VALUE: u32 = 1;
const INVALID_IMAGE: u32 = 200;
const INVALID_CONFIGURATION: u32 = 9;
const NO_BINARY: u32 = 209;
const INVALID_HANDLE: u32 = 400;
const NOT_FOUND: u32 = 500;
const LAUNCH_FAILED: u32 = 719;

/// Every thread writes one element; `threadIdx` is known without any header.
const SOURCE: &str = r#"
extern "C" __global__ void __launch_bounds__(64)
axpy(float *y, const float *x, float a, unsigned int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"#;

fn pointer<T>(value: &T) -> *const c_void {
    std::ptr::from_ref(value).cast()
}

#[test]
fn a_compiled_kernel_computes() {
    let (hip, compiler) = in_own_process!((load(Settings::new()), hiprtc()));
    let made = compiler.compile(SOURCE, &["--offload-arch=gfx90a", "-O3"], &[]);
    let image = made.outcome.expect(&made.log);
    let stream = hip.stream();
    let x: Vec<f32> = (0..100_u8).map(f32::from).collect();
    let (device_x, device_y) = (hip.upload(&x, stream), hip.upload(&[1_f32; 100], stream));
    let module = hip.module(&image).expect("a module");
    assert_eq!(hip.function(module, "missing"), Err(NOT_FOUND));
    let axpy = hip.function(module, "axpy").expect("a function");
    let (a, n) = (2_f32, 100_u32);
    let values = [pointer(&device_y), pointer(&device_x), pointer(&a), pointer(&n)];
    ok(hip.launch(axpy, [2, 64], stream, &values));
    let expected: Vec<f32> = x.iter().map(|x| 2.0 * x + 1.0).collect();
    assert_eq!(hip.download::<f32>(device_y, 100, stream), expected);
    // The same arguments in one buffer.
    let mut buffer = [device_y.to_ne_bytes(), device_x.to_ne_bytes(), [0; 8]].concat();
    buffer[16..20].copy_from_slice(&(-2_f32).to_ne_bytes());
    buffer[20..].copy_from_slice(&n.to_ne_bytes());
    let len_bytes = buffer.len();
    let extra: [*const c_void; 5] = [
        std::ptr::without_provenance(1),
        buffer.as_ptr().cast(),
        std::ptr::without_provenance(2),
        pointer(&len_bytes),
        std::ptr::without_provenance(3),
    ];
    // SAFETY: the buffer holds the kernel's parameters.
    unsafe {
        let launch = hip.hipModuleLaunchKernel;
        let none = std::ptr::null();
        ok(launch(axpy, 2, 1, 1, 64, 1, 1, 0, stream, none, extra.as_ptr()));
        assert_eq!(
            launch(axpy, 2, 1, 1, 64, 1, 1, 0, stream, values.as_ptr(), extra.as_ptr()),
            INVALID_VALUE,
            "one of both"
        );
    }
    assert_eq!(hip.download::<f32>(device_y, 100, stream), [1.0; 100]);
}

#[test]
fn launches_that_do_not_fit_are_refused() {
    let (hip, compiler) = in_own_process!((load(Settings::new()), hiprtc()));
    let made = compiler.compile(SOURCE, &["--offload-arch=gfx90a"], &[]);
    let module = hip.module(&made.outcome.expect(&made.log)).expect("a module");
    let axpy = hip.function(module, "axpy").expect("a function");
    let (memory, a, n) = (hip.memory(8), 1_f32, 0_u32);
    let values = [pointer(&memory), pointer(&memory), pointer(&a), pointer(&n)];
    let cases = [
        ([0, 1], INVALID_VALUE),
        ([1, 0], INVALID_VALUE),
        ([1, 2048], INVALID_VALUE),
        ([0x7FFF_FFFF, 64], INVALID_CONFIGURATION),
        // The launch bounds say 64.
        ([1, 65], LAUNCH_FAILED),
    ];
    for (shape, code) in cases {
        assert_eq!(hip.launch(axpy, shape, 0, &values), code, "{shape:?}");
    }
    ok(hip.launch(axpy, [1, 64], 0, &values));
    let attribute = |number| get(|value| (hip.hipFuncGetAttribute)(value, number, axpy));
    assert_eq!([attribute(0), attribute(8)], [64, 64 << 10]);
    let (mut grid, mut block) = (0, 0);
    let best = hip.hipModuleOccupancyMaxPotentialBlockSize;
    ok(best(&mut grid, &mut block, axpy, 0, 0));
    assert_eq!(block, 64);
    assert!(grid > 0);
    ok((hip.hipModuleUnload)(module));
    assert_eq!(hip.launch(axpy, [1, 64], 0, &values), INVALID_HANDLE, "it is unloaded");
}

#[test]
fn code_for_another_architecture_is_refused() {
    let hip = in_own_process!(load(Settings::new().architecture("gfx90a:sramecc+:xnack-")));
    let outcome = |target: &str| {
        let image = code_object(target, &[], &[]).expect("a known target");
        hip.module(&image).map(|_| ())
    };
    for target in ["gfx90a", "gfx90a:xnack-", "gfx90a:sramecc+:xnack-"] {
        assert_eq!(outcome(target), Ok(()), "{target}");
    }
    for target in ["gfx1030", "gfx908", "gfx90a:xnack+", "gfx90a:sramecc-"] {
        assert_eq!(outcome(target), Err(NO_BINARY), "{target}");
    }
    let image = code_object("gfx90a", &[], &[]).expect("a known target");
    // SAFETY: the image is a code object, and there are no options.
    let module = get(|module| unsafe {
        let none = std::ptr::null_mut();
        (hip.hipModuleLoadDataEx)(module, image.as_ptr(), 0, none, std::ptr::null_mut())
    });
    assert_ne!(module, 0);
    let notes = take_notes();
    assert!(notes[0].contains("compiled for gfx1030, and the device is gfx90a"), "{notes:?}");
    assert_eq!(hip.module(&[0; 64]), Err(INVALID_IMAGE));
    assert!(code_object("sm_90", &[], &[]).is_err());
}

#[test]
fn a_module_belongs_to_the_device_that_loaded_it() {
    let hip = in_own_process!(load(Settings::new().devices(2)));
    register("noop", &[], |_| Ok(()));
    let described = [Described { name: "noop".into(), parameters: vec![], threads_max: 256 }];
    let image = code_object("gfx90a", &described, &[]).expect("a known target");
    let module = hip.module(&image).expect("a module");
    let noop = hip.function(module, "noop").expect("a function");
    ok(hip.launch(noop, [1, 1], 0, &[]));
    ok((hip.hipSetDevice)(1));
    assert_eq!(hip.launch(noop, [1, 1], 0, &[]), INVALID_HANDLE);
}

#[test]
fn a_host_function_replaces_a_kernel_without_code() {
    let hip = in_own_process!(load(Settings::new()));
    let everything = Parameter::Pointer { access: Access::ReadWrite, length: Length::ToEnd };
    register("increase", &[everything, Parameter::Scalar { len_bytes: 4 }], |launch| {
        let by = launch.scalar::<u32>(1);
        // SAFETY: no other work uses the memory.
        let values = unsafe { launch.slice_mut::<u32>(0) };
        values.iter_mut().for_each(|value| *value += by);
        Ok(())
    });
    let parameters = vec![(8, 8, Kind::Pointer), (4, 4, Kind::Value)];
    let described = |name: &str| Described {
        name: name.into(),
        parameters: parameters.clone(),
        threads_max: 1024,
    };
    let both = [described("increase"), described("unknown")];
    let image = code_object("gfx90a", &both, &[]).expect("a known target");
    let module = hip.module(&image).expect("a module");
    let stream = hip.stream();
    let memory = hip.upload(&[1_u32, 2, 3], stream);
    let by = 10_u32;
    let values = [pointer(&memory), pointer(&by)];
    let increase = hip.function(module, "increase").expect("a function");
    ok(hip.launch(increase, [1, 1], stream, &values));
    assert_eq!(hip.download::<u32>(memory, 3, stream), [11, 12, 13]);
    let unknown = hip.function(module, "unknown").expect("a function");
    assert_eq!(hip.launch(unknown, [1, 1], stream, &values), LAUNCH_FAILED);
    assert!(take_notes().iter().any(|note| note.contains("no host function")), "it says why");
}

#[test]
fn unordered_accesses_are_found() {
    support::own_process!();
    // With a seed, no work runs before the wait, so the two writes meet.
    let hip = load(Settings::new().seed(5));
    let (one, two) = (hip.stream(), hip.stream());
    let memory = hip.upload(&[0_u32; 4], one);
    let values = [5_u32; 4];
    // SAFETY: the memory of the host lives until the wait ends; the race is wanted.
    unsafe {
        ok((hip.hipMemsetD32Async)(memory, 1, 4, one));
        ok((hip.hipMemcpyHtoDAsync)(memory, at(&values), 16, two));
        ok((hip.hipStreamSynchronize)(one));
        ok((hip.hipStreamSynchronize)(two));
    }
    let hazards = resident_stand_in_hip::take_hazards();
    assert!(!hazards.is_empty(), "the second write waits for nothing");
}
