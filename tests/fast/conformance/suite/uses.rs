//! Random uses of one array by the host and by kernels, whatever memory it has: its contents are
//! those of an ndarray that is used in the same way.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::sample::select;

use super::prelude::*;

pub(crate) const LEN: usize = 600;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    HostAdds,
    KernelAdds,
    KernelCopies,
    Fills,
    FillsThere,
    HostOverwrites,
    AssignsThere,
    AssignsBack,
    Sets,
    Gets,
    Prefetches,
    PrefetchesToHost,
    Releases,
    Reads,
    Snapshots,
    TakesFromDeviceArray,
    GivesToDeviceArray,
}

use Kind::{
    AssignsBack, AssignsThere, Fills, FillsThere, Gets, GivesToDeviceArray, HostAdds,
    HostOverwrites, KernelAdds, KernelCopies, Prefetches, PrefetchesToHost, Reads, Releases, Sets,
    Snapshots, TakesFromDeviceArray,
};

/// All kinds; the last two copy between the array and a device array.
pub(crate) const KINDS: &[Kind] = &[
    HostAdds,
    KernelAdds,
    KernelCopies,
    Fills,
    FillsThere,
    HostOverwrites,
    AssignsThere,
    AssignsBack,
    Sets,
    Gets,
    Prefetches,
    PrefetchesToHost,
    Releases,
    Reads,
    Snapshots,
    TakesFromDeviceArray,
    GivesToDeviceArray,
];

/// A use of a part, with a number, on one of some streams. Those of one element use the first of
/// the part.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) kind: Kind,
    pub(crate) range: Range<usize>,
    pub(crate) value: u32,
    pub(crate) stream: usize,
}

pub(crate) fn programs(kinds: &'static [Kind]) -> impl Strategy<Value = Vec<Use>> {
    let range = (0..LEN, 1..LEN).prop_map(|(start, len)| start..(start + len).min(LEN));
    let one = (select(kinds), range, any::<u32>(), any::<u8>());
    let one = one.prop_map(|(kind, range, value, stream)| Use {
        kind,
        range,
        value,
        stream: usize::from(stream),
    });
    vec(one, 1..30)
}

/// The array in use and another on the same devices, and the arrays that they must be equal to.
struct Program<'a, 'v> {
    lab: &'a Lab,
    array: &'a mut SmartViewMut<'v, u32, Ix1>,
    other: SmartArray<u32, Ix1>,
    model: Array1<u32>,
    model_other: Array1<u32>,
}

impl Program<'_, '_> {
    fn make(&mut self, stream: &Stream, next: &Use) -> Result<()> {
        let Self { lab, array, other, model, model_other } = self;
        let (part, value) = (s![next.range.clone()], next.value);
        match next.kind {
            HostAdds => {
                array.slice_mut(part).host_mut()?.mapv_inplace(|x| x.wrapping_add(3));
                model.slice_mut(part).mapv_inplace(|x| x.wrapping_add(3));
            }
            KernelAdds => {
                lab.add(stream, 5, &mut array.slice_mut(part))?;
                model.slice_mut(part).mapv_inplace(|x| x.wrapping_add(5));
            }
            KernelCopies => {
                lab.accumulate(stream, &array.slice(part), &mut other.slice_mut(part))?;
                let mut sums = model_other.slice_mut(part);
                sums.zip_mut_with(&model.slice(part), |sum, x| *sum = sum.wrapping_add(*x));
            }
            Fills => {
                array.slice_mut(part).fill(value)?;
                model.slice_mut(part).fill(value);
            }
            FillsThere => {
                array.slice_mut(part).fill_on(stream, value)?;
                model.slice_mut(part).fill(value);
            }
            HostOverwrites => {
                array.slice_mut(part).host_overwrite()?.fill(value);
                model.slice_mut(part).fill(value);
            }
            AssignsThere => {
                other.slice_mut(part).assign_on(stream, &array.slice(part))?;
                model_other.slice_mut(part).assign(&model.slice(part));
            }
            AssignsBack => {
                array.slice_mut(part).assign(&other.slice(part))?;
                model.slice_mut(part).assign(&model_other.slice(part));
            }
            Sets => {
                array.set(next.range.start, value)?;
                model[next.range.start] = value;
            }
            TakesFromDeviceArray => {
                let there = DeviceArray::from_host_on(stream, &model_other.slice(part))?;
                there.copy_to_pinned_on(stream, &mut array.slice_mut(part))?;
                model.slice_mut(part).assign(&model_other.slice(part));
            }
            _ => return self.look(stream, next),
        }
        Ok(())
    }

