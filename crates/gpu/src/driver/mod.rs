//! The drivers of GPUs: CUDA's, and AMD's HIP, which mirrors it. A driver is a table of functions;
//! what one of the two lacks, or has in another form, is optional in it. The rest of the backend
//! asks for functions, never for the vendor. Where other kinds of GPUs go says the list at the top
//! of the crate `resident-backend`.
//!
//! | file | contents |
//! |---|---|
//! | `functions`, `function` | the table; one function, its name and its errors |
//! | `status`, `attribute` | result codes; attributes of devices, by two numberings |
//! | `place` | what is current on a thread |
//! | `cuda_like_vendor` | the names and numbers of a vendor whose driver mirrors CUDA's |
//! | `copies`, `graphs`, `kernels` | what has two forms, as copies of planes |
//! | `descriptors` | the structs |
//! | `library` | opens libraries and looks functions up |
//! | `cuda`, `hip` | where each driver is found, and what it says |

pub(crate) mod attribute;
pub(crate) mod copies;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod cuda_like_vendor;
mod descriptors;
mod function;
mod functions;
pub(crate) mod graphs;
#[cfg(feature = "hip")]
pub(crate) mod hip;
pub(crate) mod kernels;
pub(crate) mod library;
mod place;
pub(crate) mod status;

use std::ffi::{c_int, c_void};
use std::ops::Deref;
use std::sync::OnceLock;

pub(crate) use attribute::DeviceAttribute;
pub(crate) use copies::{CopyEnd, CopyEnds, Extents, Pitch};
pub(crate) use cuda_like_vendor::CudaLikeVendor;
pub(crate) use descriptors::{AllocationProperties, Batch, DeviceAccess, MemoryLocation};
pub(crate) use function::DriverFunction;
pub(crate) use functions::{Functions, HostFunction};
pub(crate) use graphs::LineWork;
pub(crate) use kernels::FunctionAttribute;
pub(crate) use place::Place;
pub(crate) use status::{Status, invalid};

use library::Symbols;
use resident_backend::{BackendError, BackendErrorKind};

/// `CUstream`, `hipStream_t`.
pub(crate) type StreamHandle = *mut c_void;
/// `CUevent`, `hipEvent_t`.
pub(crate) type EventHandle = *mut c_void;
/// `CUmodule`, `hipModule_t`.
pub(crate) type ModuleHandle = *mut c_void;
/// `CUfunction`, `hipFunction_t`.
pub(crate) type FunctionHandle = *mut c_void;
/// `CUmemoryPool`, `hipMemPool_t`.
pub(crate) type PoolHandle = *mut c_void;

/// A driver: its functions, and what its vendor's users know it by. It lives as long as the
/// process.
#[derive(Debug)]
pub(crate) struct Driver {
    functions: Functions,
    pub vendor: &'static CudaLikeVendor,
    /// Asked for when the first device is opened.
    version: OnceLock<c_int>,
    /// Keeps the library open.
    symbols: Symbols,
}

/// A vendor's driver on this machine.
pub(crate) struct Installation {
    /// The driver. The error says what was searched for, and the next step.
    pub driver: fn() -> Result<&'static Driver, String>,
    /// The number of GPUs that the driver reports. The error contains what was searched for, what
    /// was found, and the next step.
    pub count: fn() -> Result<usize, String>,
    /// Why a device does not exist, where there are so many.
    pub beyond: fn(usize) -> String,
}

impl Deref for Driver {
    type Target = Functions;

    #[inline]
    fn deref(&self) -> &Functions {
        &self.functions
    }
}

impl Driver {
    /// The functions of a library.
    ///
    /// # Safety
    ///
    /// The library is a driver of the vendor.
    unsafe fn of(symbols: Symbols) -> Result<Self, String> {
        let vendor = symbols.vendor;
        // SAFETY: the caller's promise is passed on.
        let functions = unsafe { Functions::of(&symbols) };
        let functions = functions.map_err(|reason| {
            let oldest = (vendor.version_text)(vendor.version_min);
            format!("{reason}, which {} {oldest} and later have: update it", vendor.name)
        })?;
        Ok(Self { functions, vendor, version: OnceLock::new(), symbols })
    }

