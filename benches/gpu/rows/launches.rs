//! The time that a launch takes on the queueing thread, and until it is complete.

use std::sync::Arc;

use resident::SmartArray;
use resident::cudarc::driver::CudaSlice;
use resident::ndarray::Ix1;

use crate::by_hand_hip;
use crate::measure::{Contender, Run, Took, timed_each};
use crate::report::{Report, Target};
use crate::session::Session;
use resident_benches::gpu::fault::{Fault, Outcome};
use resident_benches::gpu::ours::{self, one_block};
use resident_benches::gpu::twin::{self, Twin};

pub type Floats = SmartArray<f32, Ix1>;

/// Elements of each array.
pub const LEN: usize = 4096;

const TARGET: Target = Target::RatioOrMore(1.05, 120e-9);

pub fn measure(session: &Session, report: &mut Report) -> Outcome {
    session.expect(3);
    for arrays in [1, 4, 8] {
        let contenders = vec![
            Contender::new("ours", || chain(session, arrays)),
            Contender::new(session.by_hand(), || {
                if session.is_hip() {
                    by_hand_hip::chain(session, arrays)
                } else {
                    chain_by_hand(session, arrays)
                }
            }),
        ];
        let measured = session.measure(contenders);
        let figures = |part: fn(&Took) -> f64| [measured[0].figure(part), measured[1].figure(part)];
        let (queueing, total) = (figures(|took| took.queue_s), figures(|took| took.finish_s));
        for (part, figures) in [("queueing", queueing), ("total", total)] {
            let work = format!("a launch with {arrays} arrays: {part}");
            report.compare(work, session.by_hand(), figures, TARGET);
        }
    }
    Ok(())
}

/// Arrays that are already on the GPU.
pub fn arrays(session: &Session, count: usize) -> Outcome<Vec<Floats>> {
    let array = |_| {
        let array = Floats::from(vec![0.0; LEN]);
        array.prefetch(&session.gpu.stream())?;
        Ok(array)
    };
    let arrays = (0..count).map(array).collect();
    session.gpu.synchronize()?;
    arrays
}

fn chain(session: &Session, count: usize) -> Outcome<Run<'static>> {
    let (mut arrays, stream, launches) =
        (arrays(session, count)?, session.gpu.new_stream()?, session.size(1000, 20));
    let (touch1, touch4, touch8) = (ours::touch1(), ours::touch4(), ours::touch8());
    Ok(Box::new(move || {
        timed_each(
            launches,
            || {
                match &mut arrays[..] {
                    [a] => touch1.launch_on(&stream, one_block(), (a,))?,
                    [a, b, c, d] => touch4.launch_on(&stream, one_block(), (&*a, &*b, &*c, d))?,
                    [a, b, c, d, e, f, g, h] => {
                        touch8.launch_on(
                            &stream,
                            one_block(),
                            (&*a, &*b, &*c, &*d, &*e, &*f, &*g, h),
                        )?;
                    }
                    _ => return Err(Fault::new("there is no kernel for this number of arrays")),
                }
                Ok(())
            },
            || Ok(stream.synchronize()?),
        )
    }))
}

fn chain_by_hand(session: &Session, count: usize) -> Outcome<Run<'static>> {
    let twin = Twin::untracked()?;
    let (stream, function, launches) =
        (twin.stream()?, twin.function(&format!("touch{count}"))?, session.size(1000, 20));
    let inputs: Vec<CudaSlice<f32>> =
        (1..count).map(|_| twin::zeros(&stream, LEN)).collect::<Outcome<_>>()?;
    let mut output = twin::zeros(&stream, LEN)?;
    Ok(Box::new(move || {
        let inputs: Vec<&CudaSlice<f32>> = inputs.iter().collect();
        let wait = Arc::clone(&stream);
        timed_each(
            launches,
            || twin::touch(&stream, &function, &inputs, &mut output),
            || Ok(wait.synchronize()?),
        )
    }))
}
