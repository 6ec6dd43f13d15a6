//! Kernels: the host functions registered for entries, and launches.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use crate::arguments::In;
use crate::code::{Code, Outcome};
use crate::code_launch::CodeLaunch;
use crate::context::Context;
use crate::entry::Slot;
use crate::handle::{self, Handle};
use crate::interface::interface;
use crate::module::Function;
use crate::stream::Stream;
use crate::{call, host, work};

use resident_backend::grid::Grid;
use resident_backend::{Address, KernelBody, PackedArguments, PackedArray, rust_body};
use resident_stand_in_client::protocol::{
    Access, Length, Parameter, RawArgument, RawLaunch, RunLaunch,
};

/// A host function that replaces a kernel.
#[derive(Debug)]
pub struct HostKernel {
    pub parameters: Vec<Parameter>,
    /// `None` if only its parameters are declared.
    pub run: Option<RunLaunch>,
    pub function: *const c_void,
}

// SAFETY: the client registers functions that are `Send + Sync + 'static`.
unsafe impl Send for HostKernel {}
// SAFETY: as above.
unsafe impl Sync for HostKernel {}

/// The blocks, the threads of a block, and the shared memory of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
}

static KERNELS: Mutex<Option<HashMap<String, Arc<HostKernel>>>> = Mutex::new(None);

/// Registers a host function for kernels with this name.
pub fn register(name: String, kernel: HostKernel) {
    kernels().get_or_insert_default().insert(name, Arc::new(kernel));
}

/// Queues a launch. `values` points to one pointer per parameter.
pub fn launch(
    context: &Context,
    stream: &Stream,
    function: &Function,
    shape: Shape,
    values: In<*const c_void>,
) -> Outcome {
    interface().check_shape(function, shape)?;
    let name = &function.entry.name;
    let kernel = find(name);
    let slots = &function.entry.parameters;
    if let Some(reason) = kernel.as_ref().and_then(|kernel| misfit(&kernel.parameters, slots)) {
        call::note(format!("kernel \"{name}\": {reason}"));
        return Err(Code::LAUNCH_FAILED);
    }
    let values = self::values(function, values)?;
    let mut packing = Packing {
        context,
        values: &values,
        arguments: PackedArguments::default(),
        prepared: Vec::new(),
    };
    let name = Arc::from(name.as_str());
    let body: Arc<dyn KernelBody> = match (kernel, &function.code) {
        (Some(kernel), _) if kernel.run.is_some() => {
            for (index, parameter) in kernel.parameters.iter().enumerate() {
                packing.add(index, *parameter)?;
            }
            let prepared = std::mem::take(&mut packing.prepared);
            HostLaunch { kernel, shape, prepared }.into_body(name)
        }
        (declared, Some((library, index))) => {
            let declared = declared.as_ref().map(|kernel| &*kernel.parameters);
            let kernel = (Arc::clone(library), *index);
            CodeLaunch::new(name, kernel, shape, &mut packing, declared)?.into_body()
        }
        _ => {
            call::note(format!(
                "kernel \"{name}\" was launched, but the stand-in for NVRTC did not compile it, \
                 and no host function is registered under that name"
            ));
            return Err(Code::LAUNCH_FAILED);
        }
    };
    work::submit_kernel(stream, context, body, packing.arguments).map(drop)
}

/// The bytes of a launch's parameters, to which `values` points.
pub fn values(function: &Function, values: In<*const c_void>) -> Outcome<Vec<Vec<u8>>> {
    let slots = function.entry.parameters.iter().enumerate();
    slots.map(|(index, slot)| value(values, index, *slot)).collect()
}

/// The host function registered for an entry's name, or for the source name of a mangled C++ name.
pub fn find(name: &str) -> Option<Arc<HostKernel>> {
    let kernels = kernels();
    let kernels = kernels.as_ref()?;
    kernels.get(name).or_else(|| kernels.get(source_name(name)?)).cloned()
}

/// `blur` of `_Z4blurPf`.
fn source_name(name: &str) -> Option<&str> {
    let mangled = name.strip_prefix("_Z")?;
    let digits = mangled.find(|character: char| !character.is_ascii_digit())?;
    let (length, rest) = mangled.split_at(digits);
    rest.get(..length.parse().ok()?)
}

/// The reason why a host function does not match a kernel with these parameters.
fn misfit(parameters: &[Parameter], slots: &[Slot]) -> Option<String> {
    if parameters.len() != slots.len() {
        return Some(format!(
            "it has {} parameters, the host function {}",
            slots.len(),
            parameters.len()
        ));
    }
    let expected = |parameter: &Parameter| match *parameter {
        Parameter::Scalar { len_bytes } => len_bytes as usize,
        Parameter::Pointer { .. } => 8,
        Parameter::View { dimensions, .. } => 8 + 16 * dimensions as usize,
    };
    let wrong = parameters
        .iter()
        .zip(slots)
        .position(|(parameter, slot)| expected(parameter) != slot.len_bytes)?;
    Some(format!(
        "its parameter {wrong} has {} bytes, that of the host function {}",
        slots[wrong].len_bytes,
        expected(&parameters[wrong])
    ))
}

