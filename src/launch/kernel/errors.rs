//! The errors of a kernel's own: what is missing or unfit before anything is copied.

use super::Kernel;
use crate::device::{self, Device};
use crate::error::{CalledAt, Error};
use crate::launch::arguments::bound::BoundArgument;
use crate::launch::signature::Signature;
use resident_backend::grid::Grid;
use resident_backend::{BodyKind, LoadError};
use resident_documents::{visible, visible_lines};

impl<S: Signature> Kernel<S> {
    #[cold]
    pub(super) fn not_met(&self, requirement: &str, bound: &[BoundArgument<'_>]) -> Error {
        let arguments: Vec<String> = bound.iter().map(BoundArgument::describe).collect();
        Error::Requirement {
            call: CalledAt::UNKNOWN,
            kernel: self.quoted(),
            requirement: visible(requirement),
            arguments: arguments.join(", "),
        }
    }

    #[cold]
    pub(super) fn bad_grid(&self, grid: Grid, fault: &str) -> Error {
        let (blocks, threads) = (grid.blocks(), grid.threads());
        Error::Grid {
            call: CalledAt::UNKNOWN,
            kernel: self.quoted(),
            grid: format!(
                "{}x{}x{} blocks of {}x{}x{} threads",
                blocks.x, blocks.y, blocks.z, threads.x, threads.y, threads.z
            ),
            fault: String::from(fault),
        }
    }

    #[cold]
    pub(super) fn no_body(&self, device: &Device) -> Error {
        let (kind, device) = (device.body_kind(), device.name());
        match kind {
            BodyKind::Cuda => self.no_body_for(device, "`.cuda(..)`"),
            BodyKind::Hip => self.no_body_for(device, "`.cuda(..)` or `.hip(..)`"),
            // For `compare`.
            _ if self.inner.host.is_some() => {
                self.no_body_for(format!("{device} beside the host's"), "`.cuda(..)`")
            }
            _ => self.no_body_for(device, "`.host(..)` or `.cuda(..)`"),
        }
    }

    #[cold]
    pub(super) fn no_body_for(&self, device: String, method: &str) -> Error {
        let (kernel, method) = (self.quoted(), String::from(method));
        Error::NoKernelBody { call: CalledAt::UNKNOWN, kernel, device, method }
    }

    #[cold]
    pub(super) fn not_loaded(&self, device: &Device, fault: LoadError) -> Error {
        match fault {
            LoadError::Program(log) => Error::Compile {
                call: CalledAt::UNKNOWN,
                kernel: self.quoted(),
                device: device.name(),
                log: visible_lines(&log),
            },
            LoadError::Refused(error) => device::call_error(
                device,
                &self.inner.title,
                &format!("loading {}", self.inner.title),
                &error,
            ),
        }
    }
}
