//! Residency and traffic of programs in which no call fails, beside their ledgers.

use std::collections::{BTreeMap, BTreeSet};

use resident::ndarray::IxDyn;
use resident::{Device, Flow, Residency, Traffic, Validity, audit};

use super::Operation;
use super::journal::Use;
use super::ledger::{Assignment, Ledger, Ledgers, Place, assign_on};
use super::machine::Machine;
use super::parts::Cells;
use super::reference::Reference;
use super::smart::{Smart, at};
use super::value::Value;

impl Ledgers {
    pub(super) fn new(devices: &[Device]) -> Self {
        Self { arrays: Vec::new(), gone: Traffic::default(), before: total(devices) }
    }
}

/// The copies without those that launches avoided: these are sums over all launches of an array.
fn copies(traffic: Traffic) -> Traffic {
    Traffic { avoided: Flow::default(), ..traffic }
}

/// The total traffic of all devices.
fn total(devices: &[Device]) -> Traffic {
    devices.iter().fold(Traffic::default(), |sum, device| sum + device.traffic())
}

impl<T: Value> Machine<T> {
    /// Performs an operation, and checks residency and traffic if they are counted.
    pub(super) fn take(&mut self, operation: &Operation) {
        self.taken += 1;
        if self.ledgers.is_none() {
            self.perform(operation);
            return self.journal.check_memory();
        }
        if self.taken.is_multiple_of(2) {
            self.perform_captured(operation);
        } else {
            self.perform(operation);
        }
        self.ledgers.iter().for_each(|ledgers| self.check(ledgers));
    }

    /// Performs an operation in a capture, whose report has what the arrays say that they copied.
    fn perform_captured(&mut self, operation: &Operation) {
        let before = self.moved();
        let ((), report) = audit::capture(|| self.perform(operation));
        assert_eq!(copies(report.traffic()), copies(self.moved() - before), "{report}");
        let most = report.conservative();
        assert!(report.traffic().avoided.bytes <= most.bytes, "{report}");
        let document = report.to_document();
        let of_sites = document.sites.iter().map(|site| site.bytes).sum::<u64>();
        assert_eq!(of_sites, report.traffic().moved().bytes);
        assert_eq!(document.records_forgotten, 0);
    }

    /// The traffic of all arrays so far.
    fn moved(&self) -> Traffic {
        let gone = self.ledgers.as_ref().map_or(Traffic::default(), |ledgers| ledgers.gone);
        self.arrays.iter().fold(gone, |sum, array| sum + array.traffic())
    }

    pub(super) fn places(&self) -> impl Iterator<Item = Place> + use<T> {
        std::iter::once(Place::Host).chain((0..self.devices.len()).map(Place::Device))
    }

    pub(super) fn validity_in(&self, residency: &Residency, place: Place) -> Validity {
        match place {
            Place::Host => residency.host(),
            Place::Device(device) => residency.on(&self.devices[device]),
        }
    }

    /// The device numbers of an array, in its order.
    fn order_of(&self, array: &Smart<T>) -> Vec<usize> {
        let number = |device: &Device| self.devices.iter().position(|known| known == device);
        let residency = array.residency();
        residency.devices().map(|(device, _)| number(device).expect("a known device")).collect()
    }

    /// Checks residency, element by element and as a whole, and traffic.
    fn check(&self, ledgers: &Ledgers) {
        for (number, (array, ledger)) in self.arrays.iter().zip(&ledgers.arrays).enumerate() {
            assert_eq!(array.traffic(), ledger.total(), "traffic of array {number}");
            // Where an array without elements is, has no meaning.
            if ledger.cells.is_empty() {
                continue;
            }
            let residency = array.residency();
            for place in self.places() {
                let validity = self.validity_in(&residency, place);
                assert_eq!(validity, ledger.validity(place), "array {number} at {place:?}");
            }
            assert_eq!(self.order_of(array), ledger.devices, "devices of array {number}");
        }
        assert_eq!((self.lab.hazards)(&self.devices, None), Vec::<String>::new());
    }

