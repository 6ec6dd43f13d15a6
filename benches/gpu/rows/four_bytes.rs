//! The time for the host to read one number after a launch.

use crate::by_hand_hip;
use crate::measure::{Contender, Run, timed_each};
use crate::report::{Report, Target};
use crate::rows::launches::{LEN, arrays};
use crate::session::Session;
use resident_benches::gpu::fault::{Fault, Outcome};
use resident_benches::gpu::ours::{self, one_block};
use resident_benches::gpu::twin::{self, Twin, bare};

pub fn measure(session: &Session, report: &mut Report) -> Outcome {
    session.expect(1);
    let measured = session.measure(vec![
        Contender::new("ours", || ours_run(session)),
        Contender::new(session.either("cuMemcpyDtoH", "hipMemcpyDtoH"), || {
            if !session.is_hip() {
                return by_hand(session);
            }
            let mut before = 0.0;
            by_hand_hip::four_bytes(session, move |seen| check_rise(&mut before, seen))
        }),
    ]);
    let figures = [0, 1].map(|index| measured[index].figure(|took| took.finish_s));
    let against = session.either(
        "a launch on the legacy stream and `cuMemcpyDtoH`",
        "a launch on the null stream and `hipMemcpyDtoH`",
    );
    report.compare("a launch and 4 bytes", against, figures, Target::More(1e-6));
    Ok(())
}

fn ours_run(session: &Session) -> Outcome<Run<'static>> {
    let (kernel, stream, turns) = (ours::touch1(), session.gpu.stream(), session.size(100, 5));
    let mut array = arrays(session, 1)?.pop().ok_or_else(|| Fault::new("there is no array"))?;
    let mut before = 0.0;
    Ok(Box::new(move || {
        let look = || {
            kernel.launch_on(&stream, one_block(), (&mut array,))?;
            let seen = array.get(0)?;
            check_rise(&mut before, seen)
        };
        timed_each(turns, look, || Ok(()))
    }))
}

fn by_hand(session: &Session) -> Outcome<Run<'static>> {
    let twin = Twin::untracked()?;
    // The synchronous copy waits for this stream.
    let (stream, function, turns) =
        (twin.context.default_stream(), twin.function("touch1")?, session.size(100, 5));
    let mut memory = twin::zeros(&stream, LEN)?;
    let address = twin::address(&memory, &stream);
    let mut before = 0.0;
    Ok(Box::new(move || {
        let look = || {
            twin::touch(&stream, &function, &[], &mut memory)?;
            let mut seen = [0.0_f32];
            bare::download_sync(&mut seen, address)?;
            check_rise(&mut before, seen[0])
        };
        timed_each(turns, look, || Ok(()))
    }))
}

/// Checks the value: each launch adds one.
fn check_rise(before: &mut f32, seen: f32) -> Outcome {
    *before += 1.0;
    if seen == *before {
        Ok(())
    } else {
        Err(Fault::new(format_args!("{seen} after {before} launches that add one each")))
    }
}
