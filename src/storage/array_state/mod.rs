//! The mutable state of an array, behind its lock: which elements are valid at which location,
//! which work uses the array, and the copies on devices.

mod claims;
mod coarsen;
mod cold_state;
mod constants;
mod expected_waits;
pub(super) mod failures;
mod known_conflicts;
mod known_parts;
mod open_reads;
mod pages;
mod part_table;
mod reservation;
mod stale_log;
mod staleness;
mod stream_table;
mod streams;
mod validity;
mod value_table;
mod watchers;
mod whole;
mod whole_copies;

use std::sync::Arc;

use smallvec::SmallVec;

pub(crate) use self::claims::{Claim, MemoryClaim, wait_for_claim};
use self::cold_state::ColdState;
pub(crate) use self::cold_state::OpenRead;
use self::expected_waits::ExpectedWaits;
pub(crate) use self::expected_waits::UseKind;
pub(crate) use self::known_conflicts::add_own_writer;
pub(crate) use self::known_parts::PartUseEnd;
pub(crate) use self::part_table::{PartId, PartUse};
pub(crate) use self::reservation::{PageRuns, Reservation, pages_of};
pub(crate) use self::stale_log::StaleOrigin;
use self::stream_table::StreamTable;
use self::whole_copies::{ArrayCopies, WholeCopies};
use super::HostBuffer;
use crate::device::Stream;
use crate::device::{Device, Held};
use crate::traffic::{Flow, LaunchedCopies, Traffic};
use resident_backend::call_site::CallSite;
use resident_backend::sync;
use resident_backend::{Address, Bytes, DeviceKind, HostMemory};
use resident_core::Access;
use resident_core::coherence::{Coherence, ConstantId, Location, LossId};
use resident_core::layout::MemoryOrder;
use resident_core::ordering::Uses;
use resident_core::ordering::{Mark, UseEnd};

/// The mutable state of an array.
#[derive(Debug)]
pub(crate) struct ArrayState {
    pub(crate) coherence: Coherence,
    pub(crate) host: Option<Arc<HostBuffer>>,
    /// The location of the host memory: the host's own, or that of the device that accesses this
    /// memory too.
    host_location: Location,
    /// Whether the array is an explicit one, whose memory stays until it drops.
    is_explicit: bool,
    /// Whether the host memory belongs to an owner that others may read.
    is_host_read_only: bool,
    /// As [`DeviceCopy::stale_site`], for the host's copy.
    host_stale_site: Option<CallSite>,
    /// The epoch of failures up to which this state is reconciled.
    failure_epoch: u64,
    /// The copy at location n is entry n - 1.
    pub(crate) device_copies: SmallVec<[DeviceCopy; 1]>,
    /// The streams that use the array. A mark refers to a stream by its index in this table.
    streams: StreamTable,
    expected_waits: ExpectedWaits,
    whole_copies: WholeCopies,
    /// The number of uses on devices that are acquired but not marked yet. If it is above 0, no
    /// device copy is evicted.
    pins: u32,
    /// As [`uses_begun`](Self::uses_begun).
    uses_begun: u16,
    cold: Option<Box<ColdState>>,
}

/// The copy on one device.
#[derive(Debug)]
pub(crate) struct DeviceCopy {
    pub(crate) device: Held<Device>,
    /// 0 if parts have no memory, or all.
    address: Address,
    pub(crate) uses: Uses,
    /// The number of the last use (`Device::number_of_use`). Uses of parts of a copy that has
    /// memory by pages are numbered in its table.
    pub(crate) last_use: u64,
    /// The addresses, if the copy has memory by pages.
    reserved: Option<Box<Reservation>>,
    /// The call that made all elements stale, unless there is a log (`stale_log`).
    stale_site: Option<CallSite>,
}

impl DeviceCopy {
    /// The address of the copy, if all its elements have memory.
    #[inline]
    pub(crate) fn address(&self) -> Option<Address> {
        (self.address != Address(0)).then_some(self.address)
    }

