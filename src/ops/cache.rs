//! The kernels of the operations, each made at its first use and kept.

use std::any::{Any, TypeId};
use std::sync::LazyLock;

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use crate::launch::{Kernel, Signature};

/// The name of the operation, the number of axes, and the types.
type Key = (&'static str, usize, TypeId);

/// A kernel of any signature.
type AnyKernel = &'static dyn Cached;

/// What is made once for each type and number of axes.
pub(super) trait Cached: Send + Sync + 'static {
    fn as_any(&self) -> &dyn Any;

    /// Calls `check` with the device code of all kernels made so far.
    #[cfg(all(test, feature = "nccl"))]
    fn each_program(&self, check: &mut dyn FnMut(&resident_backend::Program));
}

impl<S: Signature> Cached for Kernel<S> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    #[cfg(all(test, feature = "nccl"))]
    fn each_program(&self, check: &mut dyn FnMut(&resident_backend::Program)) {
        self.program().into_iter().for_each(check);
    }
}

static KERNELS: LazyLock<DashMap<Key, AnyKernel, FxBuildHasher>> = LazyLock::new(DashMap::default);

/// The kernel of an operation for operands with this many axes. A repeated call allocates nothing.
pub(super) fn kernel<S: Signature>(
    name: &'static str,
    rank: usize,
    make: impl FnOnce() -> Kernel<S>,
) -> &'static Kernel<S> {
    value(name, rank, make)
}

/// As [`kernel`], of another type that has kernels.
pub(super) fn value<C: Cached>(
    name: &'static str,
    rank: usize,
    make: impl FnOnce() -> C,
) -> &'static C {
    let key = (name, rank, TypeId::of::<C>());
    let found = KERNELS.get(&key).map(|entry| *entry.value());
    // Loaded kernels stay loaded anyway.
    let leaked = || Box::leak(Box::new(make())) as AnyKernel;
    let found = found.unwrap_or_else(|| *KERNELS.entry(key).or_insert_with(leaked));
    found.as_any().downcast_ref().unwrap_or_else(|| unreachable!("the key contains the type"))
}

/// Calls `check` with the device code of all kernels made so far.
#[cfg(all(test, feature = "nccl"))]
pub(super) fn each_program(check: &mut dyn FnMut(&resident_backend::Program)) {
    KERNELS.iter().for_each(|entry| entry.value().each_program(check));
}
