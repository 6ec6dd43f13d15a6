//! Features of CUDA C that are not there on the embedded device, and where a source uses one.

use std::ops::Range;

use resident_code::words::{code_only, words};

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
        name: "matrix units (`wmma`)",
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
        name: "cub and no thrust",
        instead: "use `ops`, or shuffles and shared memory",
        words: &["cub", "thrust"],
    },
    Feature {
        name: "functions of warps without a mask, which CUDA 9 has replaced",
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

/// A place where a source uses a feature that is not there.
#[derive(Clone, Copy)]
pub(super) struct Use<'c> {
    pub(super) at: usize,
    word: &'c str,
    feature: &'static Feature,
}

impl Use<'_> {
    /// What is not there and what to do. `place` says where it stands.
    pub(super) fn reason(&self, place: &str) -> String {
        format!(
            "`{}`{place}: the embedded device has no {}: {}, or give the kernel a body by \
             `.host(..)`",
            self.word, self.feature.name, self.feature.instead
        )
    }
}

/// The first use of such a feature in a part of a source. `code` is the source without comments and
/// literals.
pub(super) fn first_use<'c>(text: &str, code: &'c str, part: Range<usize>) -> Option<Use<'c>> {
    let inside = &code[part.clone()];
    let launch = || {
        let at = part.start + inside.find("<<<")?;
        Some(Use { at, word: "<<<", feature: FEATURES.last()? })
    };
    launch().or_else(|| {
        words(inside).find_map(|(at, word)| {
            let at = part.start + at;
            feature_of(text, at, word).map(|feature| Use { at, word, feature })
        })
    })
}

/// The number of the line in which a place is.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// What to say of the first such feature in a line of the source that the compiler refuses.
pub(in super::super) fn of_line(text: &str, file: &str, line: usize) -> Option<String> {
    let content = text.lines().nth(line.checked_sub(1)?)?;
    let found = first_use(content, &code_only(content), 0..content.len())?.reason("");
    Some(format!(
        "{file}:{line}: {found}; this refuses all kernels of the source, since only kernels are \
         left out, and functions in namespaces that no `#if` is around and whose name no other has"
    ))
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
    use super::of_line;

    #[test]
    fn a_line_of_a_function_tells_of_its_feature() {
        let text = "int x;\n__device__ int f() { return __shfl(1, 2); }\n";
        let said = of_line(text, "k.cu", 2).expect("one");
        assert!(said.contains("k.cu:2: `__shfl`: ") && said.contains("`__shfl_sync`"), "{said}");
        assert!(said.contains("refuses all kernels of the source"), "{said}");
        assert_eq!(of_line(text, "k.cu", 1), None);
        assert_eq!(of_line(text, "k.cu", 9), None);
    }
}
