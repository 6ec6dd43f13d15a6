//! The current device of a thread.

use std::borrow::Borrow;
use std::cell::{Cell, OnceCell};
use std::marker::PhantomData;

use super::{Device, gpu};
use crate::error::{AtCall, Error, Result};
use resident_backend::DeviceKind;
use resident_backend::call_site::call_site;
use resident_backend::sync::{Mutex, ThreadList};

/// The environment variable that names the device on which threads start.
const VARIABLE: &str = "RESIDENT_DEVICE";

static DEFAULT: Mutex<Option<Device>> = Mutex::new(None);

thread_local! {
    /// The devices that this thread has entered, each with the number of its scope.
    static SCOPES: ThreadList<(u64, Device)> = const { ThreadList::new() };
    static TICKET: Cell<u64> = const { Cell::new(0) };
    /// The device that the environment variable names; read once per thread.
    static ENVIRONMENT: OnceCell<Option<Result<Device>>> = const { OnceCell::new() };
}

/// Keeps a device current on this thread until the guard drops; made by [`Device::enter`]. Scopes
/// may be nested, and may end in any order. If the guard is leaked, the device stays current on its
/// thread.
#[derive(Debug)]
#[must_use = "the device is current only while this guard lives"]
pub struct Entered {
    ticket: u64,
    /// Makes the type not `Send`: a scope belongs to its thread.
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let left = SCOPES.with(|scopes| {
            scopes.change(|scopes| {
                let index = scopes.iter().position(|(ticket, _)| *ticket == self.ticket);
                index.map(|index| scopes.remove(index))
            })
        });
        // This may be the last handle of the device. Dropping it may run user code, so it is
        // dropped after the borrow has ended.
        drop(left);
    }
}

impl Device {
    /// Makes this device current on this thread until the guard drops. Other threads, including
    /// those started from this one, are not affected. Makes no driver call.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray};
    ///
    /// let (outer, inner) = (Device::emulated(Emulation::new()), Device::cpu());
    /// let _outer = outer.enter();
    /// {
    ///     let _inner = inner.enter();
    ///     assert_eq!(Device::current()?, inner);
    /// }
    /// assert_eq!(Device::current()?, outer);
    /// assert_eq!(SmartArray::<f32, _>::zeros(10).gpu()?.device(), outer);
    /// # Ok::<(), resident::Error>(())
    /// ```
    pub fn enter(&self) -> Entered {
        let ticket = TICKET.get();
        TICKET.set(ticket + 1);
        let device = self.clone();
        SCOPES.with(|scopes| scopes.change(|scopes| scopes.push((ticket, device))));
        Entered { ticket, not_send: PhantomData }
    }

    /// The current device of this thread. It is the first device in this list that exists:
    ///
    /// 1. the device that this thread entered last ([`Device::enter`]);
    /// 2. the one that the environment variable `RESIDENT_DEVICE` names (`cpu`, `cuda:N`, `hip:N`,
    ///    in any case; each thread reads it once);
    /// 3. the one that [`Device::set_default`] set;
    /// 4. the first GPU that can be used, NVIDIA's before AMD's, which the first call opens;
    /// 5. the embedded device.
    ///
    /// ```
    /// use resident::Device;
    ///
    /// let device = Device::current()?;
    /// println!("working on {device}, a {}", device.model());
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if `RESIDENT_DEVICE` names a device that cannot be used, or is not a
    /// name of a device.
    #[track_caller]
    pub fn current() -> Result<Self> {
        let last = |scopes: &[(u64, Self)]| scopes.last().map(|(_, device)| device.clone());
        if let Some(device) = SCOPES.with(|scopes| scopes.read(last)) {
            return Ok(device);
        }
        // At the thread's end it is read again.
        let known = ENVIRONMENT.try_with(|known| known.get_or_init(from_environment).clone());
        match known.unwrap_or_else(|_| from_environment()) {
            Some(device) => device.at(call_site()),
            None => {
                // Opening a GPU takes other locks, so this lock is released first.
                let set = DEFAULT.lock().clone();
                Ok(set.or_else(|| gpu::first().cloned()).unwrap_or_else(Self::cpu))
            }
        }
    }

    /// Sets the device for threads that have entered none, unless `RESIDENT_DEVICE` names one. Call
    /// it in `main`, before threads start.
    ///
    /// ```
    /// use resident::Device;
    ///
    /// // The device with the most free memory:
    /// let free = |device: &Device| device.capacity().map_or(0, |capacity| capacity.free);
    /// if let Some(device) = Device::all().into_iter().max_by_key(free) {
    ///     Device::set_default(device);
    /// }
    /// ```
    pub fn set_default(device: impl Borrow<Self>) {
        *DEFAULT.lock() = Some(device.borrow().clone());
    }
}

fn from_environment() -> Option<Result<Device>> {
    let value = std::env::var_os(VARIABLE)?;
    Some(named(&value.to_string_lossy()))
}

/// The device with this name.
pub(crate) fn named(name: &str) -> Result<Device> {
    let wanted = || format!("{VARIABLE}={name}");
    let lower = name.trim().to_ascii_lowercase();
    match lower.split_once(':').unwrap_or((&lower, "0")) {
        ("cpu", "0") => Ok(Device::cpu()),
        (kind @ ("cuda" | "hip"), number) if number.parse::<usize>().is_ok() => {
            let ordinal = number.parse().unwrap_or_default();
            let kind = if kind == "hip" { DeviceKind::Hip } else { DeviceKind::Cuda };
            gpu::opened(kind, ordinal).map_err(|reason| {
                Error::no_device(wanted(), format!("{reason}; set {VARIABLE}=cpu, or unset it"))
            })
        }
        _ => Err(Error::no_device(
            wanted(),
            format!("expected cpu, cuda:N or hip:N; set {VARIABLE} to one of them, or unset it"),
        )),
    }
}
