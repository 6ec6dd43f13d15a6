//! One upload, a chain of kernels, one download: with this library, by hand, as a CUDA graph, and
//! with managed memory.

use std::hint::black_box;
use std::sync::Arc;

use resident::cudarc::driver::{CudaFunction, CudaGraph, CudaSlice, CudaStream, sys};

use crate::measure::{Contender, Run, timed_each};
use crate::report::{Report, Target};
use crate::rows::launches::Floats;
use crate::rows::pinned::size_text;
use crate::session::Session;
use resident_benches::gpu::fault::{Fault, Outcome};
use resident_benches::gpu::ours::{affine, cover};
use resident_benches::gpu::twin::{self, HostMemory, Twin, bare};

/// An even number, so that the result is in the buffer of the input.
const KERNELS: usize = 50;

/// Each kernel halves the distance to 1, so the result is 1 for any input.
const NUMBERS: (f32, f32) = (0.5, 0.5);

pub fn measure(session: &Session, report: &mut Report) -> Outcome {
    session.expect(2);
    // Each of the seven contenders has two arrays.
    let large_len = (256 << 20).min(session.room_bytes()? / 2) as usize / 4;
    case(session, report, (session.size(large_len, 4096), 1), 1.02);
    case(session, report, (session.size((1 << 20) / 4, 1024), session.size(200, 3)), 1.05);
    Ok(())
}

fn case(session: &Session, report: &mut Report, (len, times): (usize, usize), most: f64) {
    let measured = session.measure(vec![
        Contender::new("ours, pinned", || ours(session, len, times, true)),
        Contender::new("ours, pageable", || ours(session, len, times, false)),
        Contender::new("by hand, pinned", || by_hand_pinned(len, times)),
        Contender::new("by hand, pageable", || by_hand_pageable(len, times)),
        Contender::new("by hand, as a graph", || as_graph(len, times)),
        Contender::new("managed memory", || managed(len, times, false)),
        Contender::new("managed memory, prefetched", || managed(len, times, true)),
    ]);
    let pairs = [
        (0, 2, Target::Ratio(most)),
        (1, 3, Target::Ratio(most)),
        (1, 2, Target::None),
        (0, 4, Target::None),
        (0, 5, Target::None),
        (0, 6, Target::None),
    ];
    for (ours, theirs, target) in pairs {
        let (size, name) = (size_text(4 * len as u64), measured[ours].name);
        let work = format!("{KERNELS} kernels over {size}: {name}");
        let figures = [ours, theirs].map(|index| measured[index].figure(|took| took.finish_s));
        report.compare(work, measured[theirs].name, figures, target);
    }
}

/// Changes the input, so that it differs from the previous run's.
fn change(first: &mut f32) {
    *first += 7.0;
}

fn check(first: f32) -> Outcome {
    if first == 1.0 {
        Ok(())
    } else {
        Err(Fault::new(format_args!("the result of the chain is {first} instead of 1")))
    }
}

fn ours(session: &Session, len: usize, times: usize, is_pinned: bool) -> Outcome<Run<'static>> {
    let (kernel, stream) = (affine(), session.gpu.new_stream()?);
    let (mut x, mut y) = (Floats::from(vec![1.0; len]), Floats::uninit(len));
    if is_pinned {
        x.page_lock()?;
    }
    Ok(Box::new(move || {
        let turn = || {
            change(&mut x.host_mut()?[0]);
            for _ in 0..KERNELS / 2 {
                let there = (NUMBERS.0, NUMBERS.1, &x, &mut y, len as u64);
                kernel.launch_on(&stream, cover(len), there)?;
                let back = (NUMBERS.0, NUMBERS.1, &y, &mut x, len as u64);
                kernel.launch_on(&stream, cover(len), back)?;
            }
            check(x.host()?[0])
        };
        timed_each(times, turn, || Ok(()))
    }))
}