    pub(crate) fn set_address(&mut self, address: Option<Address>) {
        self.address = address.unwrap_or(Address(0));
    }
}

impl ArrayState {
    #[inline]
    pub(in crate::storage) fn new(coherence: Coherence) -> Self {
        Self {
            coherence,
            host: None,
            host_location: Location::HOST,
            is_explicit: false,
            is_host_read_only: false,
            host_stale_site: None,
            failure_epoch: 0,
            device_copies: SmallVec::new(),
            streams: StreamTable::default(),
            expected_waits: ExpectedWaits::default(),
            whole_copies: WholeCopies::default(),
            pins: 0,
            uses_begun: 0,
            cold: None,
        }
    }

    pub(in crate::storage) fn on_host(buffer: HostBuffer) -> Self {
        let is_host_read_only = buffer.is_read_only();
        let host = Some(Arc::new(buffer));
        Self { host, is_host_read_only, ..Self::new(Coherence::stored(Location::HOST)) }
    }

    pub(in crate::storage) fn on_device(
        extents: &[u64],
        stream: &Stream,
        address: Address,
    ) -> Self {
        let mut state = Self::new(Coherence::UNDEFINED);
        if let Some(location) = state.assign_location(stream.device_ref()) {
            state.coherence = Coherence::stored(location);
            // The end of the work that wrote the initial contents. Other streams wait for it.
            let written = UseEnd::at(stream.raw().reserve_position());
            let mark = Mark::lossless(state.assign_key(stream), written);
            let copy = state.device_copy_mut(location);
            copy.set_address(Some(address));
            copy.uses.record(extents, None, Access::Overwrite, mark);
        }
        state
    }

    #[inline]
    pub(in crate::storage) fn constant(value: Bytes) -> Self {
        let mut state = Self::new(Coherence::constant(ConstantId(0)));
        let id = state.constant_id(value);
        if id != ConstantId(0) {
            state.coherence = Coherence::constant(id);
        }
        state
    }

    fn cold(&mut self) -> &mut ColdState {
        self.cold.get_or_insert_default()
    }

    pub(crate) fn traffic(&self, memory_order: &MemoryOrder) -> Traffic {
        self.copies(memory_order).traffic()
    }

    /// Whether a launch has used the array as an argument that a launcher would have copied.
    fn is_launched(&self, memory_order: &MemoryOrder) -> bool {
        self.copies(memory_order).launcher.count > 0
    }

    fn copies(&self, memory_order: &MemoryOrder) -> ArrayCopies {
        let mut copies = self.whole_copies.copies(memory_order);
        if let Some(others) = self.cold.as_ref().and_then(|cold| cold.copies.as_deref()) {
            copies += *others;
        }
        copies
    }

    /// Counts copies. Returns those that are of an array of launches.
    pub(crate) fn count_traffic(&mut self, memory_order: &MemoryOrder, traffic: &Traffic) -> Flow {
        let others = self.whole_copies.count(memory_order, &ArrayCopies::made(traffic));
        if others != ArrayCopies::default() {
            **self.cold().copies.get_or_insert_default() += others;
        }
        if self.is_launched(memory_order) { traffic.moved() } else { Flow::default() }
    }

    /// Counts what a launcher would have copied that copies each argument in and out. Explicit
    /// arrays are on one device by the program's wish: no launcher copies them.
    #[inline]
    pub(crate) fn count_launcher(&mut self, memory_order: &MemoryOrder, flow: Flow) {
        if self.is_explicit {
            return;
        }
        let others = self.whole_copies.count_launcher(memory_order, flow);
        if others.count != 0 {
            self.cold().copies.get_or_insert_default().launcher += others;
        }
    }