    /// Compares the devices' totals with those of the arrays; a copy between two devices is counted
    /// by both of them.
    pub(super) fn check_totals(&self, ledgers: &Ledgers) {
        let arrays = self.arrays.iter().fold(ledgers.gone, |sum, array| sum + array.traffic());
        let twice = Traffic { between_devices: arrays.between_devices, ..Traffic::default() };
        let devices = total(&self.devices) - ledgers.before;
        assert_eq!(copies(devices), copies(arrays + twice), "totals of devices and of arrays");
    }

    /// The most bytes that an array has copied to the host after a copy that does not wait for
    /// downloads: it may copy an element whose download is in flight from a device.
    pub(super) fn most_bytes_to_host(&self, used: &Use) -> u64 {
        self.ledgers.as_ref().map_or(0, |ledgers| {
            let ledger = &ledgers.arrays[used.array];
            ledger.traffic.to_host.bytes + ledger.most_looked_at(&used.cells)
        })
    }

    /// Records what such a copy has moved, after checking that it is allowed.
    pub(super) fn accept_bytes_to_host(&mut self, used: &Use, most: u64) {
        let Some(ledgers) = &mut self.ledgers else { return };
        let ledger = &mut ledgers.arrays[used.array];
        if used.cells.iter().any(|cell| ledger.unsettled.contains(cell)) {
            let moved = self.arrays[used.array].traffic().to_host;
            let allowed = ledger.traffic.to_host.bytes..=most;
            assert!(allowed.contains(&moved.bytes), "{moved:?}, allowed are {allowed:?}");
            ledger.traffic.to_host = moved;
        }
    }

    /// If several devices are allowed as the place of the copy, the ledger records the device that
    /// the library chose.
    pub(super) fn count_assign(&mut self, [from, to]: &[Use; 2]) {
        let Some(ledgers) = &self.ledgers else { return };
        let [source, target] = [from, to].map(|used| (&ledgers.arrays[used.array], &used.cells));
        let assignment = Assignment::of(source, target);
        let array = &self.arrays[to.array];
        let places = |index: &IxDyn| {
            let residency = array.slice(&at(index)).residency();
            let is_valid = |place: &Place| self.validity_in(&residency, *place) == Validity::Valid;
            self.places().filter(is_valid).collect()
        };
        let layout = &self.references[to.array].layout;
        let chosen: BTreeMap<usize, BTreeSet<Place>> =
            layout.indexed_iter().map(|(index, cell)| (*cell, places(&index))).collect();
        let order = self.order_of(array);
        let Some(ledgers) = &mut self.ledgers else { return };
        let ledger = &mut ledgers.arrays[to.array];
        assignment.settle(ledger, &to.cells, &chosen);
        ledger.devices = order;
    }

    pub(super) fn count_assign_on(&mut self, [from, to]: &[Use; 2], lane: u8) {
        let place = self.place(lane);
        let Some(ledgers) = &mut self.ledgers else { return };
        let (cells, between) = assign_on(&mut ledgers.arrays[from.array], &from.cells, place);
        let ledger = &mut ledgers.arrays[to.array];
        ledger.fill(&to.cells, Some(place));
        ledger.traffic.between_devices += between;
        to.cells.iter().zip(cells).for_each(|(to, cell)| ledger.cells[*to] = cell);
    }

    /// Records a clone in the place of an array. The library chooses the order of its devices.
    pub(super) fn count_clone(
        &mut self,
        from: usize,
        cells: &Cells,
        clone: &Smart<T>,
        reference: &Reference<T>,
        into: usize,
    ) {
        let order = self.order_of(clone);
        let Some(ledgers) = &mut self.ledgers else { return };
        let pairs = cells.iter().copied().zip(reference.layout.iter().copied());
        let mut ledger: Ledger = ledgers.arrays[from].clone_of(pairs, cells.len());
        let sorted = |order: &[usize]| order.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(sorted(&order), sorted(&ledger.devices), "devices of a clone");
        ledger.devices = order;
        ledgers.replace(into, ledger);
    }
}