fn value(values: In<*const c_void>, index: usize, slot: Slot) -> Outcome<Vec<u8>> {
    let start = In::<u8>::at(values.nth(index)?);
    (0..slot.len_bytes).map(|offset| start.nth(offset)).collect()
}

/// An argument for the host function, before the engine resolves device addresses.
#[derive(Debug)]
pub enum Prepared {
    Scalar(Vec<u8>),
    /// Device memory: the index of the engine's pointer, the size in bytes, and the extents of a
    /// view.
    Array {
        pointer: usize,
        len_bytes: u64,
        element_bytes: u32,
        extents: Vec<i64>,
    },
    /// Mapped pinned host memory, or pageable memory that the device reaches.
    Mapped {
        start: u64,
        len_bytes: u64,
        element_bytes: u32,
        extents: Vec<i64>,
    },
}

/// Converts parameters into the engine's arguments.
pub struct Packing<'a> {
    context: &'a Context,
    pub values: &'a [Vec<u8>],
    arguments: PackedArguments,
    pub prepared: Vec<Prepared>,
}

impl Packing<'_> {
    /// Adds a parameter to `prepared`.
    pub fn add(&mut self, index: usize, parameter: Parameter) -> Outcome {
        let prepared = match parameter {
            Parameter::Scalar { .. } => Prepared::Scalar(self.values[index].clone()),
            Parameter::Pointer { access, length } => {
                let address = self.word(index, 0);
                let len_bytes = self.length(address, length)?;
                self.array(address, access, len_bytes, None)
            }
            Parameter::View { dimensions, element_bytes, access } => {
                let extents = (0..2 * dimensions as usize)
                    .map(|word| self.word(index, word + 1) as i64)
                    .collect();
                self.array(self.word(index, 0), access, 0, Some((element_bytes, extents)))
            }
        };
        self.prepared.push(prepared);
        Ok(())
    }

    /// The engine's pointer for an address of device memory, of which the engine does not know how
    /// many bytes are accessed there.
    pub fn pointer(&mut self, address: u64) -> Option<usize> {
        self.context.device.ledger().in_engine(address)?;
        match self.array(address, Access::Read, 0, None) {
            Prepared::Array { pointer, .. } => Some(pointer),
            _ => None,
        }
    }

    /// The eight-byte word of a parameter.
    pub fn word(&self, index: usize, word: usize) -> u64 {
        let bytes =
            self.values[index].get(8 * word..8 * word + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    }

    fn length(&self, address: u64, length: Length) -> Outcome<u64> {
        match length {
            Length::Bytes(len_bytes) => Ok(len_bytes),
            Length::ToEnd => Ok(room(self.context, address)),
            Length::Counted { by, element_bytes } => {
                let count = match self.values.get(by as usize).map(Vec::as_slice) {
                    Some(&[a, b, c, d]) => u64::from(u32::from_le_bytes([a, b, c, d])),
                    Some(bytes) if bytes.len() == 8 => self.word(by as usize, 0),
                    _ => {
                        call::note(format!(
                            "parameter {by} counts the elements of another but is not an integer \
                             of 4 or 8 bytes"
                        ));
                        return Err(Code::LAUNCH_FAILED);
                    }
                };
                Ok(count.saturating_mul(element_bytes))
            }
        }
    }

    /// Adds an array, passed as a pointer or as a view, to the engine's arguments.
    fn array(
        &mut self,
        address: u64,
        access: Access,
        len_bytes: u64,
        view: Option<(u32, Vec<i64>)>,
    ) -> Prepared {
        let (element_bytes, extents) = view.clone().unwrap_or((0, Vec::new()));
        let allocation = self.context.device.ledger().in_engine(address);
        if allocation.is_none() && host::is_accessible(address) {
            return Prepared::Mapped { start: address, len_bytes, element_bytes, extents };
        }
        // A view can extend below its first element, so the engine gets the allocation and an
        // offset. If no allocation contains the address, the engine reports an error.
        let start = allocation.map_or(address, |(start, _)| start);
        let words = &mut self.arguments.words;
        let at_word = words.len() as u32;
        match &view {
            None => words.push(len_bytes),
            Some((_, extents)) => {
                words.push(extents.len() as u64 / 2);
                words.extend(extents.iter().map(|extent| *extent as u64));
            }
        }
        self.arguments.arrays.push(PackedArray {
            address: Address(start),
            origin_bytes: address - start,
            element_bytes: if view.is_some() { element_bytes } else { 1 },
            at_word,
            is_flat: view.is_none(),
            access: access_of(access),
        });
        Prepared::Array {
            pointer: self.arguments.arrays.len() - 1,
            len_bytes,
            element_bytes,
            extents,
        }
    }
}

