//! Counts the copies of an array in few bytes: almost all copies are of the whole array, and of
//! these the number is enough.

use crate::traffic::{Flow, Traffic};
use resident_core::layout::MemoryOrder;

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
    /// In the place of the avoided copies it has those of a launcher that copies each argument.
    pub(super) fn traffic(&self, memory_order: &MemoryOrder) -> Traffic {
        let whole = |count: u64| Flow { count, bytes: count * memory_order.len_bytes() };
        Traffic {
            to_device: whole(self.to_device.into()),
            to_host: whole(self.to_host.into()),
            between_devices: Flow::default(),
            avoided: whole(self.launcher.into()),
        }
    }

    /// Counts copies. Returns those that must be counted elsewhere.
    pub(super) fn count(&mut self, memory_order: &MemoryOrder, traffic: &Traffic) -> Traffic {
        Traffic {
            to_device: not_counted(&mut self.to_device, traffic.to_device, memory_order),
            to_host: not_counted(&mut self.to_host, traffic.to_host, memory_order),
            between_devices: traffic.between_devices,
            avoided: self.count_launcher(memory_order, traffic.avoided),
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
    use super::{Flow, MemoryOrder, Traffic, WholeCopies};

    #[test]
    fn copies_of_parts_and_more_copies_than_a_number_holds_are_returned() {
        let (memory_order, _) = MemoryOrder::of(&[100], &[1], 4).expect("an order");
        let (mut whole, mut elsewhere) = (WholeCopies::default(), Traffic::default());
        let mut expected = Traffic::default();
        let flows = [(1, 400), (0, 0), (u64::from(u32::MAX), 400 * u64::from(u32::MAX)), (2, 400)];
        for (count, bytes) in flows.into_iter().cycle().take(12) {
            let flow = Flow { count, bytes };
            let traffic =
                Traffic { to_device: flow, to_host: flow, between_devices: flow, avoided: flow };
            elsewhere += whole.count(&memory_order, &traffic);
            expected += traffic;
            assert_eq!(whole.traffic(&memory_order) + elsewhere, expected);
        }
        assert_eq!(whole.traffic(&memory_order).to_host, Flow { count: 3, bytes: 1_200 });
    }
}
