//! What findings are made of, of recorded events.

use rustc_hash::FxHashMap;

use super::timed::{Recorded, Times};
use crate::audit::recording::block::{
    AccessEvent, CopyEvent, EventKind, LaunchEvent, MemoryEvent, WaitEvent,
};
use crate::audit::recording::facts::MemoryChange;
use resident_backend::call_site::CallSite;
use resident_core::Access;
use resident_documents::findings::{self, Accessed, Argument, Copied, Launched, Step, Waited};

/// Call sites as texts, each made once.
#[derive(Clone, Debug, Default)]
pub(super) struct SiteTexts(FxHashMap<usize, Box<str>>);

impl SiteTexts {
    fn make(&mut self, site: CallSite) {
        self.0.entry(address(site)).or_insert_with(|| site.to_string().into());
    }

    fn get(&self, site: CallSite) -> &str {
        self.0.get(&address(site)).map_or("", |text| text)
    }

    /// Makes the texts of an event.
    pub(super) fn make_all(&mut self, recorded: Recorded<'_>) {
        let Recorded { block, event } = recorded;
        self.make(event.site);
        if let EventKind::Copy(copy) = event.kind {
            block.copy(copy).key.staleness().since().into_iter().for_each(|site| self.make(site));
        }
    }
}

fn address(site: CallSite) -> usize {
    std::ptr::from_ref(site).addr()
}

/// What the steps of events are made with.
#[derive(Clone, Copy)]
pub(super) struct StepContext<'a> {
    pub(super) sites: &'a SiteTexts,
    pub(super) times: &'a Times,
    /// When the log began.
    pub(super) started_ns: u64,
    /// How many bytes of an argument a launch has changed.
    pub(super) changed_bytes: &'a dyn Fn(u64, usize) -> Option<u64>,
}

impl<'a> Recorded<'a> {
    /// The step of an event; `None` if findings have nothing to do with it. The texts of its call
    /// sites have been made.
    pub(super) fn step(self, context: StepContext<'a>) -> Option<Step<'a>> {
        let Self { block, event } = self;
        let site = context.sites.get(event.site);
        match event.kind {
            EventKind::Copy(copy) => Some(self.copy_step(block.copy(copy), context)),
            EventKind::Launch(launch) => Some(self.launch_step(block.launch(launch), context)),
            EventKind::Wait(wait) => Some(self.wait_step(block.wait(wait), context)),
            EventKind::Memory(memory) => self.memory_step(block.memory(memory), site),
            EventKind::Access(access) => Some(self.access_step(block.access(access), site)),
            EventKind::Message(_) | EventKind::Barrier(_) => {
                Some(Step::Talked { thread: &block.thread })
            }
            EventKind::End(end) => {
                let end = block.end(end);
                Some(Step::Ended { array: end.array, use_number: Some(end.use_number) })
            }
        }
    }

    fn copy_step(self, copy: &CopyEvent, context: StepContext<'a>) -> Step<'a> {
        let Self { block, event } = self;
        let key = &copy.key;
        let (stream, array) = (block.stream(key.stream), block.array(key.array));
        let since = key.staleness().since();
        Step::Copied(Copied {
            queued_ns: event.queued_ns.saturating_sub(context.started_ns),
            times: context.times.of(block.span_of_copy(copy), context.started_ns),
            thread: &block.thread,
            device: &stream.device,
            stream: stream.number,
            site: context.sites.get(event.site),
            array: array.id,
            name: &array.name,
            direction: key.direction.as_str(),
            cause: key.cause.as_str(),
            bytes: copy.bytes,
            source: block.source(key).map(|source| &**source),
            changed_bytes: copy.details.changed_bytes,
            contents_hash: copy.details.contents_hash,
            host_ns: copy.details.host_ns,
            is_pageable: copy.details.is_pageable,
            stale_since: since.map(|site| context.sites.get(site)),
            use_number: copy.use_number,
        })
    }

    fn launch_step(self, launch: &LaunchEvent, context: StepContext<'a>) -> Step<'a> {
        let Self { block, event } = self;
        let stream = block.stream(launch.stream);
        let arguments = block.arguments(launch).iter().enumerate();
        let arguments = arguments.map(|(index, argument)| Argument {
            array: argument.array_id(),
            access: access_name(argument.access()),
            is_whole: argument.is_whole(),
            use_number: Some(argument.use_number()),
            changed_bytes: (context.changed_bytes)(launch.id, index),
        });
        Step::Launched(Launched {
            times: context.times.of(block.span_of_launch(launch), context.started_ns),
            thread: &block.thread,
            device: &stream.device,
            stream: stream.number,
            site: context.sites.get(event.site),
            kernel: block.kernel_name(launch),
            arguments: arguments.collect(),
        })
    }

    fn wait_step(self, wait: &WaitEvent, context: StepContext<'a>) -> Step<'a> {
        let Self { block, event } = self;
        Step::Waited(Waited {
            thread: &block.thread,
            device: block.device(wait.device),
            stream: wait.stream_number,
            site: context.sites.get(event.site),
            reason: wait.reason.as_str(),
            finished_ns: wait.finished_ns.saturating_sub(context.started_ns),
        })
    }

    fn memory_step(self, memory: &MemoryEvent, site: &'a str) -> Option<Step<'a>> {
        let Self { block, .. } = self;
        let of = findings::Memory {
            device: block.device(memory.device),
            site,
            bytes: memory.bytes,
            array: block.array(memory.array).id,
        };
        match memory.kind {
            MemoryChange::Allocation => None,
            MemoryChange::Eviction => Some(Step::Evicted(of)),
            MemoryChange::Discard => Some(Step::Discarded(of)),
        }
    }

    fn access_step(self, access: &AccessEvent, site: &'a str) -> Step<'a> {
        let Self { block, .. } = self;
        Step::Accessed(Accessed {
            device: access.device.map(|device| &**block.device(device)),
            site,
            array: block.array(access.array).id,
            access: access_name(access.access),
            is_whole: access.is_whole,
            use_number: access.use_number,
        })
    }
}

pub(in crate::audit) fn access_name(access: Access) -> &'static str {
    match access {
        Access::Read => "in",
        Access::ReadWrite => "in_out",
        Access::Overwrite => "out",
    }
}
