//! The steps of an instance as a backend gets them, and where each replay writes the addresses and
//! scalars of its arguments that are not those of the replay before.

use super::super::arguments::bound::{BoundArgument, Words};
use resident_backend::{Address, Bytes, ChainStep, Memory, Work};

/// See the module.
pub(super) struct Steps {
    list: Vec<ChainStep>,
    places: Places,
    /// The arrays of the last replay, by parameter.
    arrays: Vec<PlacedArray>,
    /// Whether the list lacks some of them.
    is_behind: bool,
    /// See [`ChainCall::version`](resident_backend::ChainCall::version).
    version: u64,
}

/// Where a replay writes what differs from the one before.
#[derive(Default)]
pub(super) struct Places {
    pub(super) addresses: Vec<AddressPlace>,
    pub(super) scalars: Vec<ScalarPlace>,
}

/// A place for the address of an array.
pub(super) struct AddressPlace {
    pub(super) step: usize,
    pub(super) parameter: usize,
    pub(super) at: AddressAt,
    pub(super) element_bytes: u64,
    /// What the offset of the view in bytes lacks to the origin that the body gets. Wraps.
    pub(super) to_origin_bytes: u64,
}

pub(super) enum AddressAt {
    /// A word: the address of the origin.
    Word(usize),
    /// One of the arrays of a launch.
    Packed(usize),
    Source,
    Destination,
}

/// A place for a scalar: in the words of a launch from this one on, or the pattern of a fill.
pub(super) struct ScalarPlace {
    pub(super) step: usize,
    pub(super) parameter: usize,
    pub(super) word: usize,
}

/// The address of an array, and the offset of its view in elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PlacedArray {
    pub(super) address: Address,
    pub(super) offset: usize,
}

impl Steps {
    /// Steps without addresses, of a chain with so many parameters.
    pub(super) fn new(list: Vec<ChainStep>, places: Places, parameters: usize) -> Self {
        let nowhere = PlacedArray { address: Address(0), offset: 0 };
        Self { list, places, arrays: vec![nowhere; parameters], is_behind: true, version: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Notes the array of a parameter.
    #[inline]
    pub(super) fn place(&mut self, parameter: usize, array: PlacedArray) {
        let known = &mut self.arrays[parameter];
        if *known != array {
            *known = array;
            self.is_behind = true;
        }
    }

    /// The steps with the arrays that were placed, and their version.
    #[inline]
    pub(super) fn with_arrays(&mut self) -> (&[ChainStep], u64) {
        if self.is_behind {
            self.write_arrays();
        }
        (&self.list, self.version)
    }

    #[inline(never)]
    fn write_arrays(&mut self) {
        for place in &self.places.addresses {
            place.write(self.arrays[place.parameter], &mut self.list[place.step].work);
        }
        self.is_behind = false;
        self.version += 1;
    }

    /// Writes the scalars of a replay.
    pub(super) fn write_scalars(&mut self, bound: &[BoundArgument<'_>]) {
        for place in &self.places.scalars {
            place.write(&bound[place.parameter], &mut self.list[place.step].work);
        }
        self.version += 1;
    }
}

impl AddressPlace {
    fn write(&self, PlacedArray { address, offset }: PlacedArray, work: &mut Work) {
        let origin_bytes = (self.element_bytes * offset as u64).wrapping_add(self.to_origin_bytes);
        match (work, &self.at) {
            (Work::Launch(launch), AddressAt::Word(word)) => {
                launch.arguments.words[*word] = address.0.wrapping_add(origin_bytes);
            }
            (Work::Launch(launch), AddressAt::Packed(index)) => {
                let packed = &mut launch.arguments.arrays[*index];
                (packed.address, packed.origin_bytes) = (address, origin_bytes);
            }
            (Work::Copy(copy), AddressAt::Source) => copy.source = Memory::Device(address),
            (Work::Copy(copy), AddressAt::Destination) => {
                copy.destination = Memory::Device(address);
            }
            (Work::Fill(fill), AddressAt::Destination) => fill.address = address,
            _ => {}
        }
    }
}

impl ScalarPlace {
    fn write(&self, scalar: &BoundArgument<'_>, work: &mut Work) {
        let BoundArgument::Scalar { bytes, .. } = scalar else { return };
        match work {
            Work::Launch(launch) => {
                let mut words = Words::new();
                scalar.pack(&mut words);
                let to = &mut launch.arguments.words[self.word..][..words.len()];
                to.copy_from_slice(&words);
            }
            Work::Fill(fill) => fill.pattern = Bytes::from_slice(bytes),
            Work::Copy(_) => {}
        }
    }
}
