//! Which of the machine's processors are near a GPU: page-locked memory that is taken by a thread
//! there lies on the GPU's own NUMA node, and so on the short side of its link. (NCCL places its
//! buffers in this way.)

use super::context::Context;

/// The processors near a GPU; none where all are equally near, or nobody tells.
#[derive(Debug)]
pub(super) struct Near {
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "only Linux says which are near, and moves threads there")
    )]
    processors: Vec<usize>,
}

impl Near {
    /// Asks the system where the GPU is attached.
    pub(super) fn to(context: &Context) -> Self {
        Self {
            processors: context
                .pci_address()
                .and_then(|address| system::processors_near(&address))
                .unwrap_or_default(),
        }
    }

    /// Runs something on one of these processors; anywhere if that cannot be.
    pub(super) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _there = system::go(self);
        work()
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::Near;

    /// Puts the thread back where it was allowed to run.
    pub(super) struct Away(CpuSet);

    impl Drop for Away {
        fn drop(&mut self) {
            // The set was this thread's own a moment ago; if the system has since taken processors
            // away, it keeps the thread where it may run.
            let _left_there = sched_setaffinity(None, &self.0);
        }
    }

    /// Moves this thread there until what is returned drops.
    pub(super) fn go(near: &Near) -> Option<Away> {
        if near.processors.is_empty() {
            return None;
        }
        let before = sched_getaffinity(None).ok()?;
        let mut there = CpuSet::new();
        let allowed = near
            .processors
            .iter()
            .filter(|processor| **processor < CpuSet::MAX_CPU && before.is_set(**processor));
        allowed.for_each(|processor| there.set(*processor));
        (there.count() > 0 && sched_setaffinity(None, &there).is_ok()).then_some(Away(before))
    }

    /// The processors of the node that a PCI device is attached to, on machines with several nodes.
    pub(super) fn processors_near(pci_address: &str) -> Option<Vec<usize>> {
        let nodes = parse_list(fs::read_to_string("/sys/devices/system/node/online").ok()?.trim())?;
        if nodes.len() < 2 {
            return None;
        }
        let node =
            fs::read_to_string(format!("/sys/bus/pci/devices/{pci_address}/numa_node")).ok()?;
        // -1 says that the firmware does not tell.
        let node: usize = node.trim().parse().ok()?;
        parse_list(
            fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist")).ok()?.trim(),
        )
    }

    /// A list as the kernel writes it: `0-3,8,10-11`.
    fn parse_list(text: &str) -> Option<Vec<usize>> {
        let mut list = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            list.extend(first.trim().parse::<usize>().ok()?..=last.trim().parse().ok()?);
        }
        Some(list)
    }

    #[cfg(test)]
    mod tests {
        use rustix::thread::sched_getaffinity;

        use super::{Near, go, parse_list, processors_near};

        #[test]
        fn lists_are_read_as_the_kernel_writes_them() {
            assert_eq!(parse_list("0-3,8,10-11"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
            assert_eq!((parse_list(""), parse_list("5")), (Some(vec![]), Some(vec![5])));
            assert_eq!((parse_list("a"), parse_list("1-"), parse_list("-1")), (None, None, None));
        }

        #[test]
        fn a_thread_goes_there_and_comes_back() {
            let before = sched_getaffinity(None).expect("it may be asked");
            let first =
                (0..1024).find(|processor| before.is_set(*processor)).expect("it runs somewhere");
            let away =
                go(&Near { processors: vec![first, 1 << 20] }).expect("it may go where it may be");
            let there = sched_getaffinity(None).expect("it may be asked");
            assert!(there.count() == 1 && there.is_set(first));
            drop(away);
            assert_eq!(sched_getaffinity(None).expect("it may be asked"), before);
            assert!(
                go(&Near { processors: vec![] }).is_none()
                    && go(&Near { processors: vec![1 << 20] }).is_none()
            );
        }

        #[test]
        fn a_device_that_is_not_there_is_near_to_nothing() {
            assert_eq!(processors_near("ffff:ff:1f.7"), None);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn go(_near: &super::Near) -> Option<()> {
        None
    }

    pub(super) fn processors_near(_pci_address: &str) -> Option<Vec<usize>> {
        None
    }
}