    /// As [`count_launcher`](Self::count_launcher), for one argument of a launch.
    pub(crate) fn count_argument(
        &mut self,
        memory_order: &MemoryOrder,
        len_bytes: u64,
    ) -> LaunchedCopies {
        if self.is_explicit {
            return LaunchedCopies::default();
        }
        let copies = self.copies(memory_order);
        let own = Flow { count: 2, bytes: 2 * len_bytes };
        self.count_launcher(memory_order, own);
        let before = if copies.launcher.count == 0 { copies.moved() } else { Flow::default() };
        LaunchedCopies { launcher: own, before }
    }

    /// The uses of the host memory, if it is the host's own and queued work has used it.
    #[inline]
    fn host_uses(&self) -> Option<&Uses> {
        self.cold.as_ref()?.host_uses.as_deref()
    }

    /// The location of the host memory.
    #[inline]
    pub(crate) fn host_location(&self) -> Location {
        self.host_location
    }

    pub(in crate::storage) fn set_host_location(&mut self, location: Location) {
        self.host_location = location;
    }

    /// Gives the host memory another location, at which nothing is valid and nothing is in use.
    pub(in crate::storage) fn move_host(&mut self, to: Location) {
        let from = std::mem::replace(&mut self.host_location, to);
        self.coherence.move_location(from, to);
        if !self.uses(from).is_empty() {
            let uses = std::mem::take(self.uses_mut(from));
            *self.uses_mut(to) = uses;
        }
        self.move_stale_sites(from, to);
        self.note_use_begun();
    }

    /// Whether the device at `location`, which reaches ordinary host memory, may use the array's
    /// in its place from now on: if it is not the place of another device's, none of it is memory
    /// that is pinned, lent, or only read, and no access is between acquire and mark.
    pub(crate) fn may_share_host(&self, location: Location) -> bool {
        let copy = self.device_copy(location);
        !self.is_host_mapped()
            && !self.is_explicit
            && !self.has_pins()
            && copy.base().is_none()
            && copy.uses.is_empty()
            && self.host.as_ref().is_none_or(|host| host.may_be_shared())
    }

    /// Whether a device uses ordinary host memory in its place.
    pub(crate) fn is_host_shared(&self) -> bool {
        self.is_host_mapped() && self.host.as_ref().is_some_and(|host| host.is_of_process())
    }

    /// Whether a device accesses the host memory itself.
    #[inline]
    pub(crate) fn is_host_mapped(&self) -> bool {
        self.host_location != Location::HOST
    }

    /// Whether the whole array can be read on the host without a copy or a wait. Never true of
    /// memory that a device accesses too: launches that leave their marks in a summary do not
    /// publish that they use it.
    #[inline]
    pub(crate) fn is_host_ready(&self) -> bool {
        self.host.is_some()
            && self.is_host_idle()
            && self.coherence.uniform().is_some_and(|content| content.is_valid(Location::HOST))
            && !self.has_open_host_writes()
    }

    /// Whether there is host memory that the host may write.
    #[inline]
    pub(crate) fn has_writable_host(&self) -> bool {
        self.host.is_some() && !self.is_host_read_only
    }

    /// Replaces host memory that is only read. It stays until the array drops: guards of other
    /// parts may be reading it.
    pub(in crate::storage) fn replace_read_only_host(&mut self, buffer: HostBuffer) {
        let old = self.host.replace(Arc::new(buffer));
        self.is_host_read_only = false;
        self.cold().read_only_host = old;
    }

    /// Whether no queued work uses the host memory.
    #[inline]
    pub(crate) fn is_host_idle(&self) -> bool {
        match self.host_location {
            Location::HOST => self.host_uses().is_none_or(Uses::is_empty),
            device => self.device_copy(device).uses.is_empty(),
        }
    }

    /// Whether the host memory is pinned for devices of this kind.
    pub(crate) fn is_host_pinned_for(&self, kind: DeviceKind) -> bool {
        self.host.as_ref().is_some_and(|host| host.is_pinned_for(kind))
    }

