//! Kernels on 1 to 16 arrays.

use resident::cudarc::nvrtc::compile_ptx;
use resident::{CudaSource, In, InOut, Kernel};
use resident_stand_in::{Access, Length, Parameter, register};

/// The PTX of the entry with this number of pointers to floats, which adds up the first elements.
/// All are read; the last is also written. Where there is no C++ compiler, a host function does so,
/// so that calls are counted there too.
pub(crate) fn ptx(arrays: usize) -> String {
    if resident_stand_in_nvrtc::compiles() {
        return compiled(arrays);
    }
    stand_in_for(arrays);
    empty(arrays)
}

/// Registers a host function for the entry.
fn stand_in_for(arrays: usize) {
    let pointer = |access| Parameter::Pointer { access, length: Length::ToEnd };
    let mut parameters = vec![pointer(Access::Read); arrays];
    parameters[arrays - 1] = pointer(Access::ReadWrite);
    register(&format!("touch{arrays}"), &parameters, move |launch| {
        // SAFETY: the driver keeps the memory during the launch and reports other accesses.
        let first = |index| unsafe { launch.slice::<f32>(index) }[0];
        let sum: f32 = (0..arrays - 1).map(first).sum();
        // SAFETY: as above.
        let output = unsafe { launch.slice_mut::<f32>(arrays - 1) };
        output[0] += sum + 1.0;
        Ok(())
    });
}

fn compiled(arrays: usize) -> String {
    let inputs: String = (1..arrays).map(|index| format!("const float *x{index}, ")).collect();
    let sum: String = (1..arrays).map(|index| format!(" + *x{index}")).collect();
    let source = format!(
        "extern \"C\" __global__ void touch{arrays}({inputs}float *y) {{\n\
         if (blockIdx.x + threadIdx.x == 0) *y += 1{sum};\n}}\n"
    );
    compile_ptx(source).expect("it compiles").to_src()
}

fn empty(arrays: usize) -> String {
    let parameters: Vec<String> =
        (0..arrays).map(|index| format!(".param .u64 touch{arrays}_param_{index}")).collect();
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry touch{arrays}(\n{}\n)\n\
         {{\nret;\n}}\n",
        parameters.join(",\n")
    )
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
