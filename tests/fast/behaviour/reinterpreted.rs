//! The same bytes as elements of another type: every pair of types, in random parts of arrays whose
//! contents are in several places, against a model that is a table of bytes.

use std::fmt::Debug;

use num_complex::Complex;
use resident::ndarray::{ArrayView2, SliceInfo, SliceInfoElem};
use resident::{Element, field, field_mut};
use support::prelude::*;

const ROWS: usize = 3;
/// A multiple of the size of each type.
const ROW_BYTES: usize = 48;

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Element)]
struct Point {
    x: f32,
    y: f32,
    half: [u16; 2],
}

/// A part of a table: ranges and steps, as `s!` takes them.
#[derive(Clone, Copy, Debug)]
struct Tile {
    rows: (usize, usize),
    columns: (usize, usize, isize),
}

impl Tile {
    fn draw(random: &mut Random, columns: usize) -> Self {
        let mut range = |len: usize| {
            let start = random.below(len);
            (start, start + 1 + random.below(len - start))
        };
        let (rows, (start, end)) = (range(ROWS), range(columns));
        let step = [1, 1, 1, 2, 3, -1, -2][random.below(7)];
        Self { rows, columns: (start, end, step) }
    }

    /// Elements next to each other, that begin and end at a multiple of 24 bytes.
    fn draw_whole<U>(random: &mut Random) -> Self {
        let (row, start) = (random.below(ROWS), random.below(2));
        let (from, to) = (24 * start, 24 * (start + 1 + random.below(2 - start)));
        let columns = (from / size_of::<U>(), to / size_of::<U>(), 1);
        Self { rows: (row, row + 1 + random.below(ROWS - row)), columns }
    }

    fn info(self) -> SliceInfo<[SliceInfoElem; 2], Ix2, Ix2> {
        let Self { rows, columns: (start, end, step) } = self;
        s![rows.0..rows.1, start..end;step]
    }
}

/// The bytes that an array should have.
struct Model(Array2<u8>);

impl Model {
    /// The first byte of each element of a tile.
    fn places<U>(tile: Tile) -> Array2<(usize, usize)> {
        let shape = (ROWS, ROW_BYTES / size_of::<U>());
        let all = Array2::from_shape_fn(shape, |(row, column)| (row, column * size_of::<U>()));
        all.slice(tile.info()).to_owned()
    }

    fn read<U: Element>(&self, tile: Tile) -> Array2<U> {
        Self::places::<U>(tile).mapv(|(row, byte)| {
            let bytes = self.0.slice(s![row, byte..byte + size_of::<U>()]).to_vec();
            bytemuck::pod_read_unaligned(&bytes)
        })
    }

    fn write<U: Element>(&mut self, tile: Tile, values: &Array2<U>) {
        for ((row, byte), value) in Self::places::<U>(tile).iter().zip(values) {
            let bytes = bytemuck::bytes_of(value);
            let mut to = self.0.slice_mut(s![*row, *byte..byte + size_of::<U>()]);
            to.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        }
    }

    /// Whether the tile has no part of an element of `unit_bytes` without the rest of it.
    fn is_whole<U>(tile: Tile, unit_bytes: usize) -> bool {
        let mut has = Array2::from_elem((ROWS, ROW_BYTES), 0);
        for (row, byte) in Self::places::<U>(tile) {
            has.slice_mut(s![row, byte..byte + size_of::<U>()]).fill(1);
        }
        let units = has.exact_chunks((1, unit_bytes)).into_iter().map(|unit| unit.sum());
        units.into_iter().all(|sum: usize| sum == 0 || sum == unit_bytes)
    }
}

fn bytes_of<T: Element>(array: ArrayView2<'_, T>) -> Array2<u8> {
    let bytes = array.iter().flat_map(|value| bytemuck::bytes_of(value).to_vec()).collect();
    Array2::from_shape_vec((ROWS, ROW_BYTES), bytes).expect("whole rows")
}

