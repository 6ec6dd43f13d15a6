//! NVRTC's options in the spelling of clang, which hiprtc understands. What clang has no word for,
//! and only changes speed, is left out; everything else is passed on, and clang names it if it does
//! not know it.

use std::ffi::CStr;

/// What `#include <cuda_bf16.h>` brings to hiprtc.
pub(super) const BF16: &CStr = {
    let text = concat!(include_str!("cuda_bf16_of_amd.h"), "\0");
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the header has no zero byte"),
    }
};

/// hiprtc's option for the architecture.
pub(super) const ARCHITECTURE: &str = "--offload-arch=";

/// The architecture that the options name for AMD GPUs: the last one wins.
pub(super) fn architecture(options: &[String]) -> Option<&str> {
    options.iter().rev().find_map(|option| option.trim().strip_prefix(ARCHITECTURE))
}

/// Why an option cannot be used, if there is one. hiprtc takes it, and the library's device code
/// would go on to count by wavefronts of the usual size.
pub(super) fn refused(options: &[String]) -> Option<String> {
    let mut options = options.iter().map(|option| option.trim());
    let option = options.find(|option| option.ends_with("wavefrontsize64"))?;
    Some(format!(
        "the option `{option}` changes the number of lanes of a wavefront, and \
         `resident::wave_size()` is that of the architecture, as for HIP itself; leave it out"
    ))
}

/// NVRTC's options that take a value, which may be the next option.
const WITH_VALUE: &str = "
    -arch --gpu-architecture -fmad --fmad -std --std -ftz --ftz -prec-div --prec-div -prec-sqrt
    --prec-sqrt -maxrregcount --maxrregcount -D --define-macro -U --undefine-macro -I --include-path
    -include --pre-include
";

/// The options as hiprtc takes them.
pub(super) fn translated(options: &[String]) -> Vec<String> {
    let mut translated = Vec::new();
    let mut is_precise = [None; 2];
    let mut options = options.iter().map(|option| option.trim());
    while let Some(option) = options.next() {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None if WITH_VALUE.split_whitespace().any(|known| known == option) => {
                (option, options.next())
            }
            None => (option, None),
        };
        let name = name.trim_start_matches('-');
        match name {
            "prec-div" => is_precise[0] = Some(value != Some("false")),
            "prec-sqrt" => is_precise[1] = Some(value != Some("false")),
            _ => translated.extend(translate(option, name, value)),
        }
    }
    // One option of clang's is for both. It must not make imprecise what is to be precise.
    if is_precise.contains(&Some(false)) && !is_precise.contains(&Some(true)) {
        translated.push("-fno-hip-fp32-correctly-rounded-divide-sqrt".to_owned());
    }
    translated
}

