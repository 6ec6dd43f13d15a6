//! Copies from one part to another, by kernels and by assignment.

use std::collections::BTreeSet;

use resident::ndarray::{Dimension, IxDyn, SliceInfoElem};
use resident::{Device, Grid, SmartView, SmartViewMut, Stream, Validity};

use super::contents::{Cells, info, misfit};
use super::kernels::Kernels;
use super::ledger::{Access, Assignment, Expected, Ledger, Place, assign_on};
use super::step::{Part, Two};
use super::system::{expect, launched, number_of, refusal, validity_of};

/// A source and a destination of one shape: parts of two arrays, or of the two sides of one array.
pub(crate) struct Ends<'a> {
    pub(crate) view: SmartView<'a, u32, IxDyn>,
    pub(crate) target: SmartViewMut<'a, u32, IxDyn>,
    pub(crate) ledgers: &'a mut [Ledger],
    pub(crate) arrays: [usize; 2],
    pub(crate) source: Cells,
    pub(crate) destination: Cells,
}

impl Ends<'_> {
    pub(crate) fn carry(
        mut self,
        kernels: &Kernels,
        operation: Two,
        (stream, device): (&Stream, usize),
        devices: &[Device],
    ) {
        let place = Place::Device(device);
        let (kernels, len) = (kernels.of(self.view.shape().len()), self.view.len() as u64);
        match operation {
            Two::Copy { flat: true } => {
                let unfit = misfit(&[&self.source, &self.destination]).map(refusal);
                let expected = unfit.unwrap_or_else(|| self.launched(place));
                expect(
                    kernels.copy_flat.launch_on(
                        stream,
                        Grid::cover(1),
                        (&self.view, &mut self.target, len),
                    ),
                    expected,
                );
            }
            Two::Copy { flat: false } => {
                let expected = self.launched(place);
                expect(
                    kernels.copy.launch_on(stream, Grid::cover(1), (&self.view, &mut self.target)),
                    expected,
                );
            }
            Two::CallCopy => {
                let [from, to] = self.arrays;
                let mut expected =
                    self.ledgers[from].access(Place::Host, &self.source, Access::Read);
                if expected == Expected::Fine {
                    expected =
                        self.ledgers[to].access(Place::Host, &self.destination, Access::Overwrite);
                }
                expect(kernels.copy.call(Grid::cover(1), (&self.view, &mut self.target)), expected);
            }
            Two::Assign => self.assign(devices),
            Two::AssignOn => self.assign_on(stream, device),
        }
    }

    fn launched(&mut self, place: Place) -> Expected {
        let [from, to] = self.arrays;
        launched(
            self.ledgers,
            place,
            &[
                (from, self.source.clone(), Access::Read),
                (to, self.destination.clone(), Access::Overwrite),
            ],
        )
    }

    fn assign(mut self, devices: &[Device]) {
        let [from, to] = self.arrays;
        let assignment =
            Assignment::of(&self.ledgers[from], &self.source, &self.ledgers[to], &self.destination);
        let expected = if self.ledgers[from].is_defined(&self.source) {
            Expected::Fine
        } else {
            Expected::Uninitialised
        };
        if expect(self.target.assign(&self.view), expected).is_none() {
            return;
        }
        // If several devices are allowed as the place of the copy, the ledger records the device
        // that the library chose.
        let chosen: Vec<(usize, BTreeSet<Place>)> = self
            .destination
            .indexed_iter()
            .map(|(index, cell)| (*cell, places_of(&self.target, &index, devices)))
            .collect();
        let order = self
            .target
            .residency()
            .devices()
            .map(|(device, _)| number_of(device, devices))
            .collect();
        let ledger = &mut self.ledgers[to];
        assignment.settle(ledger, &self.destination, |cell| {
            chosen
                .iter()
                .find(|(known, _)| *known == cell)
                .map(|(_, places)| places.clone())
                .unwrap_or_default()
        });
        ledger.devices = order;
    }

    fn assign_on(mut self, stream: &Stream, device: usize) {
        let [from, to] = self.arrays;
        let (expected, cells, between) = assign_on(&mut self.ledgers[from], &self.source, device);
        if expected == Expected::Fine {
            let ledger = &mut self.ledgers[to];
            ledger.fill(&self.destination, Some(Place::Device(device)));
            ledger.traffic.between_devices += between;
            self.destination.iter().zip(cells).for_each(|(to, cell)| ledger.cells[*to] = cell);
        }
        expect(self.target.assign_on(stream, &self.view), expected);
    }
}

/// The places where one element is valid.
fn places_of(
    view: &SmartViewMut<'_, u32, IxDyn>,
    index: &IxDyn,
    devices: &[Device],
) -> BTreeSet<Place> {
    let part: Part =
        index.slice().iter().map(|index| SliceInfoElem::Index(*index as isize)).collect();
    let residency = view.slice(info(&part)).residency();
    let places = std::iter::once(Place::Host).chain((0..devices.len()).map(Place::Device));
    places.filter(|place| validity_of(&residency, *place, devices) == Validity::Valid).collect()
}