/// Small numbers whose bytes differ, and which are no NaN in any type.
fn drawn<U: Element>(random: &mut Random, shape: &[usize]) -> Array2<U> {
    Array2::from_shape_simple_fn((shape[0], shape[1]), || {
        let bytes: Vec<u8> = (0..size_of::<U>()).map(|_| random.below(100) as u8).collect();
        bytemuck::pod_read_unaligned(&bytes)
    })
}

/// Only parts of numbers are refused.
fn expect<V>(done: Result<V>, is_whole: bool) -> Result<Option<V>> {
    match done {
        Ok(value) if is_whole => Ok(Some(value)),
        Ok(_) => panic!("a part of a number was written"),
        Err(Error::Shape { .. }) if !is_whole => Ok(None),
        Err(error) => Err(error),
    }
}

/// What one pair of types needs for its steps.
struct Pair<T: Element, U: Element> {
    random: Random,
    model: Model,
    devices: [Device; 2],
    copy: Kernel<(In<U, Ix2>, Out<U, Ix2>)>,
    keep: Kernel<(InOut<T>,)>,
    unit_bytes: usize,
}

impl<T: Element + Debug + PartialEq, U: Element + Debug + PartialEq> Pair<T, U> {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let model = Model(drawn(&mut random, &[ROWS, ROW_BYTES]));
        let copy = Kernel::<(In<U, Ix2>, Out<U, Ix2>)>::new("copy")
            .host(|_grid, (from, mut to)| to.assign(&from));
        let keep = Kernel::<(InOut<T>,)>::new("keep").host(|_grid, (_,)| {});
        let is_record = size_of::<T>() != align_of::<T>();
        let unit_bytes = if is_record { 1 } else { size_of::<T>() };
        Self { random, model, devices: [lab(), lab()], copy, keep, unit_bytes }
    }

    fn array(&self) -> Array2<T> {
        let whole = Tile { rows: (0, ROWS), columns: (0, ROW_BYTES / size_of::<T>(), 1) };
        self.model.read(whole)
    }

    fn tile(&mut self) -> (Tile, bool) {
        let is_whole = self.random.below(2) == 0;
        let tile = if is_whole {
            Tile::draw_whole::<U>(&mut self.random)
        } else {
            Tile::draw(&mut self.random, ROW_BYTES / size_of::<U>())
        };
        (tile, Model::is_whole::<U>(tile, self.unit_bytes))
    }

    fn stream(&mut self) -> Stream {
        self.devices[self.random.below(2)].stream()
    }

    /// Writes a part by way of the array's own elements.
    fn use_own(&mut self, array: &mut SmartArray<T, Ix2>) -> Result<()> {
        let (stream, columns) = (self.stream(), ROW_BYTES / size_of::<T>());
        let tile = Tile::draw(&mut self.random, columns);
        let mut part = array.slice_mut(tile.info());
        match self.random.below(5) {
            0 => drop(part.gpu_mut_on(&stream)?),
            1 => drop(part.host_mut()?),
            2 => {
                let value = drawn::<T>(&mut self.random, &[1, 1])[[0, 0]];
                part.fill(value)?;
                let values = Array2::from_elem((part.shape()[0], part.shape()[1]), value);
                self.model.write(tile, &values);
            }
            3 => self.keep.launch_on(&stream, Grid::cover(1), (array,))?,
            _ => array.prefetch(&stream)?,
        }
        Ok(())
    }

    fn read(&mut self, array: &SmartArray<T, Ix2>) -> Result<()> {
        let ((tile, _), stream) = (self.tile(), self.stream());
        let expected = self.model.read::<U>(tile);
        let all = array.reinterpret::<U>()?;
        let part = all.slice(tile.info());
        let seen = match self.random.below(6) {
            0 => part.host()?.to_owned(),
            1 => {
                let mut copy = SmartArray::<U, _>::uninit(part.raw_dim());
                self.copy.launch_on(&stream, Grid::cover(1), (&part, &mut copy))?;
                copy.into_array()?
            }
            2 => part.snapshot_on(&stream)?.wait()?,
            3 => part.try_clone()?.into_array()?,
            4 => {
                let mut copy = SmartArray::<U, _>::uninit(part.raw_dim());
                copy.assign_on(&stream, &part)?;
                copy.into_array()?
            }
            _ => {
                let mut seen = expected.clone();
                for (index, seen) in seen.indexed_iter_mut() {
                    *seen = part.get(index)?;
                }
                seen
            }
        };
        assert_eq!(seen, expected, "{tile:?}");
        Ok(())
    }

    fn write(&mut self, array: &mut SmartArray<T, Ix2>) -> Result<()> {
        let ((tile, is_whole), stream) = (self.tile(), self.stream());
        let mut all = array.reinterpret_mut::<U>()?;
        let mut part = all.slice_mut(tile.info());
        let (rows, columns) = (part.shape()[0], part.shape()[1]);
        let mut values = drawn::<U>(&mut self.random, &[rows, columns]);
        let source = SmartArray::from(values.clone());
        let done = match self.random.below(8) {
            0 => expect(part.host_mut(), is_whole)?.map(|mut host| host.assign(&values)),
            1 => expect(part.host_overwrite(), is_whole)?.map(|mut host| host.assign(&values)),
            2 => {
                let launched = self.copy.launch_on(&stream, Grid::cover(1), (&source, &mut part));
                expect(launched, is_whole)?
            }
            3 => expect(part.assign(&source), is_whole)?,
            4 => expect(part.assign_on(&stream, &source), is_whole)?,
            5 => {
                let value = values[[0, 0]];
                values.fill(value);
                expect(part.fill(value), is_whole)?
            }
            6 => {
                let value = values[[0, 0]];
                values.fill(value);
                expect(part.fill_on(&stream, value), is_whole)?
            }
            _ => {
                let one = Tile { columns: (tile.columns.0, tile.columns.0 + 1, 1), ..tile };
                let one = Tile { rows: (tile.rows.0, tile.rows.0 + 1), ..one };
                let (row, column) = (one.rows.0, one.columns.0);
                let value = values.slice(s![..1, ..1]).to_owned();
                let is_whole = Model::is_whole::<U>(one, self.unit_bytes);
                if expect(all.set((row, column), value[[0, 0]]), is_whole)?.is_some() {
                    self.model.write(one, &value);
                }
                None
            }
        };
        if done.is_some() {
            self.model.write(tile, &values);
        }
        Ok(())
    }

    fn run(mut self, steps: usize) -> Result<()> {
        let mut array = SmartArray::from(self.array());
        for _ in 0..steps {
            match self.random.below(3) {
                0 => self.use_own(&mut array)?,
                1 => self.read(&array)?,
                _ => self.write(&mut array)?,
            }
        }
        assert_eq!(bytes_of(array.host()?.view()), self.model.0);
        self.devices.iter().for_each(assert_ordered);
        Ok(())
    }

    /// As [`run`](Self::run), with an explicit array.
    fn run_on_device(mut self, steps: usize) -> Result<()> {
        let stream = self.stream();
        let mut array = DeviceArray::from_host_on(&stream, &self.array())?;
        for step in 0..steps {
            let (tile, is_whole) = self.tile();
            let expected = self.model.read::<U>(tile);
            let mut values = drawn::<U>(&mut self.random, &[expected.nrows(), expected.ncols()]);
            let all = array.reinterpret::<U>()?;
            let part = all.slice(tile.info());
            let seen = match step % 3 {
                0 => part.copy_to_host()?,
                1 => part.to_contiguous()?.copy_to_host()?,
                _ => {
                    let mut seen = Array2::from_elem(expected.raw_dim(), values[[0, 0]]);
                    part.copy_to_host_into(&mut seen)?;
                    seen
                }
            };
            assert_eq!((seen, part.get((0, 0))?), (expected.clone(), expected[[0, 0]]));
            let mut all = array.reinterpret_mut::<U>()?;
            let mut part = all.slice_mut(tile.info());
            let done = match self.random.below(4) {
                0 => part.copy_from_host(&values),
                1 => part.copy_from_device(&DeviceArray::from_host_on(&stream, &values)?),
                2 => {
                    values.fill(expected[[0, 0]]);
                    part.fill(expected[[0, 0]])
                }
                _ => {
                    let source = SmartArray::from(values.clone());
                    self.copy.launch_on(&stream, Grid::cover(1), (&source, &mut part))
                }
            };
            if expect(done, is_whole)?.is_some() {
                self.model.write(tile, &values);
            }
        }
        assert_eq!(bytes_of(array.copy_to_host()?.view()), self.model.0);
        Ok(())
    }
}

