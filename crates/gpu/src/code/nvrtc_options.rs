//! The user's options that decide which code NVRTC produces. An option's value follows `=` or is
//! the next option; NVRTC ignores spaces around each.

/// The spellings of the option for the architecture.
const ARCHITECTURE: [&str; 2] = ["-arch", "--gpu-architecture"];

/// Options whose output the driver cannot load: code for a later linker, code for OptiX.
const NO_CODE: [&str; 4] = ["-dlto", "--dlink-time-opt", "-optix-ir", "--optix-ir"];

/// The architecture that the options name: the last one wins.
pub(super) fn architecture(options: &[String]) -> Option<&str> {
    let index = options.iter().rposition(|option| ARCHITECTURE.contains(&name(option)))?;
    let value = match options[index].split_once('=') {
        Some((_, value)) => value,
        // The compiler reports a missing value.
        None => options.get(index + 1).map_or("", String::as_str),
    };
    Some(value.trim())
}

/// The first of the options that make NVRTC produce output that the driver cannot load.
pub(super) fn without_code(options: &[String]) -> Option<&str> {
    options.iter().map(|option| option.trim()).find(|option| NO_CODE.contains(&name(option)))
}

/// The name of an option, without the value that follows `=`.
fn name(option: &str) -> &str {
    option.split_once('=').map_or(option, |(name, _)| name).trim()
}

#[cfg(test)]
mod tests {
    use super::{architecture, without_code};

    fn options(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn an_architecture_is_recognised_in_all_spellings() {
        let cases: [(&[&str], _); 9] = [
            (&["-arch=compute_90"], Some("compute_90")),
            (&["--gpu-architecture=sm_90a"], Some("sm_90a")),
            (&["-arch", "sm_80"], Some("sm_80")),
            (&["--fmad=false", "--gpu-architecture", "compute_80", "-G"], Some("compute_80")),
            (&[" -arch=sm_90 "], Some("sm_90")),
            (&["-arch=sm_90", "-arch", "sm_80"], Some("sm_80")),
            (&["-arch"], Some("")),
            (
                &[
                    "--use_fast_math",
                    "--define-macro=X=-arch",
                    "--define-macro=arch=9",
                    "-architect=x",
                ],
                None,
            ),
            (&[], None),
        ];
        for (words, expected) in cases {
            assert_eq!(architecture(&options(words)), expected, "{words:?}");
        }
    }

    #[test]
    fn options_without_loadable_output_are_recognised() {
        for option in ["-dlto", "--dlink-time-opt", " --optix-ir", "-optix-ir"] {
            assert_eq!(without_code(&options(&["-G", option])), Some(option.trim()));
        }
        assert_eq!(
            without_code(&options(&[
                "--gen-opt-lto",
                "-arch=compute_90",
                "--define-macro=X=-dlto"
            ])),
            None
        );
    }
}
