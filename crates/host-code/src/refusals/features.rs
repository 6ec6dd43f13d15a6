//! Features of CUDA C that are not there on the embedded device. A kernel that uses one is left out
//! of the library, so that the others of its source run.

use resident_code::kernels::{Definition, definitions};
use resident_code::words::{code_only, words};

/// A kernel that is left out: its name, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) struct LeftOut {
    pub(in super::super) name: String,
    pub(in super::super) reason: String,
}

/// What a feature is called, and what to do in its place.
struct Feature {
    name: &'static str,
    instead: &'static str,
    words: &'static [&'static str],
}

const FEATURES: [Feature; 9] = [
    Feature {
        name: "textures",
        instead: "pass an array, and read its elements",
        words: &[
            "cudaTextureObject_t",
            "texture",
            "tex1D",
            "tex1Dfetch",
            "tex1DLod",
            "tex1DGrad",
            "tex1DLayered",
            "tex2D",
            "tex2DLod",
            "tex2DGrad",
            "tex2DLayered",
            "tex2Dgather",
            "tex3D",
            "tex3DLod",
            "tex3DGrad",
            "texCubemap",
            "texCubemapLayered",
        ],
    },
    Feature {
        name: "surfaces",
        instead: "pass an array, and write its elements",
        words: &[
            "cudaSurfaceObject_t",
            "surface",
            "surf1Dread",
            "surf1Dwrite",
            "surf2Dread",
            "surf2Dwrite",
            "surf2DLayeredread",
            "surf2DLayeredwrite",
            "surf3Dread",
            "surf3Dwrite",
        ],
    },
    Feature {
        name: "inline PTX",
        instead: "use an intrinsic, or C",
        words: &["asm", "__asm", "__asm__"],
    },
    Feature {
        name: "the matrix units (`wmma`)",
        instead: "multiply in a loop, or by `ops::matmul`",
        words: &["wmma", "nvcuda"],
    },
    Feature {
        name: "cuRAND",
        instead: "fill an array by `ops::random_uniform` or `random_normal`, and pass it",
        words: &[
            "curand",
            "curand_init",
            "curand_uniform",
            "curand_uniform_double",
            "curand_normal",
            "curand_normal2",
            "curandState",
            "curandState_t",
            "curandStatePhilox4_32_10_t",
            "curandStateXORWOW_t",
        ],
    },
    Feature {
        name: "cub and thrust",
        instead: "use `ops`, or shuffles and shared memory",
        words: &["cub", "thrust"],
    },
    Feature {
        name: "the functions of warps without a mask, which CUDA 9 has replaced,",
        instead: "use `__shfl_sync`, `__ballot_sync` and their kin with a mask",
        words: &["__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__ballot", "__any", "__all"],
    },
    Feature {
        name: "barriers of all blocks (cooperative launches)",
        instead: "launch a kernel for each step",
        words: &["this_grid", "grid_group", "this_multi_grid", "this_cluster", "cluster_group"],
    },
    Feature {
        name: "launches inside kernels (dynamic parallelism)",
        instead: "launch from the host, or call a `__device__` function",
        words: &["cudaDeviceSynchronize", "cudaLaunchDevice", "cudaGetParameterBuffer"],
    },
];

/// The source with a declaration in place of each kernel that uses such a feature, on as many
/// lines, and these kernels.
pub(in super::super) fn without_features(text: &str, file: &str) -> (String, Vec<LeftOut>) {
    let code = code_only(text);
    let (mut result, mut left_out, mut done) = (String::with_capacity(text.len()), Vec::new(), 0);
    for kernel in definitions(text) {
        let Some((at, word, feature)) = first_feature(text, &code, &kernel) else { continue };
        let lines = text[kernel.start..kernel.body.end].matches('\n').count();
        result.push_str(&text[done..kernel.start]);
        result.push_str(&format!("void resident_left_out_{}();", left_out.len()));
        result.push_str(&"\n".repeat(lines));
        done = kernel.body.end;
        let line = text[..at].matches('\n').count() + 1;
        left_out.push(LeftOut { reason: reason(file, line, word, feature), name: kernel.name });
    }
    (result + &text[done..], left_out)
}

