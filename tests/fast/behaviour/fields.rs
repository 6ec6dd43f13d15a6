//! Fields of records on embedded devices: their order, what is told, and what guards and watches
//! make of them.

use std::marker::PhantomData;

use bytemuck::Zeroable;
use resident::ndarray::SliceInfoElem;
use resident::{Element, field, field_mut};
use support::bodies::assert_ordered;
use support::own_process::HANG_LIMIT;
use support::prelude::*;

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Element)]
pub(crate) struct Particle {
    position: [f32; 3],
    mass: f32,
}

/// As large as its alignment, as CUDA's `float4`.
#[repr(C, align(16))]
#[derive(Clone, Copy, PartialEq, Debug, Element)]
struct Float4 {
    x: f32,
    y: f32,
    zw: [f32; 2],
}

/// A newtype: its field is as large as the record.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Debug, Element)]
struct Meters(f32);

/// What the derive reads past: attributes, visibility, and commas and arrows in types.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Element)]
pub(crate) struct Entry(
    /// Another record.
    pub Particle,
    pub(crate) [u8; 4],
    PhantomData<fn(u8, u16) -> u8>,
    r#Units,
);

/// Of two fields, of which one has no size.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Debug, Element)]
struct Units {
    pub unit: PhantomData<(u8, u16)>,
    pub r#type: u32,
}

/// Records that a macro writes, whose visibilities and types it was given.
macro_rules! records {
    ($named:ident, $unnamed:ident, $visibility:vis, $type:ty) => {
        #[repr(C)]
        #[derive(Clone, Copy, PartialEq, Debug, Element)]
        $visibility struct $named { $visibility one: $type, $visibility other: $type }
        #[repr(C)]
        #[derive(Clone, Copy, PartialEq, Debug, Element)]
        $visibility struct $unnamed($visibility $type, $type);
    };
}
records!(Named, Unnamed, pub(crate), [u16; 2]);
records!(Private, PrivateToo, , Meters);

fn cloud(len: usize) -> SmartArray<Particle, Ix1> {
    let particle = |at| Particle { position: [at as f32, 1.0, 2.0], mass: 3.0 };
    SmartArray::from((0..len).map(particle).collect::<Vec<_>>()).named("cloud")
}

fn halve() -> Kernel<(InOut<f32, Ix1>,)> {
    Kernel::new("halve").host(|_grid, (mut xs,)| xs *= 0.5)
}

#[test]
fn only_launches_that_use_the_same_field_are_ordered() -> Result<()> {
    for seed in 0..20 {
        let device = Device::emulated(Emulation::new().seed(seed).poison(false));
        let streams = [device.new_stream()?, device.new_stream()?];
        let (mut cloud, grid) = (cloud(10), Grid::cover(10));
        cloud.prefetch(&device.stream())?;
        device.synchronize()?;
        let before = count_of(&device, CallKind::WaitEvent);
        let mut mass = field_mut!(cloud, Particle, mass);
        halve().launch_on(&streams[0], grid, (&mut mass,))?;
        let mut x = field_mut!(cloud, Particle, position[0]);
        halve().launch_on(&streams[1], grid, (&mut x,))?;
        halve().launch_on(&streams[0], grid, (&mut field_mut!(cloud, Particle, mass),))?;
        assert_eq!(count_of(&device, CallKind::WaitEvent) - before, 0, "different fields");
        let mut mass = field_mut!(cloud, Particle, mass);
        halve().launch_on(&streams[1], grid, (&mut mass.slice_mut(s![3..]),))?;
        assert_eq!(count_of(&device, CallKind::WaitEvent) - before, 1, "the same field");
        assert_eq!(field!(cloud, Particle, mass).to_vec()?[2..4], [0.75, 0.375]);
        assert_eq!(field!(cloud, Particle, position[0]).host()?[9], 4.5);
        assert_ordered(&device);
    }
    Ok(())
}

#[test]
fn a_launch_of_one_field_does_not_wait_for_one_of_another() -> Result<()> {
    let device = lab();
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let gated = Kernel::<(InOut<f32, Ix1>,)>::new("gated").host(move |_grid, (mut xs,)| {
        let _closed = gate.lock().expect("no panic").recv_timeout(HANG_LIMIT);
        xs += 1.0;
    });
    let (one, other) = (device.new_stream()?, device.new_stream()?);
    let mut cloud = cloud(10);
    cloud.prefetch(&one)?;
    gated.launch_on(&one, Grid::cover(10), (&mut field_mut!(cloud, Particle, mass),))?;
    let mut y = field_mut!(cloud, Particle, position[1]);
    halve().launch_on(&other, Grid::cover(10), (&mut y,))?;
    assert_eq!(y.host()?.sum(), 5.0, "this waits for the second launch only");
    assert!(!one.is_idle()?);
    open.send(()).expect("the kernel waits");
    assert_eq!(field!(cloud, Particle, mass).host()?.sum(), 40.0);
    Ok(())
}

