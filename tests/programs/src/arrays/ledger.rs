//! The ledger of an array: where each element is valid, and how many bytes accesses must copy.

use std::collections::{BTreeMap, BTreeSet};

use resident::ndarray::IxDyn;
use resident::{Flow, Traffic, Validity};
use resident_core::Access;

use super::journal::Use;
use super::parts::Cells;

/// The host, or a device by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Host,
    Device(usize),
}

/// The state of one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Never,
    /// A constant, and the places whose memory is already filled with it.
    Constant(BTreeSet<Place>),
    Stored(BTreeSet<Place>),
}

/// One array's ledger.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// The bytes of an element.
    element: u64,
    pub(super) cells: Vec<Cell>,
    /// The places where the array has memory.
    pub(super) memory: BTreeSet<Place>,
    /// Devices in the order of first use. If several holders have the same copy cost, the first of
    /// them is the source.
    pub(super) devices: Vec<usize>,
    /// Without avoided copies.
    pub(super) traffic: Traffic,
    /// What a launcher would have copied that copies each argument in and out.
    launcher: Flow,
    /// Cells whose download may still be in flight, since no call has waited for it.
    pub(super) unsettled: BTreeSet<usize>,
}

impl Cell {
    pub(super) fn is_valid(&self, place: Place) -> bool {
        match self {
            Self::Never => false,
            Self::Constant(places) | Self::Stored(places) => places.contains(&place),
        }
    }

    fn holders(&self) -> Option<&BTreeSet<Place>> {
        match self {
            Self::Stored(holders) => Some(holders),
            _ => None,
        }
    }
}

/// The first device among some places, in an array's order.
fn devices_in(order: &[usize], places: &BTreeSet<Place>) -> Option<usize> {
    order.iter().copied().find(|device| places.contains(&Place::Device(*device)))
}

impl Ledger {
    /// The ledger of a new array. If its elements are stored, they are on the host.
    pub(super) fn new(element: u64, cell: &Cell, len: usize) -> Self {
        let memory = cell.holders().cloned().unwrap_or_default();
        Self {
            element,
            cells: vec![cell.clone(); len],
            memory,
            devices: Vec::new(),
            traffic: Traffic::default(),
            launcher: Flow::default(),
            unsettled: BTreeSet::new(),
        }
    }

    pub(super) fn is_valid(&self, cells: &Cells, place: Place) -> bool {
        cells.iter().all(|cell| self.cells[*cell].is_valid(place))
    }

    pub(super) fn is_defined(&self, cells: &Cells) -> bool {
        cells.iter().all(|cell| self.cells[*cell] != Cell::Never)
    }

    /// How much of the array is valid at a place.
    pub(super) fn validity(&self, place: Place) -> Validity {
        let valid = self.cells.iter().filter(|cell| cell.is_valid(place)).count();
        match valid {
            _ if !self.memory.contains(&place) => Validity::Absent,
            count if count == self.cells.len() => Validity::Valid,
            0 => Validity::Stale,
            count => Validity::Partial { valid_bytes: self.element * count as u64 },
        }
    }

    fn visit(&mut self, place: Place) {
        if let Place::Device(device) = place
            && !self.devices.contains(&device)
        {
            self.devices.push(device);
        }
    }

    /// Makes cells valid at a place for an access. Stale cells are copied from the nearest holder:
    /// for a device, this is another device if possible, else the host. Returns the bytes copied,
    /// or nothing if the access is refused: it would read cells without contents.
    pub(super) fn acquire(&mut self, place: Place, cells: &Cells, access: Access) -> Option<u64> {
        if cells.is_empty() {
            return Some(0);
        }
        self.visit(place);
        if access != Access::Overwrite && !self.is_defined(cells) {
            return None;
        }
        self.memory.insert(place);
        if place == Place::Host {
            for cell in cells {
                self.unsettled.remove(cell);
            }
        }
        let mut copied = 0;
        if access != Access::Overwrite {
            copied = self.copy_to(place, cells);
            for cell in cells {
                match &mut self.cells[*cell] {
                    Cell::Never => unreachable!("undefined elements were refused"),
                    Cell::Constant(places) | Cell::Stored(places) => drop(places.insert(place)),
                }
            }
        }
        Some(copied)
    }

    fn copy_to(&mut self, place: Place, cells: &Cells) -> u64 {
        let missing: Vec<Place> = cells
            .iter()
            .filter(|cell| !self.cells[**cell].is_valid(place))
            .filter_map(|cell| self.source(*cell))
            .collect();
        for source in missing.iter().collect::<BTreeSet<_>>() {
            let count = missing.iter().filter(|other| *other == source).count();
            let bytes = self.element * count as u64;
            *match (source, place) {
                (_, Place::Host) => &mut self.traffic.to_host,
                (Place::Host, _) => &mut self.traffic.to_device,
                _ => &mut self.traffic.between_devices,
            } += Flow { count: 1, bytes };
        }
        self.element * missing.len() as u64
    }

