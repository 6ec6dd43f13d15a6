//! Programs with host code between their launches, compared with two by hand for each: one copies
//! the parts that host code needs, one whole arrays.

use std::cell::RefCell;
use std::rc::Rc;

use resident::ndarray::{Array2, s};

use crate::measure::{Contender, Run, timed};
use crate::report::{Report, Target};
use crate::session::Session;
use resident_benches::gpu::fault::Outcome;
use resident_benches::gpu::programs::{NAMES, exposures, photograph};

pub fn measure(session: &Session, report: &mut Report) -> Outcome {
    session.expect(2);
    let portrait = photograph::portrait()?;
    let len = session.size(512, 64);
    let photo = portrait.slice(s![..len, ..len, ..]).to_owned();
    let programs = photograph::programs(&session.gpu, photo.dim())?;
    compare(session, report, "photograph, 12 launches", programs, &photo);
    let picture = Array2::zeros(exposures::SHAPE);
    compare(session, report, "20 exposures", exposures::programs(&session.gpu)?, &picture);
    Ok(())
}

fn compare<Input: Clone + 'static, Output: PartialEq + 'static>(
    session: &Session,
    report: &mut Report,
    work: &str,
    programs: [Box<dyn Fn(Input) -> Outcome<Output>>; 3],
    input: &Input,
) {
    let outputs = [(); 3].map(|()| Rc::new(RefCell::new(None)));
    let contenders = programs.into_iter().enumerate().map(|(index, program)| {
        let (output, input) = (Rc::clone(&outputs[index]), input.clone());
        let run: Run<'_> = Box::new(move || {
            let input = input.clone();
            let work = || {
                *output.borrow_mut() = Some(program(input)?);
                Ok(())
            };
            timed(work, || Ok(()))
        });
        Contender::new(NAMES[index], || Ok(run))
    });
    let measured = session.measure(contenders.collect());
    for theirs in &measured[1..] {
        let figures = [&measured[0], theirs].map(|measured| measured.figure(|took| took.finish_s));
        report.compare(work, theirs.name, figures, Target::None);
    }
    let [ours, careful, hurried] = outputs.map(|output| output.take());
    let is_same = ours.is_some() && ours == careful && ours == hurried;
    report.add_fact(format!("{work}: results of all three"), "compared", Some(is_same));
}