    /// The devices that have a location in this array.
    pub(crate) fn devices(&self) -> impl Iterator<Item = (Location, &Device)> {
        self.device_copies
            .iter()
            .enumerate()
            .filter_map(|(index, copy)| Some((Location::slot(index + 1)?, &*copy.device)))
    }

    /// The locations of the host and of devices.
    fn locations(&self) -> impl Iterator<Item = Location> + use<> {
        (0..=self.device_copies.len()).filter_map(Location::slot)
    }

    /// The location of a device in this array, assigned at first use. `None` if all 63 are taken.
    pub(crate) fn assign_location(&mut self, device: &Device) -> Option<Location> {
        if let Some(location) = self.find_location(device) {
            return Some(location);
        }
        let copy = DeviceCopy {
            device: Held::new(device.clone()),
            address: Address(0),
            uses: Uses::default(),
            last_use: 0,
            reserved: None,
            stale_site: None,
        };
        match Location::slot(self.device_copies.len() + 1) {
            Some(location) => {
                self.device_copies.push(copy);
                Some(location)
            }
            None => {
                let location = self.unused_location()?;
                let old = std::mem::replace(self.device_copy_mut(location), copy);
                sync::defer_drop(old.device);
                self.forget_stale_log(location);
                Some(location)
            }
        }
    }

    #[inline]
    pub(crate) fn find_location(&self, device: &Device) -> Option<Location> {
        const FIRST: Option<Location> = Location::slot(1);
        match self.device_copies.first() {
            Some(copy) if *copy.device == *device => FIRST,
            _ => self.find_later_location(device),
        }
    }

    #[inline(never)]
    fn find_later_location(&self, device: &Device) -> Option<Location> {
        let index = self.device_copies.iter().position(|copy| *copy.device == *device)?;
        Location::slot(index + 1)
    }

    /// A location, assigned to a device, that has no memory, uses or claims.
    fn unused_location(&self) -> Option<Location> {
        let is_unused = |location: &Location| {
            let copy = self.device_copy(*location);
            copy.base().is_none()
                && !self.is_memory_claimed(*location)
                && copy.uses.is_empty()
                && !self.has_claim_at(*location)
        };
        self.locations().skip(1).find(is_unused)
    }

    /// Whether the copy at `location` must be kept: it is pinned (acquired, but not yet marked as
    /// used), being filled, or in use by a guard.
    pub(crate) fn is_in_use(&mut self, location: Location) -> bool {
        self.close_dropped_reads();
        self.pins > 0 || self.has_claims() || self.device_copy(location).uses.has_open()
    }

    /// Removes the copy at `location`, whose memory the call at `site` freed. Every element is also
    /// valid elsewhere.
    pub(crate) fn remove_copy(
        &mut self,
        memory_order: &MemoryOrder,
        location: Location,
        site: CallSite,
    ) {
        self.record_withdrawn(memory_order, location, &memory_order.whole(), site);
        // The number is never looked up, because no element is lost.
        let (extents, whole) = (memory_order.extents(), memory_order.whole());
        self.coherence.invalidate(extents, location, &whole, LossId(u32::MAX));
        self.set_reservation(location, None);
        self.device_copy_mut(location).uses = Uses::default();
    }

    /// Takes the host memory, which the call at `site` frees. Every element is also valid
    /// elsewhere, and no work uses the memory.
    pub(crate) fn take_host(
        &mut self,
        memory_order: &MemoryOrder,
        site: CallSite,
    ) -> [Option<Arc<HostBuffer>>; 2] {
        let (extents, whole) = (memory_order.extents(), memory_order.whole());
        self.record_withdrawn(memory_order, Location::HOST, &whole, site);
        // The number is never looked up, because no element is lost.
        self.coherence.invalidate(extents, Location::HOST, &whole, LossId(u32::MAX));
        self.is_host_read_only = false;
        let first = self.cold.as_mut().and_then(|cold| cold.read_only_host.take());
        [self.host.take(), first]
    }

