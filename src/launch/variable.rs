//! Variables of modules, which the host reads and writes.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use crate::device::{Device, Stream, call_error};
use crate::element::Element;
use crate::error::{AtCall, CalledAt, Error, Result};
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::{GpuSource, LoadError, ModuleVariable, Program};
use resident_documents::{quoted, visible, visible_lines};

/// A `__device__`, `__constant__` or `__managed__` variable of the module of a source, of elements
/// of type `T`: see [`GpuSource::variable`](crate::GpuSource::variable), whose example shows it.
///
/// Each device has a variable of its own. Reads and writes wait for all work that was queued on the
/// device before, so they are ordered against the launches of its kernels. They are rare; what
/// changes with each launch is better an argument. They are no transfers of arrays, and no audit
/// counts them.
///
/// Whatever is written is what kernels of the module read: `Kernel::cuda` asks that they comply
/// with their signature then too.
pub struct Variable<T> {
    source: GpuSource,
    name: Arc<str>,
    /// Those found before, by the numbers of their devices.
    found: Mutex<HashMap<u64, Arc<dyn ModuleVariable>>>,
    element: PhantomData<fn(T) -> T>,
}

impl<T: Element> Variable<T> {
    pub(super) fn new(source: GpuSource, name: Arc<str>) -> Self {
        Self { source, name, found: Mutex::default(), element: PhantomData }
    }

    /// The name in the source.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes the variable on the current device, once all work queued there has completed.
    ///
    /// # Errors
    ///
    /// - [`Shape`](crate::Error::Shape) if the values have another length in bytes than it.
    /// - [`Compile`](crate::Error::Compile) if the source lacks the variable, or does not compile.
    /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
    ///   kernel body.
    /// - [`Backend`](crate::Error::Backend), [`DeviceLost`](crate::Error::DeviceLost) and
    ///   [`NoDevice`](crate::Error::NoDevice) as for other calls of devices.
    #[track_caller]
    pub fn write(&self, values: &[T]) -> Result<()> {
        let site = call_site();
        let device = Device::current().at(site)?;
        self.write_to(&device, values, site).at(site)
    }

    /// As [`write`](Self::write), on the device of a stream: later work of this stream, and of all
    /// others of the device, sees the values.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    #[track_caller]
    pub fn write_on(&self, stream: &Stream, values: &[T]) -> Result<()> {
        let site = call_site();
        self.write_to(stream.device_ref(), values, site).at(site)
    }

    /// The values on the current device, once all work queued there has completed.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write); [`Shape`](crate::Error::Shape) if its length is no multiple of an
    /// element's.
    #[track_caller]
    pub fn read(&self) -> Result<Vec<T>> {
        let site = call_site();
        let device = Device::current().at(site)?;
        self.read_from(&device, site).at(site)
    }

    fn write_to(&self, device: &Device, values: &[T], site: CallSite) -> Result<()> {
        let variable = self.on(device)?;
        let bytes: &[u8] = bytemuck::cast_slice(values);
        if bytes.len() != variable.len_bytes() {
            return Err(self.of_another_size(variable.len_bytes(), bytes.len()));
        }
        device.wait_for_all(site)?;
        let fault = |error| call_error(device, &visible(&self.name), "writing a variable", &error);
        variable.write(bytes).map_err(fault)
    }

    fn read_from(&self, device: &Device, site: CallSite) -> Result<Vec<T>> {
        let variable = self.on(device)?;
        let len_bytes = variable.len_bytes();
        if size_of::<T>() == 0 || !len_bytes.is_multiple_of(size_of::<T>()) {
            return Err(self.of_another_size(len_bytes, size_of::<T>()));
        }
        let mut values = vec![T::zeroed(); len_bytes / size_of::<T>()];
        device.wait_for_all(site)?;
        let fault = |error| call_error(device, &visible(&self.name), "reading a variable", &error);
        variable.read(bytemuck::cast_slice_mut(&mut values)).map_err(fault)?;
        Ok(values)
    }

    fn on(&self, device: &Device) -> Result<Arc<dyn ModuleVariable>> {
        let found = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(variable) = found().get(&device.number()) {
            return Ok(Arc::clone(variable));
        }
        let variable = device.backend().variable(&self.program(), &self.name);
        let variable = variable.map_err(|fault| self.not_found(device, fault))?;
        found().insert(device.number(), Arc::clone(&variable));
        Ok(variable)
    }

    /// The source as a program, whose kernel is any of its own.
    fn program(&self) -> Program {
        let mut entries = self.source.entries.all();
        entries.extend(self.source.entry.clone());
        let kernel = entries.into_iter().next().unwrap_or_else(|| Arc::clone(&self.name));
        Program { kernel, source: self.source.clone(), parameters: Box::default() }
    }

    #[cold]
    fn not_found(&self, device: &Device, fault: LoadError) -> Error {
        match fault {
            LoadError::Program(log) => Error::Compile {
                call: CalledAt::UNKNOWN,
                kernel: format!("of the variable {}", quoted(&self.name)),
                device: device.name(),
                log: visible_lines(&log),
            },
            LoadError::Refused(error) => {
                call_error(device, &visible(&self.name), "looking for a variable", &error)
            }
        }
    }

    #[cold]
    fn of_another_size(&self, expected: usize, seen: usize) -> Error {
        Error::Shape {
            call: CalledAt::UNKNOWN,
            operation: format!("an access to the variable `{}`", visible(&self.name)),
            expected: format!("{expected} bytes, the size of the variable"),
            seen: format!("{seen} bytes, of elements of {} bytes", size_of::<T>()),
            instead: "give the elements the type of the source's, and pass all of them".into(),
        }
    }
}

impl<T> Clone for Variable<T> {
    fn clone(&self) -> Self {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self {
            source: self.source.clone(),
            name: Arc::clone(&self.name),
            found: Mutex::new(found),
            element: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Variable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variable({})", visible(&self.name))
    }
}
