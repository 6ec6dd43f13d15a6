//! Conjugate gradient to a fixed residual: one program with this library and one by hand, with the
//! same kernels and steps.

use std::cell::Cell;
use std::rc::Rc;

use crate::measure::{Contender, Run, timed};
use crate::report::{Report, Target};
use crate::session::Session;
use resident_benches::gpu::fault::Outcome;
use resident_benches::gpu::programs::conjugate_gradient::{Solved, by_hand, by_resident};

const PROGRAMS: [&str; 2] = [
    include_str!("../programs/conjugate_gradient/by_resident.rs"),
    include_str!("../programs/conjugate_gradient/by_hand.rs"),
];

pub fn measure(session: &Session, report: &mut Report) -> Outcome {
    let side = session.size(1024, 8);
    let seen = [Rc::new(Cell::new(None)), Rc::new(Cell::new(None))];
    session.expect(1);
    let (by_resident_seen, by_hand_seen) = (Rc::clone(&seen[0]), Rc::clone(&seen[1]));
    let measured = session.measure(vec![
        Contender::new("ours", || {
            let mut solver = by_resident::Solver::new(&session.gpu, side)?;
            Ok(solving(by_resident_seen, move || solver.solve()))
        }),
        Contender::new("by hand", || {
            let mut solver = by_hand::Solver::new(side)?;
            Ok(solving(by_hand_seen, move || solver.solve()))
        }),
    ]);
    let figures = [0, 1].map(|index| measured[index].figure(|took| took.finish_s));
    let work = format!("{side} x {side} unknowns");
    report.compare(work, "cudarc, by hand", figures, Target::Ratio(1.05));
    let [ours, theirs] = seen.map(|seen| seen.get());
    let text = |solved: Option<Solved>| {
        solved.map_or("nothing".to_owned(), |solved| {
            format!("{} steps, residual {:.3e}", solved.steps, solved.residual)
        })
    };
    report.add_fact(
        "both results are equal, bit for bit",
        format!("{}; {}", text(ours), text(theirs)),
        Some(ours.is_some() && ours == theirs),
    );
    let [ours, theirs] = PROGRAMS.map(lines_of_code);
    report.add_fact("lines of code without comments", format!("{ours}; by hand {theirs}"), None);
    Ok(())
}

fn solving(
    seen: Rc<Cell<Option<Solved>>>,
    mut solve: impl FnMut() -> Outcome<Solved> + 'static,
) -> Run<'static> {
    Box::new(move || {
        let work = || {
            seen.set(Some(solve()?));
            Ok(())
        };
        timed(work, || Ok(()))
    })
}

fn lines_of_code(text: &str) -> usize {
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//"))
        .count()
}
