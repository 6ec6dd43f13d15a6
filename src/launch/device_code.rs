//! A kernel's device code, and the code loaded on each device.

use std::sync::OnceLock;

use super::compile_for;
use crate::audit;
use crate::device::Device;
use resident_backend::scope::BodyScope;
use resident_backend::{KernelCode, LoadError, Program};
use resident_host_code::OutputListener;

/// A kernel's device code, and a list of the devices on which it is loaded.
///
/// A launch walks the list without a lock. Nothing is ever removed: a process has few devices, and
/// device numbers are not reused.
#[derive(Debug)]
pub(super) struct DeviceCode {
    program: Program,
    first: OnceLock<Box<LoadedCode>>,
}

/// The node of the list for one device.
#[derive(Debug)]
struct LoadedCode {
    device: u64,
    code: KernelCode,
    next: OnceLock<Box<Self>>,
}

impl DeviceCode {
    pub(super) fn new(program: Program) -> Self {
        Self { program, first: OnceLock::new() }
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// The code to launch on a device; loads it at the first call.
    #[inline]
    pub(super) fn on(&self, device: &Device) -> Result<&KernelCode, LoadError> {
        let number = device.number();
        match self.loaded_on(number) {
            Some(code) => Ok(code),
            None => {
                if device.body_kind().is_on_host() {
                    compile_for::check_if_asked(&self.program)?;
                    report_output();
                }
                Ok(self.insert(number, device.backend().load(&self.program)?))
            }
        }
    }

    #[inline]
    fn loaded_on(&self, device: u64) -> Option<&KernelCode> {
        let mut next = &self.first;
        while let Some(node) = next.get() {
            if node.device == device {
                return Some(&node.code);
            }
            next = &node.next;
        }
        None
    }

    /// Appends a device's code and returns it. If another thread has added the device meanwhile,
    /// returns the code that the other thread loaded, which is the same, and drops this one.
    #[cold]
    fn insert(&self, device: u64, code: KernelCode) -> &KernelCode {
        let mut new = Some(Box::new(LoadedCode { device, code, next: OnceLock::new() }));
        let mut next = &self.first;
        loop {
            let node =
                next.get_or_init(|| new.take().unwrap_or_else(|| unreachable!("inserted twice")));
            if node.device == device {
                return &node.code;
            }
            next = &node.next;
        }
    }
}

/// Has the audit report what CUDA C that runs in this process prints, and what its checker finds:
/// set here, before such code is first loaded, and nowhere else.
fn report_output() {
    resident_host_code::set_listener(OutputListener {
        wants_printed: audit::wants_printed,
        printed: |kernel, text| {
            let _running = BodyScope::enter();
            audit::report_printed(kernel, text);
        },
        found: |finding| {
            let _running = BodyScope::enter();
            let is_error = finding.kind.is_error();
            audit::report_finding(&finding.kernel, is_error, &finding.to_string())
        },
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::DeviceCode;
    use resident_backend::grid::Grid;
    use resident_backend::{KernelAttributes, KernelCode, LoadedKernel, Program};

    #[derive(Debug)]
    struct Named(Arc<str>);

    impl LoadedKernel for Named {
        fn name(&self) -> &Arc<str> {
            &self.0
        }

        fn attributes(&self) -> KernelAttributes {
            let mut attributes = KernelAttributes::default();
            attributes.registers = 1;
            attributes.block_threads_max = 32;
            attributes
        }

        fn accepts_grid(&self, _grid: &Grid) -> bool {
            true
        }

        fn resolve_grid(&self, _grid: &Grid) -> Result<Option<Grid>, String> {
            Ok(None)
        }
    }

    fn loaded(name: &str) -> KernelCode {
        KernelCode::Loaded(Arc::new(Named(name.into())))
    }

    fn empty() -> DeviceCode {
        DeviceCode::new(Program {
            kernel: "kernel".into(),
            source: "".into(),
            parameters: [].into(),
        })
    }

    #[test]
    fn each_device_keeps_the_code_inserted_first() {
        let code = empty();
        assert!(code.loaded_on(1).is_none());
        for device in 1..=5 {
            assert_eq!(
                &**code.insert(device, loaded(&format!("on {device}"))).name(),
                format!("on {device}")
            );
        }
        assert_eq!(&**code.insert(3, loaded("late")).name(), "on 3");
        for device in 1..=5 {
            assert_eq!(
                code.loaded_on(device).map(|loaded| loaded.name().to_string()),
                Some(format!("on {device}"))
            );
        }
        assert!(code.loaded_on(6).is_none());
    }

    #[test]
    fn threads_that_insert_at_once_agree_on_one() {
        let code = empty();
        let names: Vec<String> = std::thread::scope(|scope| {
            let code = &code;
            let threads: Vec<_> = (0..8)
                .map(|thread| {
                    scope.spawn(move || {
                        code.insert(thread % 2, loaded(&format!("of {thread}")));
                        code.loaded_on(0)
                            .map_or_else(String::new, |loaded| loaded.name().to_string())
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .filter(|name| !name.is_empty())
                .collect()
        });
        let first = code.loaded_on(0).map(|loaded| loaded.name().to_string()).expect("inserted");
        assert!(names.iter().all(|name| *name == first), "{names:?}");
    }
}
