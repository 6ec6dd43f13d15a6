//! Counts the copies of an array in few bytes: almost all copies are of the whole array, and of
//! these the number is enough.

use std::ops::AddAssign;

use crate::traffic::{Flow, Traffic};
use resident_core::layout::MemoryOrder;

/// The copies of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ArrayCopies {
    to_device: Flow,
    to_host: Flow,
    between_devices: Flow,
    /// What a launcher would have copied that copies each argument in and out. This is no copy.
    pub(super) launcher: Flow,
}

impl ArrayCopies {
    /// Copies that were made.
    pub(super) fn made(traffic: &Traffic) -> Self {
        let Traffic { to_device, to_host, between_devices, avoided: _ } = *traffic;
        Self { to_device, to_host, between_devices, launcher: Flow::default() }
    }

    pub(super) fn moved(&self) -> Flow {
        self.to_device + self.to_host + self.between_devices
    }

    pub(super) fn traffic(&self) -> Traffic {
        let Self { to_device, to_host, between_devices, launcher } = *self;
        let is_launched = launcher.count > 0;
        let avoided = if is_launched { launcher - self.moved() } else { Flow::default() };
        Traffic { to_device, to_host, between_devices, avoided }
    }
}

impl AddAssign for ArrayCopies {
    fn add_assign(&mut self, other: Self) {
        self.to_device += other.to_device;
        self.to_host += other.to_host;
        self.between_devices += other.between_devices;
        self.launcher += other.launcher;
    }
}

/// The numbers of copies of the whole array. Other copies, and those that a number has no room for,
/// are counted elsewhere.
#[derive(Debug, Default)]
pub(super) struct WholeCopies {
    /// What a launcher would have copied that copies each argument in and out.
    launcher: u32,
    to_device: u16,
    to_host: u16,
}

impl WholeCopies {
    pub(super) fn copies(&self, memory_order: &MemoryOrder) -> ArrayCopies {
        let whole = |count: u64| Flow { count, bytes: count * memory_order.len_bytes() };
        ArrayCopies {
            to_device: whole(self.to_device.into()),
            to_host: whole(self.to_host.into()),
            between_devices: Flow::default(),
            launcher: whole(self.launcher.into()),
        }
    }

    /// Counts copies. Returns those that must be counted elsewhere.
    pub(super) fn count(
        &mut self,
        memory_order: &MemoryOrder,
        copies: &ArrayCopies,
    ) -> ArrayCopies {
        ArrayCopies {
            to_device: not_counted(&mut self.to_device, copies.to_device, memory_order),
            to_host: not_counted(&mut self.to_host, copies.to_host, memory_order),
            between_devices: copies.between_devices,
            launcher: self.count_launcher(memory_order, copies.launcher),
        }
    }

    /// As [`count`](Self::count), of what a launcher would have copied.
    #[inline]
    pub(super) fn count_launcher(&mut self, memory_order: &MemoryOrder, flow: Flow) -> Flow {
        not_counted(&mut self.launcher, flow, memory_order)
    }
}

/// Adds copies to `number` if they are of the whole array and it has room for them. Else returns
/// them.
#[inline]
fn not_counted<N>(number: &mut N, flow: Flow, memory_order: &MemoryOrder) -> Flow
where
    N: Copy + Into<u64> + TryFrom<u64>,
{
    let sum = (*number).into().saturating_add(flow.count);
    match N::try_from(sum) {
        Ok(sum) if flow.bytes == flow.count.saturating_mul(memory_order.len_bytes()) => {
            *number = sum;
            Flow::default()
        }
        _ => flow,
    }
}

#[cfg(test)]
mod tests {
    use super::{ArrayCopies, Flow, MemoryOrder, WholeCopies};

    #[test]
    fn copies_of_parts_and_more_copies_than_a_number_holds_are_returned() {
        let (memory_order, _) = MemoryOrder::of(&[100], &[1], 4).expect("an order");
        let (mut whole, mut elsewhere) = (WholeCopies::default(), ArrayCopies::default());
        let mut expected = ArrayCopies::default();
        let flows = [(1, 400), (0, 0), (u64::from(u32::MAX), 400 * u64::from(u32::MAX)), (2, 400)];
        for (count, bytes) in flows.into_iter().cycle().take(12) {
            let flow = Flow { count, bytes };
            let (to_device, to_host, between_devices, launcher) = (flow, flow, flow, flow);
            let copies = ArrayCopies { to_device, to_host, between_devices, launcher };
            elsewhere += whole.count(&memory_order, &copies);
            expected += copies;
            let mut all = whole.copies(&memory_order);
            all += elsewhere;
            assert_eq!(all, expected);
        }
        assert_eq!(whole.copies(&memory_order).to_host, Flow { count: 3, bytes: 1_200 });
    }
}