fn every_step<T: Element + Debug + PartialEq, U: Element + Debug + PartialEq>() -> Result<()> {
    for seed in 0..2 {
        Pair::<T, U>::new(seed).run(40)?;
        Pair::<T, U>::new(seed).run_on_device(12)?;
    }
    Ok(())
}

macro_rules! pairs {
    ($($own:ident: $type:ty),+) => {
        $(#[test]
        fn $own() -> Result<()> {
            every_step::<$type, u8>()?;
            every_step::<$type, u16>()?;
            every_step::<$type, u32>()?;
            every_step::<$type, f32>()?;
            every_step::<$type, u64>()?;
            every_step::<$type, f64>()?;
            every_step::<$type, Complex<f32>>()?;
            every_step::<$type, [u16; 2]>()
        })+
    };
}

pairs!(
    arrays_of_u8: u8,
    arrays_of_u16: u16,
    arrays_of_u32: u32,
    arrays_of_f32: f32,
    arrays_of_u64: u64,
    arrays_of_f64: f64,
    arrays_of_complex_numbers: Complex<f32>,
    arrays_of_records: Point
);

#[test]
fn records_over_numbers_have_fields() -> Result<()> {
    let stream = lab().stream();
    let mut numbers = SmartArray::<f32, _>::zeros(12);
    let mut points = numbers.reinterpret_mut::<Point>()?;
    assert_eq!(points.shape(), [4]);
    field_mut!(points, Point, y).fill(2.0)?;
    drop(field_mut!(points, Point, x).gpu_mut_on(&stream)?);
    let half = field!(points, Point, half[1]);
    assert_eq!(half.to_vec()?, [0; 4]);
    let refused = field_mut!(points, Point, half[1]).fill(7);
    assert!(matches!(refused, Err(Error::Shape { .. })), "two bytes of an f32");
    assert_eq!(numbers.to_vec()?, [0.0, 2.0, 0.0].repeat(4));
    Ok(())
}

