//! The processors near a GPU. If a thread on one of these processors allocates pinned memory, it
//! lies on the GPU's NUMA node, which shortens the path to the GPU. NCCL allocates its buffers in
//! the same way.

use crate::context::Context;

/// The processors near a GPU; none if all are equally near, or the system does not report it.
#[derive(Debug)]
pub(super) struct NumaAffinity {
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "only Linux says which processors are near")
    )]
    processors: Vec<usize>,
}

impl NumaAffinity {
    /// Asks the operating system for the processors near the GPU.
    pub(super) fn of(context: &Context) -> Self {
        let address = context.pci_address();
        let processors = address.and_then(|address| system::processors_near(&address));
        Self { processors: processors.unwrap_or_default() }
    }

    /// Runs `work` on one of these processors, or on any if the system does not allow that.
    pub(super) fn run_near<T>(&self, work: impl FnOnce() -> T) -> T {
        let _restore = system::move_thread(self);
        work()
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::NumaAffinity;

    /// Restores the thread's processor set when it drops.
    pub(super) struct RestoreAffinity(CpuSet);

    impl Drop for RestoreAffinity {
        fn drop(&mut self) {
            // If the system has since removed processors, the thread keeps its present set.
            let _kept = sched_setaffinity(None, &self.0);
        }
    }

    /// Moves this thread to the processors until the guard drops.
    pub(super) fn move_thread(affinity: &NumaAffinity) -> Option<RestoreAffinity> {
        if affinity.processors.is_empty() {
            return None;
        }
        let before = sched_getaffinity(None).ok()?;
        let mut near = CpuSet::new();
        let allowed = affinity
            .processors
            .iter()
            .filter(|processor| **processor < CpuSet::MAX_CPU && before.is_set(**processor));
        allowed.for_each(|processor| near.set(*processor));
        let has_moved = near.count() > 0 && sched_setaffinity(None, &near).is_ok();
        has_moved.then_some(RestoreAffinity(before))
    }

    /// The processors of the NUMA node of a PCI device, on machines with several nodes.
    pub(super) fn processors_near(pci_address: &str) -> Option<Vec<usize>> {
        let nodes = parse_list(&read("/sys/devices/system/node/online")?)?;
        if nodes.len() < 2 {
            return None;
        }
        let node = read(&format!("/sys/bus/pci/devices/{pci_address}/numa_node"))?;
        // The file contains -1, which does not parse, if the firmware does not know the node.
        let node: usize = node.trim().parse().ok()?;
        parse_list(&read(&format!("/sys/devices/system/node/node{node}/cpulist"))?)
    }

    fn read(path: &str) -> Option<String> {
        fs::read_to_string(path).ok()
    }

    /// Parses a list in the kernel's format: `0-3,8,10-11`.
    fn parse_list(text: &str) -> Option<Vec<usize>> {
        let mut list = Vec::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            list.extend(first.trim().parse::<usize>().ok()?..=last.trim().parse().ok()?);
        }
        Some(list)
    }

    #[cfg(test)]
    mod tests {
        use rustix::thread::sched_getaffinity;

        use super::{NumaAffinity, move_thread, parse_list, processors_near};

        #[test]
        fn lists_are_parsed_as_the_kernel_writes_them() {
            assert_eq!(parse_list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
            assert_eq!((parse_list(""), parse_list("5")), (Some(vec![]), Some(vec![5])));
            assert_eq!((parse_list("a"), parse_list("1-"), parse_list("-1")), (None, None, None));
        }

        #[test]
        fn a_thread_moves_and_its_processors_are_restored() {
            let now = || sched_getaffinity(None).expect("the system says");
            let before = now();
            let first = (0..1024).find(|processor| before.is_set(*processor)).expect("one is set");
            let near = |processors| move_thread(&NumaAffinity { processors });
            let restore = near(vec![first, 1 << 20]).expect("the processor is allowed");
            assert!(now().count() == 1 && now().is_set(first));
            drop(restore);
            assert_eq!(now(), before);
            assert!(near(vec![]).is_none() && near(vec![1 << 20]).is_none());
        }

        #[test]
        fn no_processor_is_near_a_missing_device() {
            assert_eq!(processors_near("ffff:ff:1f.7"), None);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn move_thread(_affinity: &super::NumaAffinity) -> Option<()> {
        None
    }

    pub(super) fn processors_near(_pci_address: &str) -> Option<Vec<usize>> {
        None
    }
}
