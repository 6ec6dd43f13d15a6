//! Kernel launches: converts packed words to the driver's parameters in place.

use std::ffi::c_void;

use cudarc::driver::sys;
use smallvec::SmallVec;

use super::call::{check, invalid};
use super::code::CudaKernel;
use crate::backend::{Arguments, BackendError, ParameterLayout};
use crate::grid::Grid;

/// Pointers to the parameters, for the driver.
type Parameters = SmallVec<[*mut c_void; 16]>;

/// Queues a launch.
///
/// # Safety
///
/// * The stream's context is current, and the kernel is loaded in it.
/// * The arguments match the kernel's signature. Their memory lives until the launch completes, and
///   the launch is ordered against other uses of the same bytes.
pub(super) unsafe fn queue(
    stream: sys::CUstream,
    kernel: &CudaKernel,
    grid: Grid,
    arguments: &mut Arguments,
) -> Result<(), BackendError> {
    let starts = parameter_starts(kernel.parameters(), &arguments.words)?;
    insert_addresses(arguments);
    let words = arguments.words.as_mut_ptr();
    let mut parameters: Parameters =
        starts.iter().map(|start| words.wrapping_add(*start).cast()).collect();
    let (blocks, threads) = (grid.blocks(), grid.threads());
    // SAFETY: the driver copies the parameters before it returns. Their number and sizes match the
    // function: `code::load` checked that. The caller of `Kernel::cuda` promised that the code
    // complies with its signature.
    let result = unsafe {
        sys::cuLaunchKernel(
            kernel.function(),
            blocks.x,
            blocks.y,
            blocks.z,
            threads.x,
            threads.y,
            threads.z,
            grid.dynamic_shared_bytes(),
            stream,
            parameters.as_mut_ptr(),
            std::ptr::null_mut(),
        )
    };
    check(result, "cuLaunchKernel")
}

/// Replaces each array's first word, which only host bodies use, by its device address.
fn insert_addresses(arguments: &mut Arguments) {
    for array in &arguments.arrays {
        // An array without elements has no memory, so its address is irrelevant.
        arguments.words[array.at_word as usize] = array.address.0.wrapping_add(array.origin_bytes);
    }
}

/// The index of the word at which each parameter starts.
fn parameter_starts(
    layouts: &[ParameterLayout],
    words: &[u64],
) -> Result<SmallVec<[usize; 16]>, BackendError> {
    let mut starts = SmallVec::new();
    let mut next = 0;
    for layout in layouts {
        let first = words.get(next).copied().unwrap_or_default();
        if let ParameterLayout::Sized { ndim: Some(ndim), .. } = layout
            && *ndim as u64 != first
        {
            let detail = format!(
                "parameter {} was compiled for {ndim} dimensions and is given an array of {first}",
                starts.len()
            );
            return Err(invalid("cuLaunchKernel", detail));
        }
        starts.push(next);
        next += layout.words(first);
    }
    if next == words.len() {
        Ok(starts)
    } else {
        Err(invalid("cuLaunchKernel", format!("parameters take {next} words of {}", words.len())))
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::{insert_addresses, parameter_starts};
    use crate::access::Access;
    use crate::backend::{Address, Arguments, ArrayArgument, ElementLayout, ParameterLayout};

    const FLOAT: ElementLayout = ElementLayout { len_bytes: 4, align_bytes: 4, rust_name: "f32" };

    fn array(address: u64, origin_bytes: u64, at_word: u32, is_flat: bool) -> ArrayArgument {
        ArrayArgument {
            address: Address(address),
            origin_bytes,
            element_bytes: 4,
            at_word,
            is_flat,
            access: Access::Read,
        }
    }

    #[test]
    fn words_become_parameters_in_place() {
        let layouts = [
            ParameterLayout::Scalar(FLOAT),
            ParameterLayout::Sized { element: FLOAT, ndim: Some(2), is_read_only: true },
            ParameterLayout::Scalar(ElementLayout {
                len_bytes: 12,
                align_bytes: 4,
                rust_name: "[f32; 3]",
            }),
            ParameterLayout::Flat { element: FLOAT, is_read_only: false },
        ];
        let mut arguments = Arguments {
            words: smallvec![7, 2, 30, 40, 40, 1, 8, 9, 100],
            arrays: smallvec![array(0x1000, 16, 1, false), array(0x2000, 0, 8, true)],
        };
        assert_eq!(parameter_starts(&layouts, &arguments.words).unwrap().as_slice(), [0, 1, 6, 8]);
        insert_addresses(&mut arguments);
        assert_eq!(arguments.words.as_slice(), [7, 0x1010, 30, 40, 40, 1, 8, 9, 0x2000]);
        assert!(parameter_starts(&layouts[..3], &[7, 2, 30, 40, 40, 1, 8]).is_err());
        let refusal =
            parameter_starts(&layouts[1..2], &[1, 30, 1]).expect_err("one dimension for two");
        assert!(
            refusal.detail.contains("compiled for 2 dimensions and is given an array of 1"),
            "{refusal}"
        );
    }
}
