//! Replays of chains over two parts.

use std::collections::HashMap;

use resident::ndarray::{Ix1, IxDyn, SliceInfoElem};
use resident::{Chain, Error, In, InOut, Result, Temp};

use super::journal::{Misfit, Use, may_be_lost};
use super::kernels::Set;
use super::machine::Machine;
use super::pairs::Parts;
use super::parts::{Cells, Info, info};
use super::reference::Contents;
use super::value::{Value, combined};
use super::{Replay, Steps};

/// A number; whether `While` goes on; the array that is read and the one that is written; a
/// temporary in the shape of the latter, and one that says whether to go on.
type Replayed<T> = Chain<(u32, u32, In<T, IxDyn>, InOut<T, IxDyn>, Temp<T, IxDyn>, Temp<u32, Ix1>)>;

/// The chains of a program, each recorded once for each number of axes.
pub(super) type Chains<T> = HashMap<(Steps, usize), Replayed<T>>;

/// Every second index along the first axis.
fn every_second(first: isize, axes: usize) -> Info {
    let along = |axis| match axis {
        0 => SliceInfoElem::Slice { start: first, end: None, step: 2 },
        _ => SliceInfoElem::Slice { start: 0, end: None, step: 1 },
    };
    info(&(0..axes).map(along).collect::<Vec<_>>())
}

fn record<T: Value>(steps: Steps, kernels: &Set<T>, axes: usize) -> Replayed<T> {
    let (even, odd) = (every_second(0, axes), every_second(1, axes));
    let (copy, mix, combine) = (&kernels.copy, &kernels.mix, &kernels.combine);
    let recorded =
        Replayed::record(format!("{steps:?}"), |r, (number, go_on, x, a, tmp, flag)| match steps {
            Steps::Carry => {
                r.launch(copy, 1, (x.read(), tmp.write()))?;
                r.copy(tmp.read(), a.write())
            }
            Steps::Change => {
                r.copy(a.read(), tmp.write())?;
                r.launch(mix, 1, (number, tmp.read_write()))?;
                r.launch(copy, 1, (tmp.read(), a.write()))
            }
            Steps::Combine => {
                r.copy(a.read(), tmp.write())?;
                r.launch(combine, 1, (x.read(), tmp.read(), a.read_write()))
            }
            Steps::Combs => {
                r.copy(x.slice(&even).read(), a.slice(&even).write())?;
                r.launch(mix, 1, (number, a.slice(&odd).read_write()))
            }
            Steps::Break => {
                r.copy(x.slice(&even).read(), a.slice(&even).write())?;
                r.launch(&kernels.broken, 1, (a.slice(&odd).read_write(),))
            }
            Steps::While => {
                r.launch(mix, 1, (number, a.read_write()))?;
                r.fill(flag.write(), go_on)?;
                r.repeat_while(flag.read())
            }
        });
    recorded.expect("no step reads what is not written")
}

/// A replay of a program.
struct Turn {
    steps: Steps,
    lane: u8,
    number: u32,
    /// How often the steps run, at most.
    count: u64,
    /// Whether `While` goes on.
    goes_on: bool,
    look_every: u64,
}

impl Turn {
    /// How often the steps run.
    fn runs(&self) -> u64 {
        match self.steps {
            Steps::While if !self.goes_on => self.look_every.min(self.count),
            _ => self.count,
        }
    }

    /// What the steps do with the two parts. The last use is that of the elements that change.
    fn uses(&self, Parts { from, to, source, target, .. }: &Parts) -> Vec<Use> {
        let comb = |cells: &Cells, first| match cells.ndim() {
            0 => cells.clone(),
            axes => cells.slice(every_second(first, axes)).to_owned(),
        };
        let reads = |cells| Use::read(*from, cells);
        match self.steps {
            Steps::Carry => vec![reads(source.clone()), Use::overwrite(*to, target.clone())],
            Steps::Combine => vec![reads(source.clone()), Use::change(*to, target.clone())],
            Steps::Change | Steps::While => vec![Use::change(*to, target.clone())],
            Steps::Combs | Steps::Break => vec![
                reads(comb(source, 0)),
                Use::overwrite(*to, comb(target, 0)),
                Use::change(*to, comb(target, 1)),
            ],
        }
    }
}