/// What the programs written by hand share.
struct Chain {
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    memory: [CudaSlice<f32>; 2],
    len: usize,
    twin: Twin,
}

impl Chain {
    fn new(len: usize) -> Outcome<Self> {
        let twin = Twin::untracked()?;
        let stream = twin.stream()?;
        let memory = [twin::zeros(&stream, len)?, twin::zeros(&stream, len)?];
        stream.synchronize()?;
        Ok(Self { kernel: twin.function("affine")?, stream, memory, len, twin })
    }

    fn address(&self, index: usize) -> u64 {
        twin::address(&self.memory[index], &self.stream)
    }

    fn launch(&self, x: u64, y: u64) -> Outcome {
        for _ in 0..KERNELS / 2 {
            twin::affine(&self.stream, &self.kernel, NUMBERS, (x, y), self.len)?;
            twin::affine(&self.stream, &self.kernel, NUMBERS, (y, x), self.len)?;
        }
        Ok(())
    }

    /// Queues the upload, the kernels and the download.
    fn queue(&self, host: &mut [f32]) -> Outcome {
        bare::upload(&self.stream, self.address(0), host)?;
        self.launch(self.address(0), self.address(1))?;
        bare::download(&self.stream, host, self.address(0))
    }

    fn turn(&self, host: &mut [f32]) -> Outcome {
        change(&mut host[0]);
        self.queue(host)?;
        self.stream.synchronize()?;
        check(host[0])
    }
}

fn by_hand_pinned(len: usize, times: usize) -> Outcome<Run<'static>> {
    let chain = Chain::new(len)?;
    let mut host = HostMemory::<f32>::pinned(&chain.twin.context, len)?;
    host.host().fill(1.0);
    Ok(Box::new(move || timed_each(times, || chain.turn(host.host()), || Ok(()))))
}

fn by_hand_pageable(len: usize, times: usize) -> Outcome<Run<'static>> {
    let (chain, mut host) = (Chain::new(len)?, vec![1.0_f32; len]);
    Ok(Box::new(move || timed_each(times, || chain.turn(&mut host), || Ok(()))))
}

fn as_graph(len: usize, times: usize) -> Outcome<Run<'static>> {
    let chain = Chain::new(len)?;
    let mut host = HostMemory::<f32>::pinned(&chain.twin.context, len)?;
    host.host().fill(1.0);
    let graph = record(&chain, host.host())?;
    Ok(Box::new(move || {
        let turn = || {
            change(&mut host.host()[0]);
            graph.launch()?;
            chain.stream.synchronize()?;
            check(host.host()[0])
        };
        timed_each(times, turn, || Ok(()))
    }))
}

fn record(chain: &Chain, host: &mut [f32]) -> Outcome<CudaGraph> {
    chain.stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    let queued = chain.queue(host);
    let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = chain.stream.end_capture(flags);
    queued?;
    graph?.ok_or_else(|| Fault::new("nothing was captured"))
}

/// All data is copied in both directions, as in the other programs, by page faults or by
/// prefetches.
fn managed(len: usize, times: usize, is_prefetched: bool) -> Outcome<Run<'static>> {
    const PAGE: usize = 4096 / size_of::<f32>();
    let chain = Chain::new(len)?;
    let mut x = HostMemory::<f32>::managed(&chain.twin.context, len)?;
    let y = HostMemory::<f32>::managed(&chain.twin.context, len)?;
    x.host().fill(1.0);
    Ok(Box::new(move || {
        let turn = || {
            change(&mut x.host()[0]);
            if is_prefetched {
                x.prefetch(&chain.stream, true)?;
            }
            chain.launch(x.address(), y.address())?;
            if is_prefetched {
                x.prefetch(&chain.stream, false)?;
            }
            chain.stream.synchronize()?;
            black_box(x.host().iter().step_by(PAGE).sum::<f32>());
            check(x.host()[0])
        };
        timed_each(times, turn, || Ok(()))
    }))
}