/// One option: its text, its name without dashes, and its value.
fn translate(option: &str, name: &str, value: Option<&str>) -> Option<String> {
    let value_of = |prefix: &str| value.map(|value| format!("{prefix}{value}"));
    let switch =
        |on: &str, off: &str| Some(if value == Some("false") { off } else { on }.to_owned());
    match name {
        "define-macro" | "D" => value_of("-D"),
        "undefine-macro" | "U" => value_of("-U"),
        "include-path" | "I" => value_of("-I"),
        // Two options; hiprtc splits none, so the name is joined to it.
        "pre-include" | "include" => value_of("-include"),
        "std" => value_of("-std="),
        "fmad" => switch("-ffp-contract=fast", "-ffp-contract=off"),
        "use_fast_math" => Some("-ffast-math".to_owned()),
        "ftz" => switch("-fgpu-flush-denormals-to-zero", "-fno-gpu-flush-denormals-to-zero"),
        "device-debug" | "G" => Some("-g".to_owned()),
        "generate-line-info" | "lineinfo" => Some("-gline-tables-only".to_owned()),
        "device-as-default-execution-space"
        | "default-device"
        | "restrict"
        | "maxrregcount"
        | "extra-device-vectorization"
        | "extensible-whole-program"
        | "split-compile" => None,
        // An architecture of another vendor.
        "arch" | "gpu-architecture" if !value.is_some_and(|value| value.starts_with("gfx")) => None,
        "arch" | "gpu-architecture" => value_of(ARCHITECTURE),
        _ => Some(option.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{architecture, refused, translated};

    fn of(words: &[&str]) -> String {
        let options: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        translated(&options).join(" ")
    }

    #[test]
    fn each_of_nvrtcs_options_has_clangs_spelling() {
        for (words, expected) in [
            (&["--define-macro=N=3", "-DM=4", "-D", "K=5"][..], "-DN=3 -DM=4 -DK=5"),
            (&["--include-path=here", "-I", "there"], "-Ihere -Ithere"),
            (&["--fmad=false"], "-ffp-contract=off"),
            (&["-fmad", "true"], "-ffp-contract=fast"),
            (&["--std=c++20"], "-std=c++20"),
            (&["-use_fast_math"], "-ffast-math"),
            (&["--ftz=true", "--prec-div=true"], "-fgpu-flush-denormals-to-zero"),
            (&["--prec-sqrt=false"], "-fno-hip-fp32-correctly-rounded-divide-sqrt"),
            (&["--prec-div=false", "-prec-sqrt", "true"], ""),
            (&["-prec-div=true", "--prec-sqrt=false", "-w"], "-w"),
            (
                &["-prec-div=false", "-w", "--prec-sqrt=false"],
                "-w -fno-hip-fp32-correctly-rounded-divide-sqrt",
            ),
            (&["-arch=sm_90", "--gpu-architecture", "compute_80"], ""),
            (&["-arch=gfx90a"], "--offload-arch=gfx90a"),
            (&["--maxrregcount", "32", "-G"], "-g"),
            (&["-O2", "-mllvm", "--no-such-option"], "-O2 -mllvm --no-such-option"),
            (&["--undefine-macro=N", "-U", "M", "--undefine-macro", "K"], "-UN -UM -UK"),
            (&["--include-path", "here", "-I=there"], "-Ihere -Ithere"),
            (&["--pre-include=a.h", "-include", "b.h"], "-includea.h -includeb.h"),
            (&["--pre-include", "a.h", "-include=b.h"], "-includea.h -includeb.h"),
            (&["-std", "c++20", "--std", "c++17"], "-std=c++20 -std=c++17"),
            (&["--fmad", "false", "-fmad=true"], "-ffp-contract=off -ffp-contract=fast"),
            (&["-ftz", "false"], "-fno-gpu-flush-denormals-to-zero"),
            (&["--ftz", "true", "-D", "N"], "-fgpu-flush-denormals-to-zero -DN"),
            (&["--device-debug", "--generate-line-info"], "-g -gline-tables-only"),
            (&["-lineinfo"], "-gline-tables-only"),
            (&["-prec-div", "false"], "-fno-hip-fp32-correctly-rounded-divide-sqrt"),
            (&["--prec-div", "false", "--prec-sqrt=true"], ""),
            (&["-maxrregcount=8", "-maxrregcount", "8", "-w"], "-w"),
            (&["--device-as-default-execution-space", "-default-device", "-w"], "-w"),
            (&["--restrict", "--extra-device-vectorization", "-w"], "-w"),
            (&["--extensible-whole-program", "--split-compile=4", "-w"], "-w"),
            (&["--gpu-architecture=gfx906"], "--offload-arch=gfx906"),
            (&["-arch", "gfx1100"], "--offload-arch=gfx1100"),
        ] {
            assert_eq!(of(words), expected, "{words:?}");
        }
    }

    #[test]
    fn another_number_of_lanes_is_refused() {
        for option in ["-mwavefrontsize64", " -mno-wavefrontsize64 "] {
            let reason = refused(&["-O2".to_owned(), option.to_owned()]).expect("it is refused");
            assert!(reason.contains(&format!("the option `{}`", option.trim())), "{reason}");
        }
        assert_eq!(refused(&["-O2".to_owned(), "-DN=wavefrontsize64s".to_owned()]), None);
    }

    #[test]
    fn the_last_architecture_wins() {
        let options = ["--offload-arch=gfx906", " --offload-arch=gfx90a "].map(str::to_owned);
        assert_eq!(architecture(&options), Some("gfx90a"));
        assert_eq!(architecture(&["-arch=sm_90".to_owned()]), None);
    }
}
