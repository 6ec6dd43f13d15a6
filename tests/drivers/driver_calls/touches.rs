//! Kernels on 1 to 16 arrays.

use resident::cudarc::nvrtc::compile_ptx;
use resident::{CudaSource, In, InOut, Kernel};

/// The PTX of the entry with this number of pointers to floats, which adds up the first elements.
/// All are read; the last is also written.
pub(crate) fn ptx(arrays: usize) -> String {
    let inputs: String = (1..arrays).map(|index| format!("const float *x{index}, ")).collect();
    let sum: String = (1..arrays).map(|index| format!(" + *x{index}")).collect();
    let source = format!(
        "extern \"C\" __global__ void touch{arrays}({inputs}float *y) {{\n\
         if (blockIdx.x + threadIdx.x == 0) *y += 1{sum};\n}}\n"
    );
    compile_ptx(source).expect("it compiles").to_src()
}

macro_rules! touch {
    ($name:ident, $arrays:literal, $signature:ty) => {
        pub(crate) fn $name() -> Kernel<$signature> {
            let kernel = Kernel::<$signature>::new(concat!("touch", $arrays));
            // SAFETY: the first element of each array is accessed, of which none is empty.
            unsafe { kernel.cuda(CudaSource::ptx(ptx($arrays))) }
        }
    };
}

type I = In<f32>;
touch!(touch1, 1, (InOut<f32>,));
touch!(touch4, 4, (I, I, I, InOut<f32>));
touch!(touch8, 8, (I, I, I, I, I, I, I, InOut<f32>));
touch!(touch16, 16, (I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, InOut<f32>));