    /// Uses that change nothing.
    fn look(&mut self, stream: &Stream, next: &Use) -> Result<()> {
        let Self { array, other, model, .. } = self;
        let (part, first) = (s![next.range.clone()], next.range.start);
        let expected = model.slice(part);
        match next.kind {
            Gets => assert_eq!(array.get(first)?, model[first]),
            Prefetches => array.prefetch(stream)?,
            PrefetchesToHost => array.prefetch_host_on(stream)?,
            Releases => other.release_on(&stream.device())?,
            Reads => assert_eq!(*array.slice(part).host()?, expected),
            Snapshots => assert_eq!(array.slice(part).snapshot_on(stream)?.wait()?, expected),
            GivesToDeviceArray => {
                let mut there = DeviceArray::uninit_on(stream, next.range.len())?;
                there.copy_from_pinned_on(stream, &array.slice(part))?;
                assert_eq!(there.copy_to_host()?, expected);
            }
            other => unreachable!("`make` makes {other:?}"),
        }
        Ok(())
    }
}

/// The memory of the array.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Home {
    Pinned,
    LentPinned,
    Mapped,
    Managed,
    LentMapped,
    /// Ordinary memory. On a device that reaches it, that of the device too.
    Ordinary,
}

/// An ordinary array that the current device has used.
pub(crate) fn used_once(contents: Array1<u32>) -> Result<SmartArray<u32, Ix1>> {
    let array = SmartArray::from(contents);
    array.prefetch(&Device::current()?.stream())?;
    Ok(array)
}

/// Whether the current device reaches ordinary host memory, so that it needs no copy of it.
pub(crate) fn reaches_host_memory() -> Result<bool> {
    Ok(bytes(used_once(counting(LEN))?.traffic()) == [0; 3])
}

type Body<'b> = &'b mut dyn FnMut(&mut SmartViewMut<'_, u32, Ix1>) -> Result<()>;

impl Home {
    /// Runs `body` on an array of `0, 1, 2, ..`, and returns the contents.
    fn with_array(self, body: Body<'_>) -> Result<Array1<u32>> {
        let mut lent = counting(LEN);
        let mut array: SmartArray<u32, Ix1> = match self {
            Self::LentPinned => return with_pinned(&mut lent, body).map(|()| lent),
            Self::LentMapped => return with_mapped(&mut lent, body).map(|()| lent),
            Self::Pinned => PinnedArray::from_array(lent)?.into(),
            Self::Mapped => MappedArray::from_array(lent.view())?.into(),
            Self::Managed => ManagedArray::from_array(lent.view())?.into(),
            Self::Ordinary => used_once(lent)?,
        };
        body(&mut array.view_mut())?;
        array.into_array()
    }
}

/// Runs random programs on arrays of each kind of memory, with these streams.
pub(crate) fn run_programs(
    lab: &Lab,
    seed: u64,
    homes: &'static [Home],
    kinds: &'static [Kind],
    streams: &[Stream],
    check: impl Fn(&SmartViewMut<'_, u32, Ix1>),
) -> Result<()> {
    let mut devices: Vec<Device> = Vec::new();
    for device in streams.iter().map(Stream::device) {
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    let outcome = runner((25, 60), seed).run(&(select(homes), programs(kinds)), |(home, uses)| {
        let mut expected = counting(LEN);
        let mut all = |array: &mut SmartViewMut<'_, u32, Ix1>| {
            let model_other = counting(LEN) * 7;
            let other = SmartArray::from(model_other.clone());
            let mut program = Program { lab, array, other, model: counting(LEN), model_other };
            for next in &uses {
                program.make(&streams[next.stream % streams.len()], next)?;
            }
            assert_eq!(*program.other.host()?, program.model_other);
            check(program.array);
            expected = program.model;
            Ok(())
        };
        let seen = with_checked_totals(&devices, || home.with_array(&mut all));
        assert_eq!(seen.unwrap_or_else(|error| panic!("{home:?}: {error}")), expected, "{home:?}");
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    Ok(())
}
