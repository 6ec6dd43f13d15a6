//! The driver: CUDA's functions, implemented with the embedded device's engine.
//!
//! * `code`, `arguments`, `call`: results; arguments from C; the wrapper of each function, which
//!   records calls, injects faults and stops unwinding
//! * `handle`, `machine`, `context`, `stream`, `capture`, `event`, `ledger`, `host`: the objects:
//!   handles, devices and their contexts, streams, their captures, events, memory accounting, host
//!   memory
//! * `work`, `copy`, `fill`, `allocate`: work for an engine's queue
//! * `image`, `ptx`, `entry`, `module`, `kernel`, `code_launch`: modules, functions, launches
//! * `interface`: names of calls and limits
//! * `functions/`: the `cu*` functions themselves, by chapter of CUDA's manual
//! * `control`: the functions that the client calls
//!
//! The stand-in for HIP is made of the same files, but for `code`, `image`, `interface`, `ptx` and
//! `functions/`.
//!
//! Where CUDA leaves the behaviour open, or the stand-in is simpler:
//!
//! * A primary context ends with its last release, together with its streams, modules and memory;
//!   the next retain creates a new one. The devices' engines are created with the first context and
//!   end with the last.
//! * A stream belongs to its context: work is rejected (INVALID_HANDLE) while another context is
//!   current. Queries, waits and the destruction of streams and events work with any current
//!   context. A stream may wait for an event of another context.
//! * The NULL stream is CUDA's legacy default stream: it and all blocking streams wait for each
//!   other.
//! * With pageable host memory, a copy to the device is staged immediately and runs later; a copy
//!   to the host returns when it is complete.
//! * Memory is registered (page-locked) by exact bytes. With `Settings::locks_whole_pages` a
//!   registration that shares a page with another is rejected, and all addresses on the pages count
//!   as pinned. Memory stays registered until it is unregistered. A copy that spans two
//!   registrations, or is only partly registered, is rejected (INVALID_VALUE).
//! * An invalid address, or one with too little memory, makes the work fail with ILLEGAL_ADDRESS
//!   when it runs. The context is then lost, and all its calls return that code. Later work of the
//!   same stream, and of streams that waited for it, does not run. From the first call that returns
//!   the code, no work of the context begins and no copy to the host is running; a kernel that had
//!   begun runs to its end.
//! * A compiled kernel gets the host's addresses in place of the device's: in its pointers, its
//!   views, and in each word of a struct or integer that is an address of its device. It does not
//!   get them for addresses in device memory. An access beyond its memory may end the process.
//! * A kernel cannot access memory of another device, even with peer access enabled. Copies can,
//!   with or without peer access, as in CUDA.
//! * A pool keeps freed bytes until it is trimmed, or until the host waits while the pool is above
//!   its release threshold. Pool memory is not fragmented. Other allocations cannot use bytes that
//!   a pool keeps.
//! * Calls from a host function or from a kernel's function return NOT_PERMITTED.

mod allocate;
mod arguments;
mod call;
mod capture;
mod code;
mod code_launch;
mod context;
pub(crate) mod control;
mod copy;
mod entry;
mod event;
mod fill;
mod functions;
mod handle;
mod host;
mod image;
mod interface;
mod kernel;
mod ledger;
mod machine;
mod module;
mod ptx;
mod stream;
mod work;
