//! Allocates and frees device memory.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::call;
use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::handle::Handle;
use crate::interface::rules;
use crate::ledger::Allocation;
use crate::machine::settings;
use crate::stream::Stream;
use crate::work;
use resident_backend::Address;

/// What the engine's addresses are multiples of.
const ALIGNMENT_BYTES: u64 = 256;

/// Allocates memory outside any pool.
pub fn direct(context: &Context, len_bytes: u64) -> Outcome<u64> {
    allocate(context, &context.legacy, len_bytes, None)
}

/// Allocates from a pool, in stream order.
pub fn from_pool(context: &Context, stream: &Stream, len_bytes: u64, pool: Handle) -> Outcome<u64> {
    allocate(context, stream, len_bytes, Some(pool))
}

/// Frees the allocation that starts at an address, after all work queued on the stream. If no
/// allocation starts there, or it may not be freed in this way, the result is
/// CUDA_ERROR_INVALID_VALUE.
pub fn free(
    context: &Context,
    stream: &Stream,
    address: u64,
    may_go: impl FnOnce(&Allocation) -> bool,
) -> Outcome {
    let freed = context
        .device
        .ledger()
        .remove(address, |allocation| allocation.context == context.handle && may_go(allocation));
    let freed = freed.ok_or(Code::INVALID_VALUE)?;
    call::set_bytes(freed.len_bytes);
    stream.ordered(context, |raw| raw.free(in_engine(address))).map(drop)
}

/// The engine's address of an allocation: the engine aligns to more than some settings want.
pub fn in_engine(address: u64) -> Address {
    Address(address - shift_bytes())
}

/// By how much addresses are behind those of the engine.
fn shift_bytes() -> u64 {
    settings().alignment_bytes % ALIGNMENT_BYTES
}

/// The number of a new allocation.
pub fn next_number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// The address of an allocation of no bytes.
pub fn nothing() -> Outcome<u64> {
    if rules().has_empty_allocations { Ok(0) } else { Err(Code::INVALID_VALUE) }
}

fn allocate(
    context: &Context,
    stream: &Stream,
    len_bytes: u64,
    pool: Option<Handle>,
) -> Outcome<u64> {
    call::set_bytes(len_bytes);
    if len_bytes == 0 {
        return nothing();
    }
    let device = &context.device;
    device.ledger().reserve(len_bytes, pool)?;
    let label = work::label(&format!("memory of {len_bytes} bytes"));
    let address = match stream.raw.allocate(len_bytes + shift_bytes(), &label) {
        Ok(Address(address)) => address + shift_bytes(),
        Err(error) => {
            device.ledger().give_back(len_bytes, pool);
            return Err(work::code_of_error(&error));
        }
    };
    let number = next_number();
    device.ledger().insert(Allocation {
        address,
        len_bytes,
        context: context.handle,
        pool,
        number,
    });
    Ok(address)
}
