//! Devices: their number, their properties in both layouts, their attributes; errors; what a
//! version of HIP has not.

use resident_stand_in_hip::Settings;
use support::in_own_process;

use super::api::{get, has, load, ok, text};

/// `hipErrorInvalidValue`, `NoDevice`, `InvalidDevice`, `PeerAccessAlreadyEnabled`.
const INVALID_VALUE: u32 = 1;
const NO_DEVICE: u32 = 100;
const INVALID_DEVICE: u32 = 101;
const ALREADY_ENABLED: u32 = 704;

const DEBIAN: i32 = 50_221_153;

#[test]
fn devices_are_counted_and_described() {
    let hip = in_own_process!(load(Settings::new().devices(2).memory(1 << 20).version(DEBIAN)));
    ok((hip.hipInit)(0));
    assert_eq!(get(|count| (hip.hipGetDeviceCount)(count)), 2);
    assert_eq!(get(|version| (hip.hipRuntimeGetVersion)(version)), DEBIAN);
    assert_eq!(get(|version| (hip.hipDriverGetVersion)(version)), DEBIAN);
    assert_eq!(get(|device| (hip.hipDeviceGet)(device, 1)), 1);
    let mut name = [0_u8; 64];
    // SAFETY: there is room for as many bytes.
    ok(unsafe { (hip.hipDeviceGetName)(name.as_mut_ptr(), 64, 1) });
    assert!(name.starts_with(b"Stand-in AMD GPU 1\0"));
    let attribute = |number| get(|value| (hip.hipDeviceGetAttribute)(value, number, 0));
    // Threads of a wavefront, threads of a block, shared memory, versions, pools.
    let known = [87, 56, 74, 23, 61, 88].map(attribute);
    assert_eq!(known, [64, 1024, 64 << 10, 9, 0, 1]);
    assert_eq!((hip.hipDeviceGetAttribute)(&mut 0, 4711, 0), INVALID_VALUE);
    assert_eq!((hip.hipDeviceGetAttribute)(&mut 0, 87, 2), INVALID_DEVICE);
    assert_eq!((hip.hipSetDevice)(2), INVALID_DEVICE);
    ok((hip.hipSetDevice)(1));
    assert_eq!(get(|device| (hip.hipGetDevice)(device)), 1);
    let other = std::thread::spawn(move || get(|device| (hip.hipGetDevice)(device)));
    assert_eq!(other.join().expect("it ends"), 0, "each thread has its own");
}

fn number(structure: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(structure[at..at + 4].try_into().expect("four bytes"))
}

fn starts_with(structure: &[u8], at: usize, text: &[u8]) -> bool {
    structure[at..].starts_with(text)
}

#[test]
fn properties_have_the_layout_of_hip_5() {
    support::own_process!();
    let settings = Settings::new().version(DEBIAN).architecture("gfx1030").memory(1 << 33);
    let hip = load(settings);
    let mut structure = [0xAA_u8; 793];
    ok((hip.hipGetDeviceProperties)(&mut structure, 0));
    assert!(starts_with(&structure, 0, b"Stand-in AMD GPU 0\0"));
    assert!(starts_with(&structure, 256, &(1_u64 << 33).to_ne_bytes()), "totalGlobalMem");
    assert_eq!(number(&structure, 276), 32, "warpSize");
    assert_eq!([number(&structure, 328), number(&structure, 332)], [10, 3], "major, minor");
    assert!(starts_with(&structure, 396, b"gfx1030\0"), "gcnArchName");
    assert_eq!(structure[792], 0xAA, "nothing is written behind it");
    for name in ["hipGetDevicePropertiesR0600", "hipLaunchHostFunc"] {
        assert!(!has(name), "{name} came later");
    }
    let pools = ["hipMemPoolCreate", "hipMallocFromPoolAsync", "hipFreeAsync"];
    assert!(pools.iter().all(|name| has(name)), "5.2 exports them, whatever the GPU supports");
}

