//! Kernel launches: converts packed words to the driver's parameters in place.

use std::ffi::c_void;

use super::code::{GpuKernel, PARAMETERS_MAX};
use super::driver::{Driver, StreamHandle, invalid};
use resident_backend::{BackendError, LaunchCall, PackedArray, ParameterLayout};

/// Queues a launch. Overwrites the words.
///
/// # Safety
///
/// * The stream's context is current, and the kernel is loaded in it.
/// * The arguments match the kernel's signature. Their memory lives until the launch completes, and
///   the launch is ordered against other uses of the same bytes.
#[inline(always)]
pub(super) unsafe fn queue(
    driver: &Driver,
    stream: StreamHandle,
    kernel: &GpuKernel,
    launch: &mut LaunchCall<'_>,
) -> Result<(), BackendError> {
    let mut parameters = [std::ptr::null_mut(); PARAMETERS_MAX];
    convert(kernel, launch.words, launch.arrays, &mut parameters)?;
    let (grid, blocks, threads) = (launch.grid, launch.grid.blocks(), launch.grid.threads());
    // SAFETY: the driver copies the parameters before it returns. Their number and sizes match the
    // function: `code::load` checked that. The caller of `Kernel::cuda` promised that the code
    // complies with its signature.
    let result = unsafe {
        (driver.launch.function)(
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
    driver.launch.check(result)
}

/// Converts packed words to what the driver gets: a pointer to each parameter. They point into the
/// words, which are overwritten.
#[inline(always)]
pub(super) fn convert(
    kernel: &GpuKernel,
    words: &mut [u64],
    arrays: &[PackedArray],
    parameters: &mut [*mut c_void; PARAMETERS_MAX],
) -> Result<(), BackendError> {
    match kernel.starts() {
        Some(starts) if starts.fits(words) => starts.write(words, parameters),
        _ => find_parameters(kernel.parameters(), words, parameters)?,
    }
    insert_addresses(words, arrays);
    Ok(())
}

/// Replaces the first word of each sized array, which only host bodies use, by its device address.
#[inline]
fn insert_addresses(words: &mut [u64], arrays: &[PackedArray]) {
    for array in arrays {
        // An array without elements has no memory, so its address is irrelevant.
        words[array.at_word as usize] = array.address.0.wrapping_add(array.origin_bytes);
    }
}

/// Finds the word at which each parameter starts.
fn find_parameters(
    layouts: &[ParameterLayout],
    words: &mut [u64],
    parameters: &mut [*mut c_void; PARAMETERS_MAX],
) -> Result<(), BackendError> {
    let mut next = 0;
    let start = words.as_mut_ptr();
    for (layout, parameter) in layouts.iter().zip(parameters) {
        let first = words.get(next).copied().unwrap_or_default();
        if let ParameterLayout::Sized { ndim: Some(ndim), .. } = layout
            && *ndim as u64 != first
        {
            return Err(wrong_dimensions(*ndim, first));
        }
        *parameter = start.wrapping_add(next).cast();
        next += layout.words(first);
    }
    if next == words.len() && layouts.len() <= PARAMETERS_MAX {
        Ok(())
    } else {
        let count = layouts.len();
        let words = words.len();
        let detail = format!("{count} parameters take {next} words of {words}");
        Err(invalid("launch", detail))
    }
}

#[cold]
fn wrong_dimensions(compiled: usize, given: u64) -> BackendError {
    let detail = format!(
        "a parameter was compiled for {compiled} dimensions and is given an array of {given}"
    );
    invalid("launch", detail)
}

#[cfg(test)]
mod tests {
    use super::{PARAMETERS_MAX, find_parameters, insert_addresses};
    use crate::code::ParameterStarts;
    use resident_backend::{Address, BackendError, ElementLayout, PackedArray, ParameterLayout};
    use resident_core::Access;

    /// The index of the word at which each parameter starts.
    fn starts(layouts: &[ParameterLayout], words: &mut [u64]) -> Result<Vec<usize>, BackendError> {
        let mut parameters = [std::ptr::null_mut(); PARAMETERS_MAX];
        find_parameters(layouts, words, &mut parameters)?;
        let start = words.as_ptr() as usize;
        let index = |parameter: &*mut std::ffi::c_void| (*parameter as usize - start) / 8;
        Ok(parameters[..layouts.len()].iter().map(index).collect())
    }

    const FLOAT: ElementLayout = ElementLayout { len_bytes: 4, align_bytes: 4, rust_name: "f32" };

    const FLAT: PackedArray = PackedArray {
        address: Address(0x2000),
        origin_bytes: 0,
        element_bytes: 4,
        at_word: 8,
        is_flat: true,
        access: Access::Read,
    };
    const SIZED: PackedArray = PackedArray {
        address: Address(0x1000),
        origin_bytes: 16,
        at_word: 1,
        is_flat: false,
        ..FLAT
    };

    #[test]
    fn known_starts_are_those_that_are_found() {
        let layouts = [
            ParameterLayout::Scalar(FLOAT),
            ParameterLayout::Flat { element: FLOAT, access: Access::Read },
            ParameterLayout::Scalar(ElementLayout {
                len_bytes: 12,
                align_bytes: 4,
                rust_name: "[f32; 3]",
            }),
            ParameterLayout::Flat { element: FLOAT, access: Access::ReadWrite },
        ];
        let known = ParameterStarts::of(&layouts).expect("no sized array");
        let mut words = [7, 30, 8, 9, 100];
        assert!(known.fits(&words) && !known.fits(&words[..4]));
        let mut parameters = [std::ptr::null_mut(); PARAMETERS_MAX];
        known.write(&mut words, &mut parameters);
        let start = words.as_ptr() as usize;
        let written = parameters[..4].iter().map(|at| (*at as usize - start) / 8);
        assert_eq!(written.collect::<Vec<_>>(), starts(&layouts, &mut words).expect("it fits"));
        assert!(parameters[4..].iter().all(|at| at.is_null()));
        let sized = ParameterLayout::Sized { element: FLOAT, ndim: Some(1), access: Access::Read };
        assert!(ParameterStarts::of(&[sized]).is_none());
    }

    #[test]
    fn words_become_parameters_in_place() {
        let layouts = [
            ParameterLayout::Scalar(FLOAT),
            ParameterLayout::Sized { element: FLOAT, ndim: Some(2), access: Access::Read },
            ParameterLayout::Scalar(ElementLayout {
                len_bytes: 12,
                align_bytes: 4,
                rust_name: "[f32; 3]",
            }),
            ParameterLayout::Flat { element: FLOAT, access: Access::ReadWrite },
        ];
        let mut words = [7, 2, 30, 40, 40, 1, 8, 9, 100];
        assert_eq!(starts(&layouts, &mut words).unwrap(), [0, 1, 6, 8]);
        insert_addresses(&mut words, &[SIZED, FLAT]);
        assert_eq!(words, [7, 0x1010, 30, 40, 40, 1, 8, 9, 0x2000]);
        assert!(starts(&layouts[..3], &mut [7, 2, 30, 40, 40, 1, 8]).is_err());
        let error = starts(&layouts[1..2], &mut [1, 30, 1]).expect_err("one dimension for two");
        assert!(
            error.detail.contains("compiled for 2 dimensions and is given an array of 1"),
            "{error}"
        );
    }
}