impl<T: Value> Machine<T> {
    pub(super) fn replay(&mut self, replay: &Replay) {
        let Replay { arrays, parts, surplus, lane, value, steps, repeats } = *replay;
        let parts = self.two_parts(arrays, &parts, surplus);
        let is_divided = parts.target.shape().first().is_some_and(|len| *len > 0);
        let steps = match steps {
            Steps::Break | Steps::While if self.is_restrained() => Steps::Change,
            Steps::Combs | Steps::Break if !is_divided => Steps::Change,
            steps => steps,
        };
        let turn = Turn {
            steps,
            lane,
            number: self.value(value),
            count: 1 + u64::from(repeats % 3),
            goes_on: repeats / 4 % 2 == 1,
            look_every: 1 + u64::from(repeats / 8 % 3),
        };
        // The temporaries, of which one has four bytes.
        self.journal.made_elements = parts.target.len() + 2;
        let outcome = self.queue(&parts, &turn);
        let fits = parts.source.shape() == parts.target.shape();
        let uses = turn.uses(&parts);
        let misfits: &[Misfit] = if fits || uses.len() == 1 { &[] } else { &[Misfit::Shapes] };
        self.judge_replay(outcome, &turn, &uses, misfits);
        self.journal.made_elements = 0;
    }

    /// Returns how often the steps ran.
    fn queue(&mut self, parts: &Parts, turn: &Turn) -> Result<u64> {
        let Turn { steps, lane, number, count, .. } = *turn;
        let axes = parts.target.ndim();
        let kernels = self.kernels.of(axes);
        let chain =
            self.chains.entry((steps, axes)).or_insert_with(|| record(steps, kernels, axes));
        let chain = chain.clone();
        let stream = self.stream(lane);
        let [x, a] = self.arrays.get_disjoint_mut([parts.from, parts.to]).expect("two arrays");
        let (x, mut a) = (x.slice(&parts.elements[0]), a.slice_mut(&parts.elements[1]));
        let (x, mut a) = (x.slice(&parts.crops[0]), a.slice_mut(&parts.crops[1]));
        let (tmp, flag) = (Temp::like(&a), Temp::shape(1));
        let arguments = (number, u32::from(turn.goes_on), &x, &mut a, tmp, flag);
        match steps {
            Steps::While => chain.repeat_while_on(&stream, count, turn.look_every, arguments),
            _ => chain.repeat_on(&stream, count, arguments).map(|()| count),
        }
    }

    fn judge_replay(
        &mut self,
        outcome: Result<u64>,
        turn: &Turn,
        uses: &[Use],
        misfits: &[Misfit],
    ) {
        let doing = self.launching(turn.lane);
        let lost = |used: &Use| self.references[used.array].may_be_lost(&used.cells);
        let reads_lost = uses.iter().any(|used| used.reads() && lost(used));
        if turn.steps == Steps::While && outcome.is_err() {
            let has_run = !matches!(outcome, Err(Error::Uninitialised { .. }));
            if matches!(outcome, Err(Error::Lost { .. })) && !reads_lost {
                // A replay failed, with what says whether to go on.
                self.judge(Ok(()), doing, uses, misfits);
                assert!(may_be_lost(&self.references, uses), "{outcome:?}");
            } else {
                self.judge(outcome, doing, uses, misfits);
            }
            if has_run {
                self.forget(&uses[0]);
                let contents = self.references[uses[0].array].contents(&uses[0].cells);
                self.write(&uses[0], contents, true);
            }
            return;
        }
        let Some(ran) = self.judge(outcome, doing, uses, misfits) else { return };
        assert_eq!(ran, turn.runs());
        self.replayed(turn, uses);
    }

    /// Does to the references what the steps have done to the arrays.
    fn replayed(&mut self, turn: &Turn, uses: &[Use]) {
        let lost = may_be_lost(&self.references, uses);
        let [first, .., last] = uses else { return self.mixed(turn, &uses[0], lost) };
        let read = self.references[first.array].contents(&first.cells);
        match turn.steps {
            Steps::Carry => self.write(last, read, lost),
            Steps::Combine => {
                let changed = self.references[last.array].contents(&last.cells);
                let changed = read.iter().zip(changed).map(|pair| match pair {
                    (Contents::Value(x), Contents::Value(a)) => {
                        let run = |a, _| combined(*x, a, a);
                        Contents::Value((0..turn.count).fold(a, run))
                    }
                    _ => Contents::Anything,
                });
                self.write(last, changed.collect::<Vec<_>>(), lost);
            }
            Steps::Break => {
                self.journal.expect_failure();
                self.write(&uses[1], read, lost || turn.count > 1);
                self.mixed(turn, last, true);
            }
            _ => {
                self.write(&uses[1], read, lost);
                self.mixed(turn, last, lost);
            }
        }
    }

    fn mixed(&mut self, turn: &Turn, used: &Use, may_be_lost: bool) {
        (0..turn.runs()).for_each(|_| self.change(used, turn.number, may_be_lost));
    }
}
