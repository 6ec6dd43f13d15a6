//! The arguments of a host function that replaces a kernel.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::protocol::{self, Parameter, RawArgument, RawLaunch, RawText};

/// How a kernel can fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// CUDA_ERROR_ILLEGAL_ADDRESS, as if the kernel had accessed invalid memory. The context is
    /// lost.
    IllegalAddress,
    /// CUDA_ERROR_LAUNCH_FAILED. The context is lost. A panic has the same effect.
    Failed,
}

impl Fault {
    fn code(self) -> u32 {
        match self {
            Self::IllegalAddress => 700,
            Self::Failed => 719,
        }
    }
}

/// One launch while it runs. Parameters are counted from 0. If a method is called for a missing
/// parameter, or for a parameter of another kind, it panics, and the launch fails.
#[derive(Debug)]
pub struct Launch<'a> {
    raw: &'a RawLaunch,
    arguments: &'a [RawArgument],
}

/// A view that was passed to a kernel by value.
#[derive(Clone, Debug)]
pub struct View {
    start: *mut u8,
    element_bytes: usize,
    /// Extents in elements.
    pub shape: Vec<i64>,
    /// Strides in elements.
    pub strides: Vec<i64>,
}

/// A host function that replaces a kernel.
type Function = Box<dyn Fn(&Launch<'_>) -> Result<(), Fault> + Send + Sync>;

/// Registers `function` for the kernel with this name in the driver that exports `register`.
pub fn register(
    register: protocol::Register,
    name: &str,
    parameters: &[Parameter],
    function: impl Fn(&Launch<'_>) -> Result<(), Fault> + Send + Sync + 'static,
) {
    // The function is leaked, because launches may run at any later time.
    let function: Function = Box::new(function);
    let function: &'static Function = Box::leak(Box::new(function));
    // SAFETY: name and parameters are live during the call, which copies them. The function is
    // `'static` and has the type that `run` expects.
    unsafe {
        register(
            RawText::of(name),
            parameters.as_ptr(),
            parameters.len(),
            Some(run),
            std::ptr::from_ref(function).cast(),
        );
    };
}

unsafe extern "C" fn run(function: *const c_void, launch: *const RawLaunch) -> u32 {
    // SAFETY: `register` passed a `'static` function of this type.
    let function = unsafe { &*function.cast::<Function>() };
    // SAFETY: the driver passes the launch that it runs, which is live during the call.
    let launch = unsafe { &*launch };
    // SAFETY: as above.
    let launch = unsafe { Launch::new(launch) };
    match catch_unwind(AssertUnwindSafe(|| function(&launch))) {
        Ok(Ok(())) => 0,
        Ok(Err(fault)) => fault.code(),
        // The panic hook has already printed the message.
        Err(payload) => {
            std::mem::forget(payload);
            Fault::Failed.code()
        }
    }
}

impl<'a> Launch<'a> {
    /// # Safety
    ///
    /// `raw` is a launch that the driver runs now; its argument pointer and count are valid.
    unsafe fn new(raw: &'a RawLaunch) -> Self {
        let count = raw.argument_count as usize;
        let arguments = if count == 0 {
            &[]
        } else {
            // SAFETY: the driver keeps the arguments of a launch in an array of this length while
            // it runs.
            unsafe { std::slice::from_raw_parts(raw.arguments, count) }
        };
        Self { raw, arguments }
    }

    /// Blocks along x, y and z.
    #[must_use]
    pub fn grid(&self) -> [u32; 3] {
        self.raw.grid
    }

    /// Threads of a block along x, y and z.
    #[must_use]
    pub fn block(&self) -> [u32; 3] {
        self.raw.block
    }

    /// Dynamic shared memory in bytes.
    #[must_use]
    pub fn shared_bytes(&self) -> u32 {
        self.raw.shared_bytes
    }

    /// A scalar. `T` is a plain type of the scalar's size for which every bit pattern is valid.
    #[must_use]
    pub fn scalar<T: Copy>(&self, index: usize) -> T {
        let argument = self.argument(index, 0);
        assert_eq!(
            argument.len_bytes as usize,
            size_of::<T>(),
            "parameter {index} has another size"
        );
        // SAFETY: the driver keeps `size_of::<T>()` bytes (asserted) alive during the launch.
        unsafe { argument.start.cast::<T>().read_unaligned() }
    }

    /// The memory at a pointer: its start, and how many bytes may be accessed.
    #[must_use]
    pub fn memory(&self, index: usize) -> (*mut u8, usize) {
        let argument = self.argument(index, 0);
        (argument.start, argument.len_bytes as usize)
    }

    /// The memory at a pointer as elements.
    ///
    /// # Safety
    ///
    /// Every bit pattern is a valid `T`, and neither another stream nor this kernel writes the
    /// memory during the launch.
    #[must_use]
    pub unsafe fn slice<T: Copy>(&self, index: usize) -> &[T] {
        let (start, len_bytes) = self.aligned::<T>(index);
        // SAFETY: the driver ensured that this many live, initialised bytes start here; the caller
        // guarantees the other conditions.
        unsafe { std::slice::from_raw_parts(start, len_bytes / size_of::<T>()) }
    }

    /// Like [`slice`](Self::slice), for writing.
    ///
    /// # Safety
    ///
    /// As for `slice`; in addition nothing else accesses the memory during the launch, not even
    /// through another parameter of this kernel.
    #[must_use]
    #[expect(clippy::mut_from_ref, reason = "the caller guarantees that it is the only one")]
    pub unsafe fn slice_mut<T: Copy>(&self, index: usize) -> &mut [T] {
        let (start, len_bytes) = self.aligned::<T>(index);
        // SAFETY: as in `slice`, and the caller guarantees exclusive access.
        unsafe { std::slice::from_raw_parts_mut(start, len_bytes / size_of::<T>()) }
    }

    /// A view.
    #[must_use]
    pub fn view(&self, index: usize) -> View {
        let argument =
            self.arguments.get(index).unwrap_or_else(|| panic!("there is no parameter {index}"));
        let dimensions = argument.dimensions as usize;
        assert!(argument.element_bytes > 0, "parameter {index} is not a view");
        let extents = if dimensions == 0 {
            &[]
        } else {
            // SAFETY: the driver keeps shape and strides, `dimensions` words each, alive during the
            // launch.
            unsafe { std::slice::from_raw_parts(argument.extents, 2 * dimensions) }
        };
        let (shape, strides) = extents.split_at(dimensions);
        View {
            start: argument.start,
            element_bytes: argument.element_bytes as usize,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
        }
    }

    fn aligned<T>(&self, index: usize) -> (*mut T, usize) {
        let (start, len_bytes) = self.memory(index);
        let start = if len_bytes == 0 { std::ptr::dangling_mut() } else { start.cast::<T>() };
        assert!(
            size_of::<T>() > 0 && start.is_aligned(),
            "the memory of parameter {index} does not fit the element"
        );
        (start, len_bytes)
    }

    fn argument(&self, index: usize, element_bytes: u32) -> &RawArgument {
        let argument =
            self.arguments.get(index).unwrap_or_else(|| panic!("there is no parameter {index}"));
        assert_eq!(argument.element_bytes, element_bytes, "parameter {index} is a view");
        argument
    }
}

impl View {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).product()
    }

    /// Whether the view has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the element of number `index`, counted in row-major order.
    #[must_use]
    pub fn get<T: Copy>(&self, index: usize) -> T {
        // SAFETY: `at` returns the address of an element, and the driver has checked that the view
        // lies in live, initialised memory.
        unsafe { self.at::<T>(index).read_unaligned() }
    }

    /// Writes the element of number `index`, counted in row-major order.
    pub fn set<T: Copy>(&self, index: usize, value: T) {
        // SAFETY: as for `get`; the registered parameter declares that the kernel may write it.
        unsafe { self.at::<T>(index).write_unaligned(value) }
    }

    fn at<T>(&self, index: usize) -> *mut T {
        assert!(
            index < self.len() && size_of::<T>() == self.element_bytes,
            "element {index} of {:?}",
            self.shape
        );
        let (mut rest, mut offset) = (index as i64, 0);
        for (extent, stride) in self.shape.iter().zip(&self.strides).rev() {
            offset += rest % extent * stride;
            rest /= extent;
        }
        self.start.wrapping_offset(offset as isize * self.element_bytes as isize).cast()
    }
}