    /// The nearest holder of an element, if it is stored.
    fn source(&self, cell: usize) -> Option<Place> {
        Some(self.nearest(self.cells[cell].holders()?))
    }

    /// The first of the array's devices among these holders, else the host.
    fn nearest(&self, holders: &BTreeSet<Place>) -> Place {
        devices_in(&self.devices, holders).map_or(Place::Host, Place::Device)
    }

    /// Makes the place the only holder.
    pub(super) fn write(&mut self, place: Place, cells: &Cells) {
        for cell in cells {
            self.cells[*cell] = Cell::Stored(BTreeSet::from([place]));
        }
    }

    /// Counts an argument of a launch: a launcher that copies each argument in and out would have
    /// copied it twice.
    fn count_argument(&mut self, cells: &Cells) {
        let bytes = self.element * cells.len() as u64;
        if bytes > 0 {
            self.launcher += Flow { count: 2, bytes: 2 * bytes };
        }
    }

    /// The copies so far, and what launches saved.
    pub(super) fn total(&self) -> Traffic {
        Traffic { avoided: self.launcher - self.traffic.moved(), ..self.traffic }
    }

    /// A copy to memory outside the array: cells that are stale on the host are downloaded, and
    /// residency does not change.
    pub(super) fn look(&mut self, cells: &Cells) {
        if self.is_defined(cells) {
            self.copy_to(Place::Host, cells);
        }
    }

    /// The bytes of all cells that are valid on a device. Such a copy downloads them if it does not
    /// wait for earlier downloads.
    pub(super) fn most_looked_at(&self, cells: &Cells) -> u64 {
        let is_on_device = |cell: &&usize| matches!(self.source(**cell), Some(Place::Device(_)));
        self.element * cells.iter().filter(is_on_device).count() as u64
    }

    pub(super) fn fill(&mut self, cells: &Cells, place: Option<Place>) {
        if let (Some(place), false) = (place, cells.is_empty()) {
            self.visit(place);
            self.memory.insert(place);
        }
        for cell in cells {
            self.cells[*cell] = Cell::Constant(place.into_iter().collect());
        }
    }

    /// Writes one element where it is newest, or on the host if it has no contents.
    pub(super) fn set(&mut self, cell: usize) {
        let holders = self.cells[cell].holders().filter(|holders| !holders.contains(&Place::Host));
        let device = holders.and_then(|holders| devices_in(&self.devices, holders));
        let place = device.map_or(Place::Host, Place::Device);
        self.memory.insert(place);
        self.cells[cell] = Cell::Stored(BTreeSet::from([place]));
    }

    /// The ledger of a clone: each element is on the first device where it is valid, else on the
    /// host; constants and unwritten elements stay what they are.
    pub(super) fn clone_of(&self, pairs: impl Iterator<Item = (usize, usize)>, len: usize) -> Self {
        let mut clone = Self::new(self.element, &Cell::Never, len);
        for (from, to) in pairs {
            clone.cells[to] = match &self.cells[from] {
                Cell::Never => Cell::Never,
                Cell::Constant(_) => Cell::Constant(BTreeSet::new()),
                Cell::Stored(holders) => {
                    let place = self.nearest(holders);
                    clone.memory.insert(place);
                    clone.visit(place);
                    Cell::Stored(BTreeSet::from([place]))
                }
            };
        }
        clone
    }
}

/// The places where `assign` may put each element.
///
/// Nothing may be copied between host and device. Elements that are valid only on the host are
/// copied there. Elements that are valid on devices are copied to a device that is newest for some
/// of the destination, if there is one; otherwise on the host if they are valid there, else on
/// their device.
#[derive(Debug)]
pub(super) struct Assignment {
    sources: Vec<Cell>,
    allowed: Vec<BTreeSet<Place>>,
    order: Vec<usize>,
}

impl Assignment {
    pub(super) fn of(
        (from, source): (&Ledger, &Cells),
        (to, destination): (&Ledger, &Cells),
    ) -> Self {
        let sources: Vec<Cell> = source.iter().map(|cell| from.cells[*cell].clone()).collect();
        let holders = destination.iter().filter_map(|cell| to.cells[*cell].holders());
        let newest = holders.filter(|holders| !holders.contains(&Place::Host));
        let homes: BTreeSet<Place> = newest.flatten().copied().collect();
        let allowed =
            sources.iter().map(|cell| Self::allowed(cell, &homes, &from.devices)).collect();
        Self { sources, allowed, order: from.devices.clone() }
    }