/// The bytes from an address to the end of its memory. Returns 1 if there is no memory at the
/// address, so that the engine reports the error.
fn room(context: &Context, address: u64) -> u64 {
    let device = context.device.ledger().in_engine(address).map(|(_, end)| end);
    let end = device.or_else(|| host::around(address).map(|range| range.start + range.len_bytes));
    end.map_or(1, |end| end - address)
}

fn access_of(access: Access) -> resident_core::Access {
    match access {
        Access::Read => resident_core::Access::Read,
        Access::Write => resident_core::Access::Overwrite,
        Access::ReadWrite => resident_core::Access::ReadWrite,
    }
}

/// One launch.
struct HostLaunch {
    kernel: Arc<HostKernel>,
    shape: Shape,
    prepared: Vec<Prepared>,
}

impl HostLaunch {
    /// The launch as a body of the engine.
    fn into_body(self, name: Arc<str>) -> Arc<dyn KernelBody> {
        let run = move |_: Grid, _: &[u64], pointers: &[*mut u8]| self.run(pointers);
        // SAFETY: the host function was registered with the memory that it accesses and gets only
        // pointers to that memory. The engine computed these pointers from the footprints that
        // `Packing` made from the registration. Scalars are its own.
        unsafe { rust_body(name, run) }
    }

    fn run(&self, pointers: &[*mut u8]) {
        let raw = |prepared: &Prepared| match prepared {
            Prepared::Scalar(bytes) => {
                argument(bytes.as_ptr().cast_mut(), bytes.len() as u64, 0, &[])
            }
            Prepared::Array { pointer, len_bytes, element_bytes, extents } => {
                argument(pointers[*pointer], *len_bytes, *element_bytes, extents)
            }
            Prepared::Mapped { start, len_bytes, element_bytes, extents } => argument(
                std::ptr::with_exposed_provenance_mut(*start as usize),
                *len_bytes,
                *element_bytes,
                extents,
            ),
        };
        let arguments: SmallVec<[RawArgument; 8]> = self.prepared.iter().map(raw).collect();
        let Shape { grid, block, shared_bytes } = self.shape;
        let launch = RawLaunch {
            grid,
            block,
            shared_bytes,
            argument_count: arguments.len() as u32,
            arguments: arguments.as_ptr(),
        };
        let Some(run) = self.kernel.run else { return };
        // SAFETY: the function and its runner were registered together (`HostKernel`); the launch
        // is live during the call.
        let code = unsafe { run(self.kernel.function, &raw const launch) };
        if code != 0 {
            work::fail_with(Code(code));
        }
    }
}

fn argument(start: *mut u8, len_bytes: u64, element_bytes: u32, extents: &[i64]) -> RawArgument {
    RawArgument {
        start,
        len_bytes,
        extents: extents.as_ptr(),
        dimensions: extents.len() as u32 / 2,
        element_bytes,
    }
}

/// Queues a host function. A stream callback is called even after a failure and receives the error;
/// other host functions are then not called.
pub fn launch_host(context: &Context, stream: &Stream, function: HostFunction) -> Outcome {
    // The context's handle rather than the context: a queued body that owned its context would keep
    // itself and the context alive forever.
    let context_of = context.handle;
    let run = move |_: Grid, _: &[u64], _: &[*mut u8]| function.call(context_of);
    // SAFETY: a host function in stream order gets no device memory.
    let body = unsafe { rust_body(Arc::from("host function"), run) };
    let is_told = matches!(function, HostFunction::Callback { .. });
    work::submit_host(stream, context, body, is_told).map(drop)
}

/// A host function in stream order.
#[derive(Clone, Copy, Debug)]
pub enum HostFunction {
    /// `cuLaunchHostFunc`.
    Plain { function: unsafe extern "C" fn(*mut c_void), data: *mut c_void },
    /// `cuStreamAddCallback`.
    Callback {
        function: unsafe extern "C" fn(u64, u32, *mut c_void),
        stream: u64,
        data: *mut c_void,
    },
}

// SAFETY: CUDA calls such functions on its own thread, and its manual requires callers to allow
// that.
unsafe impl Send for HostFunction {}
// SAFETY: as for `Send` above; the function is called once.
unsafe impl Sync for HostFunction {}

impl HostFunction {
    fn call(self, context: Handle) {
        match self {
            // SAFETY: the caller of the driver guarantees that the function may be called once with
            // its data, on any thread.
            Self::Plain { function, data } => unsafe { function(data) },
            Self::Callback { function, stream, data } => {
                let status = handle::context(context).and_then(|context| context.status());
                // SAFETY: as above.
                unsafe { function(stream, status.err().unwrap_or(Code::SUCCESS).0, data) }
            }
        }
    }
}

fn kernels() -> MutexGuard<'static, Option<HashMap<String, Arc<HostKernel>>>> {
    KERNELS.lock().unwrap_or_else(PoisonError::into_inner)
}
