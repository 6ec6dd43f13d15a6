//! A thread of the run: it makes arrays, lends arrays, takes steps on them, and hands them on.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;

use resident::ndarray::ArrayViewMut2;

use super::random::Random;
use super::steps::{STEPS, Target};
use super::{Ending, Lab, Modelled, Promised};
use support::prelude::*;

/// The number of arrays that a thread has at most, and that are handed on at most.
const ARRAYS_MAX: usize = 6;

/// The number of copies that are under way at most.
const PROMISED_MAX: usize = 30;

/// What is thrown through a loan.
struct Thrown;

pub(super) struct Worker<'l> {
    pub(super) lab: &'l Lab,
    pub(super) random: Random,
}

impl<'l> Worker<'l> {
    pub(super) fn new(lab: &'l Lab, seed: u64) -> Self {
        Self { lab, random: Random::new(seed) }
    }

    /// Works until the run is over. It is over if this panics.
    pub(super) fn run(&mut self) {
        let _ended = Ending(self.lab);
        let _here = self.random.one_of(&self.lab.devices).enter();
        let mut own = Vec::new();
        while !self.lab.is_over() {
            self.lab.steps.fetch_add(1, Ordering::Relaxed);
            match self.random.below(10) {
                0 => self.make_or_drop(&mut own),
                1 => self.hand_on(&mut own),
                2..=4 => self.lend(),
                5 => self.use_what_all_read(),
                _ => self.step_on_one_of(&mut own),
            }
        }
    }

    pub(super) fn stream(&mut self) -> &'l Stream {
        self.random.one_of(&self.lab.streams)
    }

    /// A stream of the same device.
    pub(super) fn stream_beside(&mut self, stream: &Stream) -> &'l Stream {
        let device = stream.device();
        let beside: Vec<_> =
            self.lab.streams.iter().filter(|other| other.device() == device).collect();
        beside[self.random.below(beside.len())]
    }

    /// Keeps a copy that is under way for any thread to wait for, or drops it.
    pub(super) fn promise(&mut self, promised: Promised) {
        if self.random.happens_once_in(8) {
            return;
        }
        let mut all = self.lab.promised.lock().expect("no thread panicked");
        all.push(promised);
        if all.len() > PROMISED_MAX {
            let due = all.swap_remove(self.random.below(PROMISED_MAX));
            drop(all);
            due.check();
        }
    }

    fn make_or_drop(&mut self, own: &mut Vec<Modelled>) {
        if own.len() < ARRAYS_MAX {
            let model = self.random.table();
            let array = self.array_of(&model).expect("nothing fails");
            own.push(Modelled { array, model });
        } else {
            let Modelled { array, model } = own.swap_remove(self.random.below(own.len()));
            assert_eq!(array.into_array().expect("nothing fails"), model);
        }
    }

    /// An array over one of the kinds of memory.
    fn array_of(&mut self, model: &Array2<u32>) -> Result<SmartArray<u32, Ix2>> {
        let _here = self.random.one_of(&self.lab.devices).enter();
        Ok(match self.random.below(5) {
            0 => SmartArray::from(model.clone()),
            1 => {
                let array = SmartArray::from(model.clone());
                array.page_lock()?;
                array
            }
            2 => PinnedArray::from_array(model.view())?.into(),
            3 => MappedArray::from_array(model.view())?.into(),
            _ => ManagedArray::from_array(model.view())?.into(),
        })
    }

    /// Exchanges an array with those of other threads.
    fn hand_on(&mut self, own: &mut Vec<Modelled>) {
        let mut handed_on = self.lab.handed_on.lock().expect("no thread panicked");
        if !own.is_empty() && handed_on.len() < ARRAYS_MAX {
            handed_on.push(own.swap_remove(self.random.below(own.len())));
        } else if !handed_on.is_empty() {
            let which = self.random.below(handed_on.len());
            own.push(handed_on.swap_remove(which));
        }
    }

    fn step_on_one_of(&mut self, own: &mut [Modelled]) {
        if !own.is_empty() {
            let Modelled { array, model } = &mut own[self.random.below(own.len())];
            self.step(&mut array.view_mut(), model.view_mut());
        }
    }

    /// Lends an array for some steps, in which it may also panic.
    fn lend(&mut self) {
        let _here = self.random.one_of(&self.lab.devices).enter();
        let mut lent = self.random.table();
        let mut model = lent.clone();
        let (steps, throws) = (self.random.below(8), self.random.happens_once_in(10));
        let is_mapped = self.random.happens_once_in(2);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let mut run = |view: &mut SmartViewMut<'_, u32, Ix2>| {
                (0..steps).for_each(|_| self.step(view, model.view_mut()));
                if throws {
                    resume_unwind(Box::new(Thrown));
                }
                Ok(())
            };
            if is_mapped {
                with_mapped(&mut lent, &mut run)
            } else {
                with_pinned(&mut lent, &mut run)
            }
        }));
        match ended {
            Ok(ended) => ended.expect("nothing fails"),
            Err(payload) if payload.is::<Thrown>() => (),
            Err(payload) => resume_unwind(payload),
        }
        assert_eq!(lent, model, "after the loan");
    }

    /// Takes a step on a part of an array.
    fn step(&mut self, view: &mut SmartViewMut<'_, u32, Ix2>, mut model: ArrayViewMut2<'_, u32>) {
        let region = self.random.region(view.shape());
        let is_turned = self.random.happens_once_in(4);
        let (part, model) = (view.slice_mut(region), model.slice_mut(region));
        let target = if is_turned {
            Target { part: part.reversed_axes(), model: model.reversed_axes() }
        } else {
            Target { part, model }
        };
        let step = self.random.one_of(&STEPS);
        step(self, target).expect("nothing fails");
    }

    /// Reads the array that other threads read too, and sometimes changes it.
    fn use_what_all_read(&mut self) {
        if self.random.happens_once_in(5) {
            let mut changed = self.lab.read_by_all.write().expect("no thread panicked");
            let Modelled { array, model } = &mut *changed;
            self.step(&mut array.view_mut(), model.view_mut());
            return;
        }
        let read = self.lab.read_by_all.read().expect("no thread panicked");
        let region = self.random.region(read.array.shape());
        let (part, model) = (read.array.slice(region), read.model.slice(region));
        let stream = self.stream();
        let mut copy = SmartArray::<u32, Ix2>::uninit(model.raw_dim());
        self.lab
            .kernels
            .copy
            .launch_on(stream, Grid::cover(1), (&part, &mut copy))
            .expect("nothing fails");
        let _guard = self.random.happens_once_in(2).then(|| {
            part.prefetch(self.stream()).expect("nothing fails");
            // A guard of the whole array has a path of its own.
            read.array.gpu_on(self.stream()).expect("nothing fails")
        });
        assert_eq!(part.host().expect("nothing fails").view(), model);
        assert_eq!(copy.into_array().expect("nothing fails"), model);
    }
}
