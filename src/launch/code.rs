//! A kernel's device code, and the devices on which it is loaded.

use std::sync::OnceLock;

use crate::backend::{KernelCode, LoadError, Program};
use crate::device::Device;

/// Device code with what is loaded of it.
#[derive(Debug)]
pub(super) struct DeviceCode {
    program: Program,
    /// One entry for each device, found without a lock. Nothing is ever taken out: a process has
    /// few devices, and their numbers are not used again.
    first: OnceLock<Box<Entry>>,
}

#[derive(Debug)]
struct Entry {
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

    /// What to launch on a device, loaded now if it is not yet.
    #[inline]
    pub(super) fn on(&self, device: &Device) -> Result<&KernelCode, LoadError> {
        match self.known_on(device.number()) {
            Some(code) => Ok(code),
            None => Ok(self
                .enter(device.number(), KernelCode::Loaded(device.backend().load(&self.program)?))),
        }
    }

    #[inline]
    fn known_on(&self, device: u64) -> Option<&KernelCode> {
        let mut next = &self.first;
        while let Some(entry) = next.get() {
            if entry.device == device {
                return Some(&entry.code);
            }
            next = &entry.next;
        }
        None
    }

    /// Enters it at the end. Of two threads that loaded at once one is in time; the other's is the
    /// same code, and is dropped.
    #[cold]
    fn enter(&self, device: u64, code: KernelCode) -> &KernelCode {
        let mut new = Some(Box::new(Entry { device, code, next: OnceLock::new() }));
        let mut place = &self.first;
        loop {
            let entry =
                place.get_or_init(|| new.take().unwrap_or_else(|| unreachable!("entered twice")));
            if entry.device == device {
                return &entry.code;
            }
            place = &entry.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::sync::Arc;

    use super::DeviceCode;
    use crate::backend::{KernelAttributes, KernelCode, LoadedKernel, Program};
    use crate::grid::Grid;

    #[derive(Debug)]
    struct Named(Arc<str>);

    impl LoadedKernel for Named {
        fn name(&self) -> &Arc<str> {
            &self.0
        }

        fn attributes(&self) -> KernelAttributes {
            KernelAttributes {
                registers: 1,
                shared_bytes: 0,
                local_bytes: 0,
                block_threads_max: 32,
            }
        }

        fn resolve_grid(&self, _grid: &Grid) -> Result<Option<Grid>, String> {
            Ok(None)
        }

        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    fn code(name: &str) -> KernelCode {
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
    fn each_device_has_its_own_and_the_first_one_stays() {
        let list = empty();
        assert!(list.known_on(1).is_none());
        for device in 1..=5 {
            assert_eq!(
                &**list.enter(device, code(&format!("on {device}"))).name(),
                format!("on {device}")
            );
        }
        assert_eq!(&**list.enter(3, code("late")).name(), "on 3");
        for device in 1..=5 {
            assert_eq!(
                list.known_on(device).map(|code| code.name().to_string()),
                Some(format!("on {device}"))
            );
        }
        assert!(list.known_on(6).is_none());
    }

    #[test]
    fn threads_agree_on_one() {
        let list = empty();
        let names: Vec<String> = std::thread::scope(|scope| {
            let list = &list;
            let threads: Vec<_> = (0..8)
                .map(|thread| {
                    scope.spawn(move || {
                        list.enter(thread % 2, code(&format!("of {thread}")));
                        list.known_on(0).map_or_else(String::new, |code| code.name().to_string())
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .filter(|name| !name.is_empty())
                .collect()
        });
        let first = list.known_on(0).map(|code| code.name().to_string()).expect("entered");
        assert!(names.iter().all(|name| *name == first), "{names:?}");
    }
}
