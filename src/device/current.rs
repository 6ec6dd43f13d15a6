//! Which device this thread works on.

use std::borrow::Borrow;
use std::cell::{Cell, OnceCell, RefCell};
use std::marker::PhantomData;

use super::{Device, gpu};
use crate::error::{Error, Result};
use crate::sync::Mutex;

/// Names the device that threads start on.
const VARIABLE: &str = "RESIDENT_DEVICE";

static DEFAULT: Mutex<Option<Device>> = Mutex::new(None);

thread_local! {
    static SCOPES: RefCell<Vec<(u64, Device)>> = const { RefCell::new(Vec::new()) };
    static TICKET: Cell<u64> = const { Cell::new(0) };
    /// What the environment asks for, read once a thread.
    static ENVIRONMENT: OnceCell<Option<Result<Device>>> = const { OnceCell::new() };
}

/// Makes a device current on this thread until it is dropped, by [`Device::enter`]. Scopes nest;
/// one that outlives an inner one only leaves its own setting. Forgotten, it leaves the device
/// current on its thread.
#[derive(Debug)]
#[must_use = "the device is current only while this guard lives"]
pub struct Entered {
    ticket: u64,
    /// A scope belongs to the thread that entered it.
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        // A thread that is being torn down has no scopes left to leave.
        let left = SCOPES.try_with(|scopes| {
            let mut scopes = scopes.borrow_mut();
            scopes
                .iter()
                .position(|(ticket, _)| *ticket == self.ticket)
                .map(|index| scopes.remove(index))
        });
        // It may be the device's last handle, whose drop may run code of the user's: not under the
        // borrow.
        drop(left);
    }
}

impl Device {
    /// Makes this device current on this thread until the guard drops. Other threads, also ones
    /// started from here, are not affected. It asks nothing of the driver.
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
        SCOPES.with_borrow_mut(|scopes| scopes.push((ticket, self.clone())));
        Entered { ticket, not_send: PhantomData }
    }

    /// This thread's device: the one entered last; else the one that the environment variable
    /// `RESIDENT_DEVICE` names (`cpu`, `cuda:N`, `hip:N`; it is read once on each thread); else
    /// [`Device::set_default`]'s; else the first GPU that can be used, which is opened at the first
    /// call; else the embedded device.
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
    /// [`Error::NoDevice`] if `RESIDENT_DEVICE` names a device that cannot be used, or makes no
    /// sense.
    pub fn current() -> Result<Self> {
        if let Some(device) =
            SCOPES.with_borrow(|scopes| scopes.last().map(|(_, device)| device.clone()))
        {
            return Ok(device);
        }
        match ENVIRONMENT.with(|environment| environment.get_or_init(from_environment).clone()) {
            Some(device) => device,
            None => {
                // The lock is given back first: a GPU that is opened takes others.
                let set = DEFAULT.lock().clone();
                Ok(set.or_else(|| gpu::first().cloned()).unwrap_or_else(Self::cpu))
            }
        }
    }

    /// Sets the device for threads that entered none, unless `RESIDENT_DEVICE` names one: for
    /// `main`, before threads start.
    ///
    /// ```
    /// use resident::Device;
    ///
    /// if let Some(gpu) = Device::all().into_iter().max_by_key(|device| device.capacity().map_or(0, |capacity| capacity.free)) {
    ///     Device::set_default(gpu);                                         // the one with most room
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

/// The device that a name stands for.
pub(crate) fn named(name: &str) -> Result<Device> {
    let wanted = || format!("{VARIABLE}={name}");
    match name.split_once(':').unwrap_or((name, "0")) {
        ("cpu", "0") => Ok(Device::cpu()),
        ("hip", number) if number.parse::<usize>().is_ok() => Err(Error::no_device(
            wanted(),
            format!("this version of resident has no HIP backend; set {VARIABLE}=cpu, or unset it"),
        )),
        ("cuda", number) if number.parse::<usize>().is_ok() => {
            let ordinal = number.parse().unwrap_or_default();
            gpu::opened(ordinal).map_err(|reason| {
                Error::no_device(wanted(), format!("{reason}; set {VARIABLE}=cpu, or unset it"))
            })
        }
        _ => Err(Error::no_device(
            wanted(),
            format!("expected cpu, cuda:N or hip:N; set {VARIABLE} to one of them, or unset it"),
        )),
    }
}
