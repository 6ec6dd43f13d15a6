//! Four streams that share an input: the cost of ordering between streams.

use std::sync::Arc;

use resident::Stream;
use resident::cudarc::driver::{CudaEvent, CudaFunction, CudaSlice, CudaStream};

use crate::measure::{Contender, Run, timed_each};
use crate::report::{Report, Target};
use crate::rows::launches::{Floats, LEN, arrays};
use crate::session::Session;
use resident_benches::gpu::fault::{Fault, Outcome};
use resident_benches::gpu::ours::{self, THREADS, one_block};
use resident_benches::gpu::twin::{self, Twin};

const STREAMS: usize = 4;

pub fn measure(session: &Session, report: &mut Report) -> Outcome {
    session.expect(1);
    let contenders = vec![
        Contender::new("ours", || ours_run(session)),
        Contender::new("events by hand", || by_hand(session)),
        Contender::new("cudarc's own tracking", || tracked(session)),
    ];
    let measured = session.measure(contenders);
    for (theirs, target) in [(1, Target::Ratio(1.10)), (2, Target::Ratio(0.90))] {
        let figures = [0, theirs].map(|index| measured[index].figure(|took| took.finish_s));
        report.compare("a round of 5 launches: total", measured[theirs].name, figures, target);
        let figures = [0, theirs].map(|index| measured[index].figure(|took| took.queue_s));
        let work = "a round of 5 launches: queueing";
        report.compare(work, measured[theirs].name, figures, Target::None);
    }
    let figure = correct(session);
    report.add_fact("each reader sees the value of its round", figure.1, Some(figure.0));
    Ok(())
}

/// In each round every element of the shared array increases by one, and each reader adds the
/// shared array, plus one, to its own array. So after n rounds each element of a reader's array is
/// n(n + 1)/2 + n.
fn correct(session: &Session) -> (bool, String) {
    let rounds = session.size(200, 20);
    let outcome = Ours::new(session).and_then(|mut ours| {
        (0..rounds).try_for_each(|_| ours.round())?;
        let expected = (rounds * (rounds + 1) / 2 + rounds) as f32;
        for output in &ours.outputs {
            let seen = output.host()?[THREADS as usize - 1];
            if seen != expected {
                return Err(Fault::new(format_args!("{seen} instead of {expected}")));
            }
        }
        Ok(())
    });
    let is_right = outcome.is_ok();
    (is_right, outcome.map_or_else(|fault| fault.to_string(), |()| format!("{rounds} rounds")))
}

struct Ours {
    streams: Vec<Stream>,
    writer: ours::Touch1,
    reader: ours::Touch4,
    shared: Floats,
    inputs: Vec<Floats>,
    outputs: Vec<Floats>,
}

impl Ours {
    fn new(session: &Session) -> Outcome<Self> {
        let mut all = arrays(session, 3 + STREAMS)?;
        let outputs = all.split_off(3);
        let inputs = all.split_off(1);
        let shared = all.pop().ok_or_else(|| Fault::new("there is no array"))?;
        let (streams, writer, reader) = (session.streams(STREAMS)?, ours::touch1(), ours::touch4());
        Ok(Self { streams, writer, reader, shared, inputs, outputs })
    }

    fn round(&mut self) -> Outcome {
        self.writer.launch_on(&self.streams[0], one_block(), (&mut self.shared,))?;
        for (stream, output) in self.streams.iter().zip(&mut self.outputs) {
            let arguments = (&self.shared, &self.inputs[0], &self.inputs[1], output);
            self.reader.launch_on(stream, one_block(), arguments)?;
        }
        Ok(())
    }
}

fn ours_run(session: &Session) -> Outcome<Run<'static>> {
    let (mut ours, rounds) = (Ours::new(session)?, session.size(200, 5));
    let streams = ours.streams.clone();
    Ok(Box::new(move || {
        let finish = || Ok(streams.iter().try_for_each(Stream::synchronize)?);
        timed_each(rounds, || ours.round(), finish)
    }))
}

/// The same with cudarc: kernels, streams and memory.
struct Theirs {
    twin: Twin,
    streams: Vec<Arc<CudaStream>>,
    writer: CudaFunction,
    reader: CudaFunction,
    shared: CudaSlice<f32>,
    inputs: [CudaSlice<f32>; 2],
    outputs: Vec<CudaSlice<f32>>,
}

impl Theirs {
    fn new(twin: Twin) -> Outcome<Self> {
        let streams: Vec<Arc<CudaStream>> =
            (0..STREAMS).map(|_| twin.stream()).collect::<Outcome<_>>()?;
        let zeros = || twin::zeros(&streams[0], LEN);
        let (shared, inputs) = (zeros()?, [zeros()?, zeros()?]);
        let outputs = (0..STREAMS).map(|_| zeros()).collect::<Outcome<_>>()?;
        twin.context.synchronize()?;
        let (writer, reader) = (twin.function("touch1")?, twin.function("touch4")?);
        Ok(Self { writer, reader, streams, shared, inputs, outputs, twin })
    }

    fn write(&mut self) -> Outcome {
        twin::touch(&self.streams[0], &self.writer, &[], &mut self.shared)
    }

    fn read(&mut self, reader: usize) -> Outcome {
        let inputs = [&self.shared, &self.inputs[0], &self.inputs[1]];
        twin::touch(&self.streams[reader], &self.reader, &inputs, &mut self.outputs[reader])
    }
}

fn wait_for_all(streams: &[Arc<CudaStream>]) -> Outcome {
    Ok(streams.iter().try_for_each(|stream| stream.synchronize())?)
}

/// An event is recorded after the shared array is written, and the readers wait for it. An event is
/// recorded after each reader, and the next writer waits for these.
fn by_hand(session: &Session) -> Outcome<Run<'static>> {
    let (mut theirs, rounds) = (Theirs::new(Twin::untracked()?)?, session.size(200, 5));
    let event = |_| Ok(theirs.twin.context.new_event(None)?);
    let events: Vec<CudaEvent> = (0..=STREAMS).map(event).collect::<Outcome<_>>()?;
    let streams = theirs.streams.clone();
    Ok(Box::new(move || {
        let round = || {
            (1..STREAMS).try_for_each(|reader| theirs.streams[0].wait(&events[reader]))?;
            theirs.write()?;
            events[STREAMS].record(&theirs.streams[0])?;
            for reader in 0..STREAMS {
                if reader > 0 {
                    theirs.streams[reader].wait(&events[STREAMS])?;
                }
                theirs.read(reader)?;
                if reader > 0 {
                    events[reader].record(&theirs.streams[reader])?;
                }
            }
            Ok(())
        };
        timed_each(rounds, round, || wait_for_all(&streams))
    }))
}

/// cudarc orders the work, but not fully: it remembers only the last of several readers.
fn tracked(session: &Session) -> Outcome<Run<'static>> {
    let (mut theirs, rounds) = (Theirs::new(Twin::tracked()?)?, session.size(200, 5));
    let streams = theirs.streams.clone();
    Ok(Box::new(move || {
        let round = || {
            theirs.write()?;
            (0..STREAMS).try_for_each(|reader| theirs.read(reader))
        };
        timed_each(rounds, round, || wait_for_all(&streams))
    }))
}
