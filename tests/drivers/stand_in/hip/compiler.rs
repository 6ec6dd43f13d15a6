//! hiprtc: its options, its log, its code.

use support::in_own_process;

use super::api::{hiprtc, ok};

const COMPILATION: u32 = 6;
const NOT_VALID: &str = "error 10";

const SCALE: &str = r#"
static_assert(resident::wave_size() == 32, "the library declares it, and warps are those of CUDA");
struct Pair { float first, second; };
template <typename T> __global__ void scale(T *x, T by, Pair, char) { x[threadIdx.x] *= by; }
extern "C" __global__ void __launch_bounds__(64) nothing() {}
"#;

#[test]
fn a_source_becomes_a_code_object() {
    let compiler = in_own_process!(hiprtc());
    let (mut major, mut minor) = (7, 7);
    ok((compiler.hiprtcVersion)(&mut major, &mut minor));
    assert_eq!((major, minor), (9, 0));
    let options = ["--offload-arch=gfx90a:xnack-", "-O3", "-std=c++17", "-ffp-contract=off"];
    let made = compiler.compile(SCALE, &options, &["scale<float>", "&nothing"]);
    let image = made.outcome.expect(&made.log);
    assert_eq!(made.log, "");
    assert_eq!(made.names, ["_Z5scaleIfEvPT_S0_4Pairc", "nothing"]);
    assert!(image.starts_with(b"\x7fELF\x02\x01\x01\x40\x02"), "AMD HSA, version 2");
    assert_eq!(image[18..20], [224, 0], "EM_AMDGPU");
    assert_eq!(image[48..52], 0x63f_u32.to_le_bytes(), "gfx90a, XNACK off, any SRAMECC");
}

#[test]
fn wrong_options_are_refused_as_by_clang() {
    let compiler = in_own_process!(hiprtc());
    let cases: [(&[&str], &str); 6] = [
        (&[], "Please provide architecture"),
        (&["--gpu-architecture=sm_90"], "invalid target ID 'sm_90'"),
        (&["--offload-arch=gfx1030:xnack+"], "invalid target ID 'gfx1030:xnack+'"),
        (&["--offload-arch=gfx90a", "--fmad=false"], "unsupported option '--fmad=false'"),
        (&["--offload-arch=gfx90a", "-fmad=true"], "unknown argument: '-fmad=true'"),
        (&["--offload-arch=gfx90a", "--offload-arch=gfx1030"], "multiple output files"),
    ];
    for (options, words) in cases {
        let made = compiler.compile(SCALE, options, &["scale<float>"]);
        assert_eq!(made.outcome, Err(COMPILATION), "{options:?}");
        assert!(made.log.contains(words), "{options:?}: {}", made.log);
        assert_eq!(made.names, [NOT_VALID]);
    }
}

#[test]
fn the_log_names_the_place_of_an_error() {
    let compiler = in_own_process!(hiprtc());
    let source = "__global__ void f(float *x) {\n    x[0] = y;\n}\n";
    let made = compiler.compile(source, &["--offload-arch=gfx90a"], &[]);
    assert_eq!(made.outcome, Err(COMPILATION));
    assert!(made.log.starts_with("source.cu:2:12: error: "), "{}", made.log);
    assert!(made.log.ends_with("1 error generated when compiling for gfx90a.\n"), "{}", made.log);
}

#[test]
fn macros_and_the_rounding_of_products_follow_the_options() {
    let compiler = in_own_process!(hiprtc());
    let source = "#if WIDTH != 4\n#error another width\n#endif\n";
    for (options, is_right) in [(["-DWIDTH=4", "-w"], true), (["-D", "WIDTH=5"], false)] {
        let all: Vec<&str> = ["--offload-arch=gfx90a"].into_iter().chain(options).collect();
        let made = compiler.compile(source, &all, &[]);
        assert_eq!(made.outcome.is_ok(), is_right, "{options:?}: {}", made.log);
    }
    assert_eq!(resident_stand_in_hiprtc::compilations(), 2);
}
