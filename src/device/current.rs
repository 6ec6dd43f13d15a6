//! The current device of a thread, and its current stream.

use std::borrow::Borrow;
use std::cell::{Cell, OnceCell};
use std::marker::PhantomData;

use super::{Device, Stream, gpu};
use crate::error::{AtCall, Error, Result};
use resident_backend::call_site::call_site;
use resident_backend::sync::{Mutex, ThreadList};
use resident_backend::{DeviceKind, environment};

/// The environment variable that names the device on which threads start.
const VARIABLE: &str = "RESIDENT_DEVICE";

static DEFAULT: Mutex<Option<Device>> = Mutex::new(None);

thread_local! {
    /// What this thread has entered, the innermost scope last.
    static SCOPES: ThreadList<Scope> = const { ThreadList::new() };
    static TICKET: Cell<u64> = const { Cell::new(0) };
    /// The device that the environment variable names; read once per thread.
    static ENVIRONMENT: OnceCell<Option<Result<Device>>> = const { OnceCell::new() };
}

/// A scope, with its number.
struct Scope {
    ticket: u64,
    entered: Target,
}

/// What a scope makes current.
enum Target {
    /// The device, and its default stream.
    Device(Device),
    /// The stream, and its device.
    Stream(Stream),
}

impl Target {
    fn device(&self) -> &Device {
        match self {
            Self::Device(device) => device,
            Self::Stream(stream) => stream.device_ref(),
        }
    }

    fn stream(&self) -> Stream {
        match self {
            Self::Device(device) => device.stream(),
            Self::Stream(stream) => stream.clone(),
        }
    }

    /// Makes this current until the guard drops.
    fn enter(self) -> Entered {
        let ticket = TICKET.get();
        TICKET.set(ticket + 1);
        let scope = Scope { ticket, entered: self };
        SCOPES.with(|scopes| scopes.change(|scopes| scopes.push(scope)));
        Entered { ticket, not_send: PhantomData }
    }
}

/// What `read` finds in the innermost scope of this thread. `None` if there is no scope.
fn innermost<R>(read: impl FnOnce(&Target) -> R) -> Option<R> {
    SCOPES.with(|scopes| scopes.read(|scopes| scopes.last().map(|scope| read(&scope.entered))))
}

/// Keeps a device or a stream current on this thread until the guard drops; made by
/// [`Device::enter`] and [`Stream::enter`]. Scopes may be nested, and may end in any order. If the
/// guard is leaked, the device or stream stays current on its thread.
#[derive(Debug)]
#[must_use = "the device or stream is current only while this guard lives"]
pub struct Entered {
    ticket: u64,
    /// Makes the type not `Send`: a scope belongs to its thread.
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let left = SCOPES.with(|scopes| {
            scopes.change(|scopes| {
                let index = scopes.iter().position(|scope| scope.ticket == self.ticket);
                index.map(|index| scopes.remove(index))
            })
        });
        // This may be the last handle of the device. Dropping it may run user code, so it is
        // dropped after the borrow has ended.
        drop(left);
    }
}

impl Device {
    /// Makes this device current on this thread until the guard drops: calls that name no stream
    /// use its default stream. Other threads, including those started from this one, are not
    /// affected. Makes no driver call. [`Stream::enter`] makes another stream current too.
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
        Target::Device(self.clone()).enter()
    }

    /// The current device of this thread. It is the first device in this list that exists:
    ///
    /// 1. the device that this thread entered last ([`Device::enter`]), or that of the stream that
    ///    it entered last ([`Stream::enter`]);
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
        match innermost(|entered| entered.device().clone()) {
            Some(device) => Ok(device),
            None => Self::of_no_scope(),
        }
    }

    /// The current device of a thread that has entered none.
    #[track_caller]
    fn of_no_scope() -> Result<Self> {
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

impl Device {
    /// The stream of this device on which calls that name no stream queue work: the entered one if
    /// the innermost scope of this thread is a stream of this device, else the default stream.
    #[inline]
    pub(crate) fn current_stream(&self) -> Stream {
        self.entered_stream().unwrap_or_else(|| self.stream())
    }

    /// The stream of the innermost scope of this thread, if it is a stream of this device.
    #[inline]
    pub(crate) fn entered_stream(&self) -> Option<Stream> {
        innermost(|entered| match entered {
            Target::Stream(stream) if stream.device_ref() == self => Some(stream.clone()),
            _ => None,
        })
        .flatten()
    }
}

impl Stream {
    /// Makes this stream and its device current on this thread until the guard drops: calls that
    /// name no stream queue their work here, as in CuPy's `with stream:`. These are `launch`,
    /// `gpu`, `fill`, `assign`, `get`, `set`, the functions of [`ops`](crate::ops), the
    /// constructors and the methods of device arrays, and the downloads of `host`. Calls that use
    /// another device than this stream's use the default stream of that device.
    ///
    /// The innermost scope wins: within this one, [`Device::enter`] makes that device's default
    /// stream current. Other threads are not affected. Makes no driver call.
    ///
    /// ```
    /// use resident::{Device, Grid, InOut, Kernel, SmartArray};
    ///
    /// let double = Kernel::<(InOut<f32>,)>::new("double")
    ///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
    /// let stream = Device::cpu().new_stream()?;
    /// let mut array = SmartArray::<f32, _>::ones(100);
    /// {
    ///     let _scope = stream.enter();
    ///     double.launch(Grid::cover(100), (&mut array,))?;      // on `stream`
    ///     assert_eq!(array.gpu()?.stream(), stream);
    ///     assert_eq!(Device::current()?, stream.device());
    /// }
    /// assert_eq!(array.host()?[0], 2.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    pub fn enter(&self) -> Entered {
        Target::Stream(self.clone()).enter()
    }

    /// The stream of calls that name no stream: the one that this thread entered last, or the
    /// default stream of the current device.
    #[track_caller]
    pub(crate) fn current() -> Result<Self> {
        match innermost(Target::stream) {
            Some(stream) => Ok(stream),
            None => Device::of_no_scope().map(|device| device.stream()),
        }
    }

    /// Whether the innermost scope of this thread is another stream of the same device.
    #[inline]
    pub(crate) fn is_other_entered(&self) -> bool {
        let is_other = |entered: &Target| match entered {
            Target::Stream(stream) => stream.device == self.device && stream != self,
            Target::Device(_) => false,
        };
        innermost(is_other).unwrap_or(false)
    }
}

fn from_environment() -> Option<Result<Device>> {
    let value = environment::text(VARIABLE)?;
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