/// The rest of such a number is in another place, so that it is joined before it is copied.
#[test]
fn a_field_of_which_some_bytes_are_on_a_device_is_copied() -> Result<()> {
    let stream = lab().stream();
    let mut points = SmartArray::from(vec![Point { x: 1.0, y: 2.0, half: [3; 2] }; 4]);
    drop(points.reinterpret_mut::<u8>()?.slice_mut(s![1..6]).gpu_mut_on(&stream)?);
    points.reinterpret_mut::<u8>()?.slice_mut(s![12..13]).fill(0)?;
    let mut numbers = SmartArray::<f32, _>::uninit(4);
    numbers.assign(&field!(points, Point, x))?;
    assert_eq!(numbers.to_vec()?, [1.0; 4]);
    numbers.assign_on(&stream, &field!(points, Point, y))?;
    assert_eq!(numbers.to_vec()?, [2.0; 4]);
    assert_eq!(field!(points, Point, y).snapshot_on(&stream)?.wait()?.to_vec(), [2.0; 4]);
    assert_eq!(points.get(0)?, Point { x: 1.0, y: 2.0, half: [3; 2] });
    Ok(())
}

#[test]
fn parts_of_one_array_are_used_at_once() -> Result<()> {
    let (stream, other) = (lab().stream(), lab().stream());
    let mut numbers = SmartArray::<u32, _>::zeros(8);
    let mut bytes = numbers.reinterpret_mut::<u8>()?;
    let (mut low, mut high) = bytes.split_at_mut(Axis(0), 12);
    drop((low.gpu_mut_on(&stream)?, high.gpu_mut_on(&other)?));
    high.fill(1)?;
    let (low, mut high) = low.split_at(Axis(0), 6);
    assert!(matches!(high.host_mut(), Err(Error::Shape { .. })), "from the middle of a number");
    assert_eq!((low.host()?.sum(), high.slice(s![2..]).host()?.sum()), (0, 0));
    assert_eq!(high.slice_mut(s![2..]).host_mut()?.len(), 4);
    assert_eq!(
        numbers.host()?.to_vec(),
        [0, 0, 0, 0x101_0101, 0x101_0101, 0x101_0101, 0x101_0101, 0x101_0101]
    );
    Ok(())
}

