//! The loops in C++, compiled as the library compiles CUDA C and called by a pool of threads.

use std::path::Path;
use std::process::Command;

use libloading::Library;
use rayon::prelude::*;

/// The options with which the library compiles CUDA C (`host_code/compiler.rs`), on processors with
/// 512-bit vectors.
const OPTIONS: [&str; 12] = [
    "-std=c++17",
    "-O3",
    "-g",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fstack-clash-protection",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-march=native",
];

/// As many parts per thread as the library makes.
const PARTS_PER_THREAD: usize = 8;

type Loop = unsafe extern "C" fn(
    first: usize,
    end: usize,
    size: usize,
    x: *const f32,
    y: *const f32,
    z: *mut f32,
);

/// The compiled loops.
pub(crate) struct Loops(Library);

/// A pointer that several threads use at different elements.
#[derive(Clone, Copy)]
struct Shared(*mut f32);

// SAFETY: the parts of a loop write different elements.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    fn get(self) -> *mut f32 {
        self.0
    }
}

impl Loops {
    pub(crate) fn compile() -> Self {
        let compiler = std::env::var("RESIDENT_CXX").unwrap_or_else(|_| "c++".to_owned());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/loops.cpp");
        let output = std::env::temp_dir().join(format!("resident-loops-{}.so", std::process::id()));
        let mut command = Command::new(&compiler);
        command.args(OPTIONS).arg("-o").arg(&output).arg(source).arg("-lm");
        let status = command.status().unwrap_or_else(|fault| panic!("{compiler}: {fault}"));
        assert!(status.success(), "{compiler} refuses loops.cpp");
        // SAFETY: the library is `loops.cpp`, which has no initialisers.
        let library = unsafe { Library::new(&output) }.expect("it was just made");
        std::fs::remove_file(&output).expect("it was just made");
        Self(library)
    }

    /// Runs a loop up to `end` on all threads of the pool, part by part. It reads two arrays, of
    /// which some loops need one, and writes one.
    pub(crate) fn run(
        &self,
        name: &str,
        end: usize,
        size: usize,
        [x, y]: [&[f32]; 2],
        z: &mut [f32],
    ) {
        // SAFETY: all functions of `loops.cpp` have this type.
        let function = *unsafe { self.0.get::<Loop>(name) }.expect("a function of loops.cpp");
        let parts = (rayon::current_num_threads() * PARTS_PER_THREAD).min(end);
        let z = Shared(z.as_mut_ptr());
        (0..parts).into_par_iter().with_max_len(1).for_each(|part| {
            let (first, end) = (end * part / parts, end * (part + 1) / parts);
            // SAFETY: the sizes are those of the arrays; each part writes elements of its own.
            unsafe { function(first, end, size, x.as_ptr(), y.as_ptr(), z.get()) };
        });
    }
}
