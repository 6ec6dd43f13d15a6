//! What CUDA's driver and HIP's runtime do differently.

use std::sync::{Arc, OnceLock};

use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::entry::Image;
use crate::handle::Handle;
use crate::kernel::Shape;
use crate::module::Function;
use resident_stand_in_client::settings::Values;

/// Rules that are values.
#[derive(Debug)]
pub struct Rules {
    /// Calls whose failure a caller cannot handle: a thread's mode, for example.
    pub unfailing: &'static [&'static str],
    /// The names of calls: see [`capture`](crate::capture).
    pub potentially_unsafe: &'static str,
    /// The codes with which a context is lost.
    pub sticky: &'static [Code],
    /// The code for calls from host functions and kernels.
    pub not_permitted: Code,
    /// Whether an allocation of no bytes is null, and not an error.
    pub has_empty_allocations: bool,
    /// Whether queries of any object need a current context that is not lost.
    pub needs_current_context: bool,
    /// Whether an executable graph that is destroyed is kept until its launches are complete.
    pub keeps_running_graphs: bool,
    /// Multiprocessors of each device.
    pub multiprocessors: i32,
    /// The dynamic shared memory of a block in bytes, unless a function's attribute allows more.
    pub shared_bytes: i32,
}

/// CUDA's driver, or HIP's runtime.
pub trait Interface: Sync {
    /// The settings, if none were configured.
    fn default_settings(&self) -> Values;

    /// The rules that are values.
    fn rules(&self) -> &'static Rules;

    /// Whether the number may be that of a stream.
    fn is_stream(&self, _handle: Handle) -> bool {
        true
    }

    /// Whether the host sees all that copies wrote before an event with these flags. Otherwise it
    /// may see old bytes of memory that needs a release.
    fn releases_to_host(&self, _event_flags: u32) -> bool {
        true
    }

    /// Whether the host may see old bytes of memory that was allocated with these flags, until an
    /// event releases the new ones to it.
    fn needs_release(&self, _host_flags: u32) -> bool {
        false
    }

    /// Called before the settings change.
    fn before_configure(&self) {}

    /// Called before the devices are created.
    fn before_devices(&self) {}

    /// The context in which this thread's calls work.
    fn current_context(&self) -> Outcome<Arc<Context>>;

    /// Reads the image of a module. Rejects one that the device cannot run.
    fn read_image(&self, image: &[u8]) -> Outcome<Image>;

    /// Rejects launches that do not fit the device or the kernel's launch bounds.
    fn check_shape(&self, function: &Function, shape: Shape) -> Outcome;

    /// The number of blocks of this size that can be resident on one multiprocessor.
    fn blocks_per_multiprocessor(&self, threads: u32, shared_bytes: u64) -> u32;
}

/// The maximum number of threads per block.
pub const THREADS_MAX: u32 = 1024;

static INTERFACE: OnceLock<&'static dyn Interface> = OnceLock::new();

/// Says which interface this shared object has: whatever is called from outside says it first.
pub fn choose(interface: &'static dyn Interface) {
    INTERFACE.get_or_init(|| interface);
}

/// The rules of this shared object.
pub(crate) fn rules() -> &'static Rules {
    interface().rules()
}

/// The interface of this shared object.
pub(crate) fn interface() -> &'static dyn Interface {
    *INTERFACE.get().expect("each function that is called from outside chooses it")
}

/// Defines functions that are exported under their names, each run by `$run`. Each has a body, or
/// is `=` another function, which gets its arguments.
#[macro_export]
macro_rules! exported_functions {
    ($run:path;) => {};
    (
        $run:path;
        $name:ident = $($function:ident)::+($($argument:ident: $kind:ty),* $(,)?);
        $($rest:tt)*
    ) => {
        $crate::exported_functions! {
            $run;
            $name($($argument: $kind),*) { $($function)::+($($argument),*) }
            $($rest)*
        }
    };
    ($run:path; $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block $($rest:tt)*) => {
        /// Implements the function of the manual, as far as the stand-in supports it.
        ///
        /// # Safety
        ///
        /// As in the manual: pointers are valid for the sizes that it requires.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the manual's name")]
        unsafe extern "C" fn $name($($argument: $kind),*) -> u32 {
            $run(stringify!($name), move || -> $crate::code::Outcome { $body })
        }

        $crate::exported_functions! { $run; $($rest)* }
    };
}

/// Defines functions that are rejected with any arguments. They can ignore their arguments, because
/// in the C calling convention the caller cleans them up.
#[macro_export]
macro_rules! unsupported_functions {
    ($interface:expr; $($name:ident)*) => {$(
        /// Not supported.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the manual's name")]
        extern "C" fn $name() -> u32 {
            $crate::call::unsupported($interface, stringify!($name))
        }
    )*};
}
