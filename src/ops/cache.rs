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

trait Cached: Send + Sync {
    fn as_any(&self) -> &dyn Any;

    #[cfg(all(test, feature = "nccl"))]
    fn program(&self) -> Option<&resident_backend::Program>;
}

impl<S: Signature> Cached for Kernel<S> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    #[cfg(all(test, feature = "nccl"))]
    fn program(&self) -> Option<&resident_backend::Program> {
        Self::program(self)
    }
}

static KERNELS: LazyLock<DashMap<Key, AnyKernel, FxBuildHasher>> = LazyLock::new(DashMap::default);

/// The kernel of an operation for operands with this many axes. A repeated call allocates nothing.
pub(super) fn kernel<S: Signature>(
    name: &'static str,
    rank: usize,
    make: impl FnOnce() -> Kernel<S>,
) -> &'static Kernel<S> {
    let key = (name, rank, TypeId::of::<S>());
    let found = KERNELS.get(&key).map(|entry| *entry.value());
    let kernel = found.unwrap_or_else(|| *KERNELS.entry(key).or_insert_with(|| leaked(make())));
    kernel.as_any().downcast_ref().unwrap_or_else(|| unreachable!("the key contains the type"))
}

/// Loaded kernels stay loaded anyway.
fn leaked<S: Signature>(kernel: Kernel<S>) -> AnyKernel {
    Box::leak(Box::new(kernel))
}

/// The device code of all kernels made so far.
#[cfg(all(test, feature = "nccl"))]
pub(super) fn programs() -> Vec<&'static resident_backend::Program> {
    let programs = KERNELS.iter().map(|entry| {
        let kernel: AnyKernel = *entry.value();
        kernel.program()
    });
    programs.flatten().collect()
}
