//! What the driver says of a kernel.

use std::ffi::c_int;

use super::{Driver, FunctionHandle, status};
use resident_backend::BackendError;

/// An attribute of a function. CUDA and HIP have the same numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FunctionAttribute {
    BlockThreadsMax = 0,
    SharedBytes = 1,
    LocalBytes = 3,
    Registers = 4,
    DynamicSharedBytesMax = 8,
}

impl Driver {
    /// An attribute of a function of the current context; `None` if the driver tells of none.
    ///
    /// # Safety
    ///
    /// The function's module is loaded in the current context.
    pub(crate) unsafe fn attribute_of(
        &self,
        function: FunctionHandle,
        attribute: FunctionAttribute,
    ) -> Result<Option<u32>, BackendError> {
        let mut value = 0;
        let Some(ask) = &self.function_attribute else { return Ok(None) };
        // SAFETY: the function belongs to the current context (the caller's promise); the driver
        // writes one `int`.
        let outcome = unsafe { (ask.function)(&raw mut value, attribute as c_int, function) };
        ask.check(outcome)?;
        Ok(Some(value.max(0).unsigned_abs()))
    }

    /// The threads of a block with which the function has the highest occupancy.
    ///
    /// # Safety
    ///
    /// As [`attribute_of`](Self::attribute_of).
    pub(crate) unsafe fn best_block_threads(
        &self,
        function: FunctionHandle,
        shared_bytes: u32,
    ) -> Result<u32, BackendError> {
        let (mut blocks, mut threads) = (0, 0);
        let (blocks, out, shared) = (&raw mut blocks, &raw mut threads, shared_bytes as usize);
        if let Some(ask) = &self.best_block {
            // SAFETY: the caller's promise; the driver writes two `int`s. Dynamic shared memory
            // does not depend on the block size, so there is no callback that would compute it.
            let outcome = unsafe { (ask.function)(blocks, out, function, None, shared, 0) };
            ask.check(outcome)?;
        } else if let Some(ask) = &self.best_block_of_hip {
            // SAFETY: as above.
            ask.check(unsafe { (ask.function)(blocks, out, function, shared, 0) })?;
        } else {
            return Err(self.lacks([
                "cuOccupancyMaxPotentialBlockSize",
                "hipModuleOccupancyMaxPotentialBlockSize",
            ]));
        }
        Ok(threads.max(1).unsigned_abs())
    }

    /// The size in bytes of each parameter of a function; `None` if the driver does not report
    /// them.
    ///
    /// # Safety
    ///
    /// As [`attribute_of`](Self::attribute_of).
    pub(crate) unsafe fn parameter_bytes(
        &self,
        function: FunctionHandle,
    ) -> Result<Option<Vec<usize>>, BackendError> {
        let Some(ask) = &self.parameter else { return Ok(None) };
        let mut sizes = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the caller's promise; the driver writes two sizes.
            let outcome =
                unsafe { (ask.function)(function, sizes.len(), &raw mut offset, &raw mut size) };
            match outcome {
                status::SUCCESS => sizes.push(size),
                // The index is past the last parameter.
                status::INVALID_VALUE => return Ok(Some(sizes)),
                status::NOT_SUPPORTED => return Ok(None),
                failed => return Err(ask.error(failed)),
            }
        }
    }
}
