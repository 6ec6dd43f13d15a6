//! What a host function gets that stands for a kernel.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::protocol::{self, Parameter, RawArgument, RawLaunch, RawText};

/// How a kernel can fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// As if it had touched memory that is not its own: CUDA_ERROR_ILLEGAL_ADDRESS, and the context
    /// is lost.
    IllegalAddress,
    /// CUDA_ERROR_LAUNCH_FAILED, and the context is lost. A panic counts as this.
    Failed,
}

impl Fault {
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::IllegalAddress => 700,
            Self::Failed => 719,
        }
    }
}

/// One launch, for the time that it runs. Parameters are counted from 0; asking for one that is not
/// there, or is not of the kind asked for, panics, which fails the launch.
#[derive(Debug)]
pub struct Launch<'a> {
    raw: &'a RawLaunch,
    arguments: &'a [RawArgument],
}

/// A view that a kernel got by value.
#[derive(Clone, Debug)]
pub struct View {
    start: *mut u8,
    element_bytes: usize,
    /// Extents in elements.
    pub shape: Vec<i64>,
    /// In elements.
    pub strides: Vec<i64>,
}

/// What stands for a kernel.
type Function = Box<dyn Fn(&Launch<'_>) -> Result<(), Fault> + Send + Sync>;

/// Lets the driver whose function `register` is run `function` for the kernel of this name.
pub(crate) fn register(
    register: protocol::Register,
    name: &str,
    parameters: &[Parameter],
    function: impl Fn(&Launch<'_>) -> Result<(), Fault> + Send + Sync + 'static,
) {
    // Launches may run at any time to come, so it is never given back.
    let function: Function = Box::new(function);
    let function: &'static Function = Box::leak(Box::new(function));
    // SAFETY: name and parameters live for the call, which copies them; the function lives for
    // ever, and is what `run` takes it for.
    unsafe {
        register(
            RawText::of(name),
            parameters.as_ptr(),
            parameters.len(),
            run,
            std::ptr::from_ref(function).cast(),
        )
    };
}

unsafe extern "C" fn run(function: *const c_void, launch: *const RawLaunch) -> u32 {
    // SAFETY: `register` passed a function of this very type, which lives for ever.
    let function = unsafe { &*function.cast::<Function>() };
    // SAFETY: the driver passes the launch that it runs, which lives for the call.
    let launch = unsafe { &*launch };
    // SAFETY: as above.
    let launch = unsafe { Launch::new(launch) };
    match catch_unwind(AssertUnwindSafe(|| function(&launch))) {
        Ok(Ok(())) => 0,
        Ok(Err(fault)) => fault.code(),
        // The panic hook has told.
        Err(payload) => {
            std::mem::forget(payload);
            Fault::Failed.code()
        }
    }
}

impl<'a> Launch<'a> {
    /// # Safety
    ///
    /// `raw` is a launch that the driver runs now, with so many arguments.
    pub(crate) unsafe fn new(raw: &'a RawLaunch) -> Self {
        let count = raw.argument_count as usize;
        // SAFETY: the driver keeps the arguments of a launch in an array of this length while it
        // runs.
        let arguments = if count == 0 {
            &[]
        } else {
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

    /// A scalar. `T` is a plain type, of the scalar's size, for which all bits are a value.
    #[must_use]
    pub fn scalar<T: Copy>(&self, index: usize) -> T {
        let argument = self.argument(index, 0);
        assert_eq!(
            argument.len_bytes as usize,
            size_of::<T>(),
            "parameter {index} has another size"
        );
        // SAFETY: the driver holds as many bytes as `T` has (asserted) for the time of the launch.
        unsafe { argument.start.cast::<T>().read_unaligned() }
    }

    /// The memory at a pointer: where it starts, and how many bytes of it may be touched.
    #[must_use]
    pub fn memory(&self, index: usize) -> (*mut u8, usize) {
        let argument = self.argument(index, 0);
        (argument.start, argument.len_bytes as usize)
    }

    /// The memory at a pointer as elements.
    ///
    /// # Safety
    ///
    /// All bits are a value of `T`, and nobody writes the memory during the launch: no other
    /// stream, and not this kernel.
    #[must_use]
    pub unsafe fn slice<T: Copy>(&self, index: usize) -> &[T] {
        let (start, len_bytes) = self.aligned::<T>(index);
        // SAFETY: the driver resolved so many live, initialised bytes; the caller says the rest.
        unsafe { std::slice::from_raw_parts(start, len_bytes / size_of::<T>()) }
    }

    /// As [`slice`](Self::slice), to be written.
    ///
    /// # Safety
    ///
    /// As there, and nobody else touches the memory during the launch, through another parameter
    /// neither.
    #[must_use]
    #[expect(clippy::mut_from_ref, reason = "that it is the only one is the caller's promise")]
    pub unsafe fn slice_mut<T: Copy>(&self, index: usize) -> &mut [T] {
        let (start, len_bytes) = self.aligned::<T>(index);
        // SAFETY: as in `slice`, and the caller says that nobody else touches it.
        unsafe { std::slice::from_raw_parts_mut(start, len_bytes / size_of::<T>()) }
    }

    /// A view.
    #[must_use]
    pub fn view(&self, index: usize) -> View {
        let argument =
            self.arguments.get(index).unwrap_or_else(|| panic!("there is no parameter {index}"));
        let dimensions = argument.dimensions as usize;
        assert!(argument.element_bytes > 0, "parameter {index} is no view");
        let extents = if dimensions == 0 {
            &[]
        } else {
            // SAFETY: the driver keeps shape and strides, each of `dimensions` words, for the time
            // of the launch.
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
    /// All its elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).product()
    }

    /// Whether it has no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the element of number `index`, counted in row-major order.
    #[must_use]
    pub fn get<T: Copy>(&self, index: usize) -> T {
        // SAFETY: `at` gives the place of an element that the driver found to lie in live,
        // initialised memory.
        unsafe { self.at::<T>(index).read_unaligned() }
    }

    /// Writes the element of number `index`, counted in row-major order.
    pub fn set<T: Copy>(&self, index: usize, value: T) {
        // SAFETY: as for `get`; that the kernel may write it is what it was registered with.
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