    /// The version: 12040 for CUDA 12.4, 50221153 for HIP 5.2; 0 before a device is opened.
    pub(crate) fn version(&self) -> c_int {
        self.version.get().copied().unwrap_or_default()
    }

    /// Asks for the driver's version. Fails if it is too old.
    pub(crate) fn expect_version(&self) -> Result<(), String> {
        let (mut version, ask, vendor) = (0, &self.functions.version, self.vendor);
        // SAFETY: the driver writes one `int`.
        let outcome = ask.check(unsafe { (ask.function)(&raw mut version) });
        outcome.map_err(|error| error.to_string())?;
        if version < vendor.version_min {
            let [has, wants] = [version, vendor.version_min].map(vendor.version_text);
            return Err(format!(
                "the driver supports {} {has}, but {wants} or later is needed: {}",
                vendor.name, vendor.update
            ));
        }
        let _same = self.version.set(version);
        Ok(())
    }

    /// The driver's version in its usual form: 12.4 for 12040.
    pub(crate) fn version_text(&self) -> String {
        (self.vendor.version_text)(self.version())
    }

    /// The number of devices. The error is the result code, and its description.
    fn count_devices(&self) -> Result<usize, (Status, String)> {
        // SAFETY: the function takes no pointer.
        let outcome = unsafe { (self.initialize.function)(0) };
        let described = |failed| (failed, self.vendor.describe(failed));
        if outcome != status::SUCCESS {
            return Err(described(outcome));
        }
        let mut count = 0;
        // SAFETY: the driver writes one `int`.
        match unsafe { (self.device_count.function)(&raw mut count) } {
            status::SUCCESS => Ok(count.max(0).unsigned_abs() as usize),
            failed => Err(described(failed)),
        }
    }

    /// The number of a device for other calls.
    pub(crate) fn device_number(&self, ordinal: usize) -> Result<c_int, BackendError> {
        let mut device = 0;
        // SAFETY: the driver writes one `int`.
        let outcome = unsafe { (self.device.function)(&raw mut device, ordinal as c_int) };
        self.device.check(outcome).map(|()| device)
    }

    /// An attribute of a device.
    pub(crate) fn attribute(
        &self,
        device: c_int,
        attribute: DeviceAttribute,
    ) -> Result<c_int, BackendError> {
        self.numbered_attribute(device, self.vendor.own(attribute.numbers()))
    }

    /// Whether a device registers host memory that the process may only read. Older drivers do not
    /// know the attribute.
    pub(crate) fn registers_read_only_memory(&self, device: c_int) -> bool {
        let attribute = self.vendor.read_only_registration;
        attribute
            .is_some_and(|number| self.numbered_attribute(device, number).is_ok_and(|it| it != 0))
    }

    /// As [`attribute`](Self::attribute), by the number that the driver gives it.
    fn numbered_attribute(&self, device: c_int, number: c_int) -> Result<c_int, BackendError> {
        let mut value = 0;
        let ask = &self.device_attribute;
        // SAFETY: the driver writes one `int`.
        ask.check(unsafe { (ask.function)(&raw mut value, number, device) }).map(|()| value)
    }

    /// The name that the vendor gave a device.
    pub(crate) fn name_of(&self, device: c_int) -> Result<String, BackendError> {
        let mut name = [0_u8; 256];
        let ask = &self.device_name;
        // SAFETY: the driver writes at most as many bytes as the call says.
        let outcome = unsafe { (ask.function)(name.as_mut_ptr().cast(), 256, device) };
        ask.check(outcome)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// The error of a driver without a function, by its name in CUDA and in HIP: one that every
    /// version has from the oldest on. What came later has another way.
    #[cold]
    pub(crate) fn lacks(&self, names: [&'static str; 2]) -> BackendError {
        let vendor = self.vendor;
        let call = vendor.own(names);
        BackendError {
            kind: BackendErrorKind::Driver { code: i64::from(status::NOT_SUPPORTED) },
            call,
            detail: format!(
                "{} {} has no function {call}, which {} {} and later have: update it",
                vendor.name,
                self.version_text(),
                vendor.name,
                (vendor.version_text)(vendor.version_min)
            ),
        }
    }
}
