//! Kernels on up to 16 arrays. They are PTX without instructions, since the free driver runs none.

use resident::{CudaSource, In, InOut, Kernel, Signature};

/// The elements of each array: 16 KiB.
pub const LEN: usize = 4096;

/// The threads of the one block that each launch has.
pub const THREADS: u32 = 256;

/// The launches of a chain.
pub const STEPS: usize = 8;

/// The entry of the kernel with this number of arrays.
pub fn entry(arrays: usize) -> String {
    format!("touch{arrays}")
}

/// The code of that kernel. With no arrays it has a number as its parameter.
pub fn ptx(arrays: usize) -> String {
    let entry = entry(arrays);
    let parameter = |index| match arrays {
        0 => format!(".param .u32 {entry}_param_{index}"),
        _ => format!(".param .u64 {entry}_param_{index}"),
    };
    let parameters: Vec<String> = (0..arrays.max(1)).map(parameter).collect();
    let head = ".version 8.0\n.target sm_80\n.address_size 64\n";
    format!("{head}.visible .entry {entry}(\n{}\n)\n{{\nret;\n}}\n", parameters.join(",\n"))
}

type I = In<f32>;
type O = InOut<f32>;
/// No array.
pub type Touch0 = Kernel<(u32,)>;
/// One array that is only read.
pub type Read1 = Kernel<(I,)>;
/// One array.
pub type Touch1 = Kernel<(O,)>;
/// Four arrays; the last is written.
pub type Touch4 = Kernel<(I, I, I, O)>;
/// Eight arrays; the last is written.
pub type Touch8 = Kernel<(I, I, I, I, I, I, I, O)>;
/// Sixteen arrays; the last is written.
pub type Touch16 = Kernel<(I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, O)>;

/// The kernel with this number of arrays and the signature of the caller's choice.
pub fn kernel<S: Signature>(arrays: usize) -> Kernel<S> {
    // SAFETY: the free driver runs no code.
    unsafe { Kernel::new(entry(arrays)).cuda(CudaSource::ptx(ptx(arrays))) }
}
