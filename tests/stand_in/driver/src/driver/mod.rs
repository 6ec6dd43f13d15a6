//! The driver: CUDA's functions over the embedded device's engine.
//!
//! | file | what it is |
//! |---|---|
//! | `code`, `arguments`, `call` | results; arguments from C; what each function is wrapped in: the record, faults, no unwinding |
//! | `handle`, `machine`, `context`, `stream`, `event`, `ledger`, `host` | the objects: who has which handle; devices and their primary contexts; memory of the device and of the host |
//! | `work`, `copy`, `fill`, `allocate` | what is put into an engine's queue |
//! | `module`, `ptx`, `kernel` | modules, functions, launches |
//! | `functions/` | the `cu*` functions themselves, by chapter of CUDA's manual |
//! | `control` | what the client calls |
//!
//! Where CUDA leaves things open, or the stand-in is simpler:
//!
//! * A context is the primary context of its device; there are no others. It ends with its last
//!   release, and with it its streams, modules and memory; the next retain makes a new one. The
//!   devices' engines are made when the first context is, and end with the last.
//! * A stream belongs to its context: work is refused (INVALID_HANDLE) if another is current.
//!   Queries, waits and the destruction of streams and events work with any context current. An
//!   event of another context may be waited for.
//! * The NULL stream does what CUDA says of the legacy default stream: its work comes behind all
//!   work of blocking streams, and theirs behind its.
//! * Host memory that is not page-locked: a copy to the device is staged at once and runs later; a
//!   copy to the host returns when it is done.
//! * Registered memory is exactly the bytes that were asked for; with `Settings::locks_whole_pages`
//!   it is whole pages, and a second registration on one page is refused. Memory stays registered
//!   until it is unregistered. A copy over two registrations, or half in one, is refused (INVALID_VALUE).
//! * An address that is no memory, or too little of it, makes the work fail when it runs:
//!   ILLEGAL_ADDRESS, and the context is lost: all its calls return that from then on. Work behind
//!   the failed work of the same stream does not run, nor that of streams that waited for it.
//! * A kernel cannot touch memory of another device, even where peer access is enabled; copies can,
//!   whether it is or not, as in CUDA.
//! * A pool holds what was allocated from it, freed bytes included, until a wait of the host finds
//!   it above its release threshold, or it is trimmed. Memory of a pool is not fragmented. Other
//!   allocations do not get what a pool holds.
//! * From a host function or a kernel's, calls return NOT_PERMITTED.

mod allocate;
mod arguments;
mod call;
mod code;
mod context;
mod control;
mod copy;
mod event;
mod fill;
mod functions;
mod handle;
mod host;
mod kernel;
mod ledger;
mod machine;
mod module;
mod ptx;
mod stream;
mod work;