#[test]
fn only_the_bytes_of_a_part_move() -> Result<()> {
    let stream = lab().stream();
    let numbers = SmartArray::from(Array2::<f32>::ones((10, 10)));
    let bytes = numbers.reinterpret::<u8>()?;
    drop(bytes.slice(s![2..4, 8..20]).gpu_on(&stream)?);
    assert_eq!(numbers.traffic().to_device.bytes, 2 * 12);
    drop(bytes.slice(s![5, 3..5]).gpu_on(&stream)?);
    assert_eq!(numbers.traffic().to_device.bytes, 2 * 12 + 8, "the numbers that have them");
    Ok(())
}

/// The error of a view that cannot be made.
fn refused<T: Element, D: Dimension, U: Element>(view: SmartView<'_, T, D>) -> String {
    match view.reinterpret::<U>() {
        Err(error @ Error::Shape { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_last_axis_is_contiguous_and_scales() -> Result<()> {
    let table = SmartArray::from(Array2::<f32>::zeros((4, 6)));
    for text in [
        refused::<_, _, u8>(table.t()),
        refused::<_, _, u32>(table.slice(s![.., ..;2])),
        refused::<_, _, u32>(table.slice(s![.., ..;-1])),
        refused::<_, _, f64>(table.slice(s![.., 1..])),
        refused::<_, _, f64>(table.slice(s![.., ..5])),
        refused::<_, _, u8>(table.column(1)),
        refused::<_, _, u8>(table.slice(s![1, 1]).view()),
        refused::<_, _, [u8; 3]>(table.view()),
        refused::<_, _, ()>(table.view()),
    ] {
        assert!(text.contains("of shape [4, 6]") || text.contains("elements"), "{text}");
    }
    assert_eq!(table.slice(s![1..;2, 2..4]).reinterpret::<f64>()?.shape(), [2, 1]);
    assert_eq!(table.slice(s![1, 1]).reinterpret::<u32>()?.ndim(), 0);
    assert_eq!(table.slice(s![.., 2..3]).reinterpret::<u16>()?.shape(), [4, 2]);
    let repeated = table.slice(s![..1, ..]).broadcast((5, 6))?.reinterpret::<u8>()?;
    assert_eq!((repeated.shape(), repeated.host()?.sum()), (&[5, 24][..], 0));
    Ok(())
}

#[test]
fn column_major_arrays_are_reinterpreted_along_their_columns() -> Result<()> {
    let mut table = SmartArray::from(Array2::from_elem((4, 6).f(), 1.0_f32));
    drop(table.gpu_mut_on(&lab().stream())?);
    assert!(refused::<_, _, u64>(table.view()).contains("`t()`"));
    let turned = table.t();
    let pairs = turned.reinterpret::<u64>()?;
    assert_eq!((pairs.shape(), pairs.get((5, 1))?), (&[6, 2][..], 0x3F80_0000_3F80_0000));
    Ok(())
}

#[test]
fn arrays_without_elements_are_reinterpreted() -> Result<()> {
    let stream = lab().stream();
    let mut none = SmartArray::<u8, _>::from(vec![]);
    assert!(none.reinterpret::<f64>()?.to_vec()?.is_empty());
    none.reinterpret_mut::<f64>()?.fill(1.0)?;
    drop(none.reinterpret_mut::<f64>()?.gpu_mut_on(&stream)?);
    assert_eq!(none.reinterpret::<u64>()?.host()?.as_slice(), Some(&[][..]));
    let table = SmartArray::<f32, _>::uninit((0, 3));
    assert_eq!(table.reinterpret::<u8>()?.snapshot_on(&stream)?.wait()?.shape(), [0, 12]);
    assert!(refused::<_, _, f64>(table.view()).contains("[0, 3]"));
    let part = table.slice(s![.., 1..]);
    assert_eq!(part.reinterpret::<f64>()?.host()?.shape(), [0, 1]);
    Ok(())
}

#[test]
fn elements_never_written_stay_so() -> Result<()> {
    let stream = lab().stream();
    let mut numbers = SmartArray::<f32, _>::uninit(4);
    numbers.reinterpret_mut::<u8>()?.slice_mut(s![..8]).fill(1)?;
    let bytes = numbers.reinterpret::<u8>()?;
    assert_eq!(bytes.slice(s![1..7]).snapshot_on(&stream)?.wait()?.to_vec(), [1; 6]);
    let unwritten = bytes.slice(s![5..9]).host();
    assert!(matches!(unwritten, Err(Error::Uninitialised { .. })));
    numbers.reinterpret_mut::<u16>()?.slice_mut(s![..1]).discard();
    assert_eq!(numbers.slice(s![..2]).host()?.len(), 2, "a part of a number is kept");
    numbers.reinterpret_mut::<u16>()?.slice_mut(s![..2]).discard();
    assert!(matches!(numbers.slice(s![..1]).host(), Err(Error::Uninitialised { .. })));
    Ok(())
}

/// Memory of an owner at every alignment.
#[derive(Debug)]
struct Unaligned(Vec<u128>, usize);

impl AsRef<[u8]> for Unaligned {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.0)[self.1..]
    }
}

#[test]
fn memory_that_is_not_aligned_is_refused_until_it_is_another() -> Result<()> {
    let mut bytes = SmartArray::from_owner(Unaligned(vec![0; 4], 4));
    assert_eq!(bytes.slice(s![..8]).reinterpret::<f32>()?.to_vec()?, [0.0; 2]);
    let text = refused::<_, _, f64>(bytes.slice(s![..8]));
    assert!(text.contains("aligned to 8 bytes") && text.contains("f64"), "{text}");
    bytes.host_mut()?[0] = 1;
    assert_eq!(bytes.slice(s![..8]).reinterpret::<u64>()?.to_vec()?, [1_u64.to_le()]);
    Ok(())
}

#[repr(C, align(32))]
#[derive(Clone, Copy, PartialEq, Debug, Element)]
struct Line([u8; 32]);

#[test]
fn an_alignment_above_16_bytes_needs_an_array_that_has_it() -> Result<()> {
    let bytes = SmartArray::<u8, _>::zeros(64);
    assert!(refused::<_, _, Line>(bytes.view()).contains("aligned to 32 bytes"));
    let mut lines = SmartArray::<Line, _>::zeros(2);
    lines.reinterpret_mut::<u128>()?.fill(1)?;
    assert_eq!(lines.reinterpret::<u8>()?.reinterpret::<Line>()?.get(1)?.0[16], 1);
    Ok(())
}