    fn allowed(cell: &Cell, homes: &BTreeSet<Place>, order: &[usize]) -> BTreeSet<Place> {
        let Some(holders) = cell.holders() else { return BTreeSet::new() };
        let device = devices_in(order, holders).map(Place::Device);
        let own = if holders.contains(&Place::Host) { Some(Place::Host) } else { device };
        let homes = homes.iter().copied().filter(|_| device.is_some());
        homes.chain(own).collect()
    }

    /// Records the places that the library chose, after checking that they are allowed.
    pub(super) fn settle(
        self,
        to: &mut Ledger,
        destination: &Cells,
        chosen: &BTreeMap<usize, BTreeSet<Place>>,
    ) {
        let mut copies: Vec<(usize, Place)> = Vec::new();
        for ((cell, source), allowed) in destination.iter().zip(&self.sources).zip(&self.allowed) {
            let Cell::Stored(holders) = source else {
                to.cells[*cell] = Cell::Constant(BTreeSet::new());
                continue;
            };
            let places = &chosen[cell];
            let place = *places.first().expect("an assigned element is somewhere");
            assert!(
                places.len() == 1 && allowed.contains(&place),
                "element {cell} of {source:?} went to {places:?}, allowed is {allowed:?}"
            );
            to.memory.insert(place);
            to.cells[*cell] = Cell::Stored(places.clone());
            if let (Place::Device(_), false) = (place, holders.contains(&place)) {
                let other = devices_in(&self.order, holders).expect("no upload is allowed");
                copies.push((other, place));
            }
        }
        to.traffic.between_devices += flow(to.element, &copies);
    }
}

/// The copies of elements between devices: those between the same two are one copy.
fn flow<T: Ord>(element: u64, copies: &[T]) -> Flow {
    let count = copies.iter().collect::<BTreeSet<_>>().len() as u64;
    Flow { count, bytes: element * copies.len() as u64 }
}

/// The effect of `assign_on` on defined elements: copies from the device's own copy of the source,
/// from another device, or after an upload of the source.
pub(super) fn assign_on(from: &mut Ledger, source: &Cells, place: Place) -> (Vec<Cell>, Flow) {
    let mut between: Vec<usize> = Vec::new();
    let mut results = Vec::new();
    let mut uploads: Vec<usize> = Vec::new();
    for cell in source {
        let Some(holders) = from.cells[*cell].holders() else {
            results.push(Cell::Constant(BTreeSet::from([place])));
            continue;
        };
        if !holders.contains(&place) {
            match devices_in(&from.devices, holders) {
                Some(other) => between.push(other),
                None => uploads.push(*cell),
            }
        }
        results.push(Cell::Stored(BTreeSet::from([place])));
    }
    let uploads = Cells::from_shape_vec(IxDyn(&[uploads.len()]), uploads).expect("one axis");
    let _ = from.acquire(place, &uploads, Access::Read);
    (results, flow(from.element, &between))
}

/// The ledgers of all arrays.
#[derive(Debug)]
pub(super) struct Ledgers {
    pub(super) arrays: Vec<Ledger>,
    /// The traffic of dropped arrays.
    pub(super) gone: Traffic,
    /// The traffic of the devices before the program.
    pub(super) before: Traffic,
}

/// What a call does with the elements that it uses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Doing {
    /// A launch on a device.
    Launch(usize),
    /// A guard, a prefetch, or a call on the host.
    Access(Place),
    /// A copy to memory outside the array.
    Look,
    /// What is recorded by itself.
    Other,
}

impl Ledgers {
    /// Records a call that was not refused before it read any contents. Each use makes its elements
    /// valid where they are needed, then the written ones are newest there.
    pub(super) fn record(&mut self, doing: Doing, uses: &[Use]) {
        let place = match doing {
            Doing::Launch(device) => Place::Device(device),
            Doing::Access(place) => place,
            Doing::Look => return uses.iter().for_each(|it| self.arrays[it.array].look(&it.cells)),
            Doing::Other => return,
        };
        let mut acquire = |it: &Use| self.arrays[it.array].acquire(place, &it.cells, it.access);
        if !uses.iter().all(|it| acquire(it).is_some()) {
            return;
        }
        for Use { array, cells, access } in uses {
            if matches!(doing, Doing::Launch(_)) {
                self.arrays[*array].count_argument(cells);
            }
            if access.writes() {
                self.arrays[*array].write(place, cells);
            }
        }
    }

    /// Records that another array is in the place of one.
    pub(super) fn replace(&mut self, array: usize, ledger: Ledger) {
        let old = std::mem::replace(&mut self.arrays[array], ledger);
        self.gone += old.total();
    }
}
