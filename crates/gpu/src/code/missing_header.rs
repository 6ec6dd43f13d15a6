//! What to do about a header that a compiler does not find.

/// What to do about the first header that a log says is missing, if one is. The library gives no
/// folders of its own to a compiler, and neither does NVRTC.
pub(super) fn advice(log: &str) -> Option<String> {
    let of_nvrtc = || {
        let (name, _) = log.split_once(" open source file \"")?.1.split_once('"')?;
        Some(format!("{}{OF_CUDA}", general(name)))
    };
    let of_hiprtc = || {
        let (name, behind) = log.split_once("fatal error: '")?.1.split_once('\'')?;
        behind.starts_with(" file not found").then(|| general(name))
    };
    of_nvrtc().or_else(of_hiprtc)
}

fn general(name: &str) -> String {
    format!(
        "the header `{name}` is in no folder that the source names: name its folder by \
         `CudaSource::include`"
    )
}

/// Where headers are that NVRTC does not bring.
const OF_CUDA: &str = ". Headers of CUDA, such as `cuda_fp16.h`, `cuda_bf16.h` and \
    `cooperative_groups.h`, are in the folder `include` of the CUDA toolkit; without a toolkit, \
    `pip install nvidia-cuda-runtime nvidia-cuda-cccl` puts them into `nvidia/cu13/include` and \
    its folder `cccl`, below Python's `site-packages`: name both";

#[cfg(test)]
mod tests {
    use super::advice;

    #[test]
    fn a_header_that_is_missing_is_named_with_where_to_get_it() {
        for log in [
            "k.cu(1): catastrophic error: could not open source file \"a.h\" (no directories)",
            "k.cu(1): catastrophic error: cannot open source file \"a.h\"",
        ] {
            let said = advice(log).expect("it is missing");
            for part in ["header `a.h`", "`CudaSource::include`", "nvidia-cuda-cccl", "toolkit"] {
                assert!(said.contains(part), "{said}");
            }
        }
        let said = advice("k.cu:1:10: fatal error: 'a.h' file not found").expect("AMD's says so");
        assert!(said.contains("header `a.h`") && said.ends_with("`CudaSource::include`"), "{said}");
        assert_eq!(advice("k.cu(1): error: expected a \";\""), None);
        assert_eq!(advice("k.cu:1:1: fatal error: 'x' is odd"), None);
    }
}