    /// Takes the memory that an owner of the program has, if the array was made over such memory,
    /// because the array is over.
    #[inline]
    pub(crate) fn take_memory_of_owner(&mut self) -> Option<Arc<HostBuffer>> {
        if self.is_host_read_only {
            return self.host.take();
        }
        self.cold.as_mut()?.read_only_host.take()
    }

    /// Takes the copies on devices, because the array is over. Nothing refers to them any more:
    /// other threads that list the live arrays may look at this one until they drop their handles.
    pub(crate) fn take_device_copies(&mut self) -> SmallVec<[DeviceCopy; 1]> {
        (self.coherence, self.host_location) = (Coherence::UNDEFINED, Location::HOST);
        std::mem::take(&mut self.device_copies)
    }

    /// The copy at a device's location. Panics for the host's location.
    #[inline]
    pub(crate) fn device_copy(&self, location: Location) -> &DeviceCopy {
        &self.device_copies[location.index() - 1]
    }

    /// The addresses of the array's copies on devices, of which parts may have no memory.
    pub(crate) fn device_addresses(&self) -> impl Iterator<Item = Address> {
        self.device_copies.iter().filter_map(DeviceCopy::base)
    }

    #[inline]
    pub(crate) fn device_copy_mut(&mut self, location: Location) -> &mut DeviceCopy {
        &mut self.device_copies[location.index() - 1]
    }

    /// Notes a use of all elements of the copy at a location that is no launch. Those of the host's
    /// copy have no number.
    #[inline]
    pub(crate) fn number_use(&mut self, location: Location) {
        if location != Location::HOST {
            let copy = self.device_copy_mut(location);
            copy.last_use = copy.device.number_of_other_use();
        }
    }

    /// The number of a use of the copy at a location that is no launch; 0 for the host's copy.
    #[inline]
    pub(crate) fn number_of_other_use(&self, location: Location) -> u64 {
        match location {
            Location::HOST => 0,
            device => self.device_copy(device).device.number_of_other_use(),
        }
    }

    pub(crate) fn uses(&self, location: Location) -> &Uses {
        static EMPTY: Uses = Uses::EMPTY;
        if location == Location::HOST {
            self.host_uses().unwrap_or(&EMPTY)
        } else {
            &self.device_copy(location).uses
        }
    }

    pub(crate) fn uses_mut(&mut self, location: Location) -> &mut Uses {
        if location == Location::HOST {
            self.cold().host_uses.get_or_insert_default()
        } else {
            &mut self.device_copy_mut(location).uses
        }
    }

    /// Whether any access has been acquired whose use is not marked yet.
    pub(crate) fn has_pins(&self) -> bool {
        self.pins > 0
    }

    /// Prevents eviction of all device copies until [`unpin`](Self::unpin).
    #[inline]
    pub(crate) fn pin(&mut self) {
        self.pins += 1;
        self.note_use_begun();
    }

    #[inline]
    fn note_use_begun(&mut self) {
        self.uses_begun = self.uses_begun.wrapping_add(1);
    }

    /// The number of uses that have begun so far and prevent, or prevented, eviction. It wraps.
    pub(crate) fn uses_begun(&self) -> u64 {
        u64::from(self.uses_begun)
    }

    /// Whether the array is an explicit one, whose memory stays until it drops.
    pub(crate) fn is_explicit(&self) -> bool {
        self.is_explicit
    }

    /// From now on, the array's memory stays.
    pub(crate) fn become_explicit(&mut self) {
        self.is_explicit = true;
    }

    /// From now on, the array's copies may be evicted.
    pub(crate) fn become_coherent(&mut self) {
        self.is_explicit = false;
    }

    #[inline]
    pub(crate) fn unpin(&mut self) {
        debug_assert!(self.pins > 0, "unpinned more often than pinned");
        self.pins = self.pins.wrapping_sub(1);
    }
}