/// What to say of the first such feature in a line of the source.
pub(in super::super) fn of_line(text: &str, file: &str, line: usize) -> Option<String> {
    let content = text.lines().nth(line.checked_sub(1)?)?;
    let code = code_only(content);
    let (_, word, feature) = words(&code).find_map(|(at, word)| {
        let feature = feature_of(content, at, word)?;
        Some((at, word, feature))
    })?;
    Some(reason(file, line, word, feature))
}

fn reason(file: &str, line: usize, word: &str, feature: &Feature) -> String {
    format!(
        "{file}:{line}: `{word}`: {} are not there on the embedded device: {}, or give the kernel \
         a body by `.host(..)`",
        feature.name, feature.instead
    )
}

fn first_feature<'c>(
    text: &str,
    code: &'c str,
    kernel: &Definition,
) -> Option<(usize, &'c str, &'static Feature)> {
    let inside = &code[kernel.start..kernel.body.end];
    if let Some(at) = inside.find("<<<") {
        let launches = FEATURES.last()?;
        return Some((kernel.start + at, "<<<", launches));
    }
    words(inside).find_map(|(at, word)| {
        let at = kernel.start + at;
        feature_of(text, at, word).map(|feature| (at, word, feature))
    })
}

fn feature_of(text: &str, at: usize, word: &str) -> Option<&'static Feature> {
    let feature = FEATURES.iter().find(|feature| feature.words.contains(&word))?;
    let behind = text[at + word.len()..].trim_start();
    let before = text[..at].trim_end();
    let is_meant = match word {
        "texture" | "surface" => behind.starts_with('<'),
        "cub" | "thrust" | "wmma" | "nvcuda" => behind.starts_with("::"),
        // One without instructions is for the compiler alone.
        "asm" | "__asm" | "__asm__" => {
            text[at..].split_once('"').is_some_and(|(_, rest)| !rest.starts_with('"'))
        }
        // A member, or a variable of this name.
        _ => !before.ends_with('.') && !before.ends_with("->"),
    };
    is_meant.then_some(feature)
}

#[cfg(test)]
mod tests {
    use super::{of_line, without_features};

    #[test]
    fn kernels_that_use_what_is_not_there_are_left_out() {
        let text = "extern \"C\" __global__ void good(float *x) { x[0] = 1; }\n\
            extern \"C\" __global__ void bad(cudaTextureObject_t t,\n  float *x) {\n\
            x[0] = tex1D<float>(t, 1); }\n\
            template <typename T> __global__ void also(T *x) {\n asm(\"bar.sync 0;\"); }\n\
            __global__ void fine(float *x) { asm volatile(\"\" : : : \"memory\"); x->tex2D = 1; }\n\
            __global__ void starts(int *x) { good<<<1, 1>>>(x); }\n";
        let (result, left_out) = without_features(text, "k.cu");
        let names: Vec<&str> = left_out.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["bad", "also", "starts"]);
        assert_eq!(result.lines().count(), text.lines().count());
        assert!(result.contains("extern \"C\" void resident_left_out_0();"), "{result}");
        assert!(left_out[0].reason.starts_with("k.cu:2: `cudaTextureObject_t`: textures are not"));
        assert!(left_out[1].reason.contains("k.cu:6: `asm`: inline PTX"), "{left_out:?}");
        assert!(left_out[2].reason.contains("launches inside kernels"), "{left_out:?}");
    }

    #[test]
    fn a_line_of_a_function_tells_of_its_feature() {
        let text = "int x;\n__device__ int f() { return __shfl(1, 2); }\n";
        assert!(of_line(text, "k.cu", 2).expect("one").contains("`__shfl_sync`"));
        assert_eq!(of_line(text, "k.cu", 1), None);
        assert_eq!(of_line(text, "k.cu", 9), None);
    }
}
