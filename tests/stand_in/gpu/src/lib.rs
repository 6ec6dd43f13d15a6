//! The simulated GPU behind the stand-ins for CUDA's driver and for HIP: devices made of the
//! embedded device's engine, and the rules of CUDA's driver and HIP's runtime over them.
//!
//! * `interface`: what CUDA and HIP do differently, and the macros that define their functions
//! * `code`, `texts`: results, their names and descriptions
//! * `arguments`, `call`: arguments from C; what surrounds each function, which records calls,
//!   injects faults and stops unwinding
//! * `handle`, `machine`, `context`, `stream`, `capture`, `event`, `ledger`, `mappings`, `host`:
//!   the objects: handles, devices and their contexts, streams, their captures, events, memory
//!   accounting, memory that is mapped to reserved addresses, host memory
//! * `work`, `copy`, `fill`, `allocate`: work for an engine's stream
//! * `entry`, `module`, `kernel`, `code_launch`: modules, functions, launches
//! * `graph`: graphs of explicit nodes, and executable graphs
//! * `functions/`: what functions of both do that are alike but for their names
//! * `control`: the functions that the client calls
//!
//! Each shared object is built with this crate for itself, so two that are loaded into one process
//! have each devices, a record and faults of their own. Comments speak of CUDA where HIP is alike.
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
//! * With `Settings::reaches_pageable`, work accesses pageable host memory where a device's address
//!   is expected. It does so in the order of its stream, but a copy within the host is made by the
//!   caller, which first waits for the stream.
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
//! * Reserved addresses are those of a reservation of the engine, which has memory for the pages
//!   that are mapped and that the device may access. They are aligned as all addresses. Memory is
//!   mapped as a whole, and to one place at a time; when it is unmapped its contents are lost. An
//!   unmap does not wait for work that uses the memory: the engine reports it as a hazard.
//! * A graph has launches, copies and fills, and no other nodes. It is of the context in which it
//!   was made.
//! * Calls from a host function or from a kernel's function return NOT_PERMITTED.

pub mod allocate;
pub mod arguments;
pub mod call;
pub mod capture;
pub mod code;
mod code_launch;
pub mod context;
pub mod control;
pub mod copy;
pub mod entry;
pub mod event;
pub mod fill;
pub mod functions;
pub mod graph;
pub mod handle;
pub mod host;
pub mod interface;
pub mod kernel;
pub mod ledger;
pub mod machine;
pub mod mappings;
pub mod module;
pub mod stream;
pub mod texts;
pub mod work;