#[test]
fn properties_have_the_layout_of_hip_6() {
    in_own_process!(load(Settings::new()));
    // The structure of HIP 6 has 1472 bytes.
    type Properties = extern "C" fn(&mut [u8; 1473], i32) -> u32;
    let properties: Properties = super::api::function("hipGetDevicePropertiesR0600");
    let mut structure = [0xAA_u8; 1473];
    ok(properties(&mut structure, 0));
    assert!(starts_with(&structure, 288, &(1_u64 << 30).to_ne_bytes()), "totalGlobalMem");
    assert_eq!(number(&structure, 308), 64, "warpSize");
    assert!(starts_with(&structure, 1160, b"gfx90a:sramecc+:xnack-\0"), "gcnArchName");
    assert_eq!(structure[1472], 0xAA, "nothing is written behind it");
    assert!(has("hipLaunchHostFunc"));
}

#[test]
fn what_no_version_has_is_absent() {
    in_own_process!(load(Settings::new()));
    let absent = [
        "hipMemcpyBatchAsync",
        "hipMemsetD2D8Async",
        "hipMemsetD2D16Async",
        "hipMemsetD2D32Async",
        "hipKernelGetParamInfo",
        "hipFuncGetParamInfo",
        "hipMemcpy3DPeerAsync",
        "cuInit",
    ];
    assert_eq!(absent.iter().filter(|name| has(name)).count(), 0);
    assert!(has("hipGraphLaunch"), "what the stand-in does not support is there");
}

#[test]
fn without_devices_only_questions_are_answered() {
    let hip = in_own_process!(load(Settings::new().devices(0)));
    let mut number = 7;
    assert_eq!((hip.hipGetDeviceCount)(&mut number), NO_DEVICE);
    assert_eq!(number, 0);
    assert_eq!((hip.hipInit)(0), INVALID_DEVICE);
    assert_eq!((hip.hipSetDevice)(0), INVALID_DEVICE);
    ok((hip.hipRuntimeGetVersion)(&mut number));
    assert_eq!((hip.hipMalloc)(&mut 0, 8), INVALID_DEVICE);
}

#[test]
fn errors_have_names_and_texts() {
    in_own_process!(load(Settings::new()));
    let known = [(0, "hipSuccess"), (1, "hipErrorInvalidValue"), (209, "hipErrorNoBinaryForGpu")];
    for (code, name) in known {
        assert_eq!(text("hipGetErrorName", code), name);
    }
    assert_eq!(
        text("hipGetErrorString", 209),
        "no kernel image is available for execution on \
        the device"
    );
    assert_eq!(text("hipGetErrorName", 4711), "hipErrorUnknown");
}

#[test]
fn the_last_error_is_that_of_the_last_call_of_the_thread() {
    let hip = in_own_process!(load(Settings::new()));
    assert_eq!((hip.hipSetDevice)(9), INVALID_DEVICE);
    assert_eq!((hip.hipPeekAtLastError)(), INVALID_DEVICE);
    assert_eq!((hip.hipGetLastError)(), INVALID_DEVICE);
    assert_eq!((hip.hipGetLastError)(), 0, "it is forgotten");
    assert_eq!((hip.hipSetDevice)(9), INVALID_DEVICE);
    ok((hip.hipSetDevice)(0));
    assert_eq!((hip.hipGetLastError)(), 0, "a success replaces it");
}

#[test]
fn peers_are_enabled_for_the_current_device() {
    let hip = in_own_process!(load(Settings::new().devices(2)));
    assert_eq!(get(|can| (hip.hipDeviceCanAccessPeer)(can, 0, 1)), 1);
    assert_eq!(get(|can| (hip.hipDeviceCanAccessPeer)(can, 0, 0)), 0);
    ok((hip.hipDeviceEnablePeerAccess)(1, 0));
    assert_eq!((hip.hipDeviceEnablePeerAccess)(1, 0), ALREADY_ENABLED);
    assert_eq!((hip.hipDeviceEnablePeerAccess)(0, 0), INVALID_DEVICE);
    assert_eq!((hip.hipDeviceEnablePeerAccess)(1, 1), INVALID_VALUE);
}

#[test]
fn settings_change_once_nothing_is_left() {
    let hip = in_own_process!(load(Settings::new()));
    let (stream, memory) = (hip.stream(), hip.memory(8));
    let fault = resident_stand_in_hip::change(Settings::new().seed(1)).expect_err("in use");
    assert!(fault.contains("in use"), "{fault}");
    ok((hip.hipStreamDestroy)(stream));
    ok((hip.hipFree)(memory));
    resident_stand_in_hip::change(Settings::new().devices(3)).expect("nothing is left");
    assert_eq!(get(|count| (hip.hipGetDeviceCount)(count)), 3);
}
