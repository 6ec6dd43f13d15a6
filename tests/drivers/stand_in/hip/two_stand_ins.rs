//! Both stand-ins in one process.

#![cfg(feature = "cuda")]

use resident::cudarc::driver::{CudaContext, DevicePtr};
use resident_stand_in_hip::Settings;
use support::in_own_process;

use super::api::{get, load, ok};

#[test]
fn each_has_its_own_devices_record_and_faults() {
    let hip = in_own_process!(load(Settings::new().devices(3).memory(1 << 20)));
    resident_stand_in::load(resident_stand_in::Settings::new().devices(2)).expect("it loads");
    resident_stand_in_hip::fail_nth("hipMalloc", 2, 2);
    let context = CudaContext::new(1).expect("a CUDA device");
    let stream = context.new_stream().expect("a stream");
    let numbers = stream.clone_htod(&[1_u32, 2, 3]).expect("a copy");
    let hip_stream = hip.stream();
    let memory = hip.upload(&[4_u32, 5], hip_stream);
    assert_eq!(CudaContext::device_count(), Ok(2));
    assert_eq!(get(|count| (hip.hipGetDeviceCount)(count)), 3);
    assert_eq!(stream.clone_dtoh(&numbers).expect("a copy"), [1, 2, 3]);
    assert_eq!(hip.download::<u32>(memory, 2, hip_stream), [4, 5]);
    assert_eq!((resident_stand_in::memory_in_use(1), resident_stand_in::memory_in_use(0)), (12, 0));
    assert_eq!(resident_stand_in_hip::memory_in_use(0), 8);
    let is_of_hip = |name: &str| name.starts_with("hip");
    assert!(resident_stand_in_hip::calls().iter().all(|call| is_of_hip(&call.name)));
    assert!(!resident_stand_in::calls().iter().any(|call| is_of_hip(&call.name)));
    // An address of the other kind of device is none.
    let foreign = numbers.device_ptr(&stream).0;
    assert_eq!((hip.hipFree)(foreign), 1);
    let mut address = 0;
    assert_eq!((hip.hipMalloc)(&mut address, 8), 2, "the fault was still there");
    ok((hip.hipFree)(memory));
}

#[test]
fn both_compilers_compile() {
    in_own_process!(resident_stand_in_nvrtc::load().expect("it loads"));
    let compiler = super::api::hiprtc();
    let source = "extern \"C\" __global__ void f(float *x) { x[0] = 1; }";
    let made = compiler.compile(source, &["--offload-arch=gfx1030"], &[]);
    assert!(made.outcome.is_ok(), "{}", made.log);
    let ptx = resident::cudarc::nvrtc::compile_ptx(source).expect("PTX");
    assert!(ptx.to_src().contains(".entry f("));
    let counts =
        (resident_stand_in_nvrtc::compilations(), resident_stand_in_hiprtc::compilations());
    assert_eq!(counts, (1, 1));
}