#[test]
fn a_field_for_a_flat_parameter_is_refused_and_the_message_says_what_to_do() -> Result<()> {
    let stream = lab().stream();
    let flat = Kernel::<(In<f32>,)>::new("flat").host(|_grid, (_,)| {});
    let cloud = cloud(5);
    let told = |refused: Result<()>| match refused {
        Err(error @ Error::NotContiguous { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let mass = field!(cloud, Particle, mass);
    let text = told(flat.launch_on(&stream, Grid::cover(5), (&mass,)));
    for part in ["\"cloud\" has shape [5] and strides [4]", "`In<f32, Ix1>`", "`try_clone`"] {
        assert!(text.contains(part), "{text}");
    }
    let packed = mass.try_clone()?;
    flat.launch_on(&stream, Grid::cover(5), (&packed,))?;
    assert_eq!(packed.host()?, Array1::from_elem(5, 3.0));
    flat.launch_on(&stream, Grid::cover(1), (&mass.slice(s![..1]),))?;

    let device_cloud = DeviceArray::<Particle, _>::zeros_on(&stream, 5)?;
    let mass = field!(device_cloud, Particle, mass);
    let text = told(flat.launch_on(&stream, Grid::cover(5), (&mass,)));
    assert!(text.contains("`to_contiguous`"), "{text}");
    flat.launch_on(&stream, Grid::cover(5), (&mass.to_contiguous()?,))
}

#[test]
fn records_as_large_as_their_alignment_have_fields() -> Result<()> {
    let stream = lab().stream();
    let mut points = SmartArray::<Float4, _>::zeros(8);
    field_mut!(points, Float4, y).fill_on(&stream, 2.0)?;
    halve().launch_on(&stream, Grid::cover(8), (&mut field_mut!(points, Float4, y),))?;
    halve().launch_on(&stream, Grid::cover(8), (&mut field_mut!(points, Float4, zw[1]),))?;
    assert_eq!(field!(points, Float4, zw).host()?[7], [0.0; 2]);
    assert_eq!(points.get(3)?, Float4 { x: 0.0, y: 1.0, zw: [0.0; 2] });
    assert_eq!(points.traffic().to_host.bytes, 8 * 4 + 4, "`zw[1]`, and `y` of one record");
    Ok(())
}

#[test]
fn only_the_arrays_own_elements_are_lent_as_an_array() -> Result<()> {
    let lengths = SmartArray::from(vec![Meters(2.0); 4]);
    let field = field!(lengths, Meters, 0);
    assert_eq!((field.host()?.sum(), field.is_c_contiguous()), (8.0, true));
    assert!(field.host()?.as_array().is_none() && lengths.host()?.as_array().is_some());
    let one = SmartArray::from(vec![Particle::zeroed()]);
    assert!(field!(one, Particle, mass).host()?.as_array().is_none());
    Ok(())
}

#[test]
fn a_watch_takes_records_whose_fields_are_constants_or_on_a_device() -> Result<()> {
    let device = lab();
    let mut cloud = cloud(6);
    let expected = cloud.host()?.mapv(|old| Particle { mass: 7.0, position: old.position });
    drop(cloud.gpu_mut_on(&device.stream())?);
    let live = cloud.watch()?;
    field_mut!(cloud, Particle, mass).fill(7.0)?;
    let state = live.changed()?.expect("the array lives");
    assert_eq!((&*state, cloud.traffic().to_host.bytes), (&*expected, 6 * 12));
    drop(field_mut!(cloud, Particle, mass).gpu_mut_on(&device.stream())?);
    assert_eq!(&*live.changed()?.expect("the array lives"), &*expected);
    assert_eq!(cloud.traffic().to_host.bytes, 6 * 12 + 6 * 16);
    Ok(())
}

#[test]
fn fields_of_arrays_without_elements_and_of_parts_without_elements() -> Result<()> {
    let stream = lab().stream();
    let mut none = SmartArray::<Particle, _>::uninit((0, 3));
    assert_eq!(field!(none, Particle, mass).host()?.shape(), [0, 3]);
    field_mut!(none, Particle, mass).fill(1.0)?;
    let mut cloud = cloud(4);
    let mut part = cloud.slice_mut(s![2..2]);
    let mut mass = field_mut!(part, Particle, mass);
    mass.fill(9.0)?;
    drop(mass.gpu_mut_on(&stream)?);
    assert_eq!((mass.len(), mass.residency().host()), (0, Valid));
    assert_eq!(field!(cloud, Particle, mass).host()?.sum(), 12.0);
    Ok(())
}

#[test]
fn fields_of_mirrored_transposed_and_repeated_records() -> Result<()> {
    let stream = lab().stream();
    let cloud = cloud(6);
    let table = cloud.reshape((2, 3))?;
    let x = field!(table.t(), Particle, position[0]);
    assert_eq!(x.slice(s![..;-1, 1]).to_vec()?, [5.0, 4.0, 3.0]);
    assert_eq!(x.strides(), [4, 12]);
    drop(field!(table.slice(s![.., ..;-2]), Particle, position[0]).gpu_on(&stream)?);
    assert_eq!(cloud.traffic().to_device.bytes, 4 * 4);
    let repeated = field!(cloud.slice(s![..1]).broadcast((5, 1))?, Particle, mass);
    assert_eq!(repeated.host()?.sum(), 15.0);
    assert_eq!(repeated.snapshot_on(&stream)?.wait()?.shape(), [5, 1]);
    Ok(())
}

/// Into an array of numbers, and into fields of other records.
#[test]
fn fields_are_copied_into_memory_that_is_used_again() -> Result<()> {
    let stream = lab().stream();
    let mut cloud = cloud(6);
    drop(cloud.gpu_mut_on(&stream)?);
    let mut numbers = PinnedArray::<f32, _>::uninit(3)?;
    field!(cloud.slice(s![..;2]), Particle, position[0]).snapshot_into(&stream, &mut numbers)?;
    assert_eq!(numbers.host()?.to_vec(), [0.0, 2.0, 4.0]);
    field!(cloud.slice(s![3..]), Particle, mass).snapshot_into(&stream, &mut numbers)?;
    assert_eq!(numbers.host()?.to_vec(), [3.0; 3]);
    let mut records = SmartArray::from(vec![Particle { position: [7.0; 3], mass: 7.0 }; 3]);
    records.page_lock()?;
    let mut masses = field_mut!(records, Particle, mass);
    field!(cloud.slice(s![..3]), Particle, position[0]).snapshot_into(&stream, &mut masses)?;
    let seen: Vec<_> = records.host()?.iter().map(|it| (it.position, it.mass)).collect();
    assert_eq!(seen, [([7.0; 3], 0.0), ([7.0; 3], 1.0), ([7.0; 3], 2.0)]);
    assert_eq!(cloud.traffic().to_host.bytes, 3 * 3 * 4);
    Ok(())
}

#[test]
fn more_axes_than_regions_have() -> Result<()> {
    let stream = lab().stream();
    let mut records = SmartArray::<Particle, _>::zeros([2, 3, 2, 2, 2, 2, 2].as_slice());
    let part = part_of_seven_axes();
    let mut mass = field_mut!(records, Particle, mass);
    mass.slice_mut(part.as_slice()).fill(4.0)?;
    drop(mass.gpu_mut_on(&stream)?);
    assert_eq!(mass.slice(part.as_slice()).host()?.sum(), 4.0 * 32.0);
    assert_eq!(mass.host()?.sum(), 4.0 * 32.0);
    assert_eq!(records.traffic().to_host.bytes, 4 * 192);
    assert_eq!(records.traffic().to_device.bytes, 0);
    Ok(())
}

/// `s![1, 2.., .., ..;-1, .., .., 0]` with seven axes.
fn part_of_seven_axes() -> Vec<SliceInfoElem> {
    use SliceInfoElem::{Index, Slice};
    let all = Slice { start: 0, end: None, step: 1 };
    let mirrored = Slice { start: 0, end: None, step: -1 };
    vec![all, Index(2), all, mirrored, all, all, Index(0)]
}

#[test]
fn a_derived_record_is_an_element_with_the_fields_it_has() -> Result<()> {
    let units = Units { unit: PhantomData, r#type: 7 };
    let particle = Particle { position: [1.0; 3], mass: 2.0 };
    let entry = Entry(particle, [1, 2, 3, 4], PhantomData, units);
    let mut entries = SmartArray::from(vec![entry; 3]);
    entries.prefetch(&lab().stream())?;
    field_mut!(entries, Entry, 0.mass).host_mut()?.fill(5.0);
    let changed = Entry(Particle { mass: 5.0, ..particle }, [1, 2, 3, 4], PhantomData, units);
    assert_eq!(entries.to_vec()?, [changed; 3]);
    assert_eq!(field!(entries, Entry, 3.r#type).host()?.sum(), 21);
    assert_eq!(bytemuck::bytes_of(&units), 7_u32.to_ne_bytes());
    let (named, unnamed) = (Named { one: [1, 2], other: [3, 4] }, Unnamed([1, 2], [3, 4]));
    assert_eq!(bytemuck::cast::<_, Unnamed>(named), unnamed);
    let private = Private { one: Meters(1.0), other: Meters(2.0) };
    let same = bytemuck::cast::<_, PrivateToo>(private);
    assert_eq!(same, PrivateToo(Meters(1.0), Meters(2.0)));
    Ok(())
}
