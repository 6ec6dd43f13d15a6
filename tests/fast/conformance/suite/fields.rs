//! Fields of records: random programs against bytes that each remember where they are valid, and
//! kernels that take fields.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use resident::bytemuck::{Pod, Zeroable, bytes_of, pod_read_unaligned};
use resident::ndarray::{ArrayViewMutD, Zip};
use resident::{field, field_mut};

use super::prelude::*;
use super::views::slice_of;

/// A record with a field of fields, an array, and fields of 1, 4 and 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
struct Record {
    id: u32,
    flags: [u8; 4],
    place: Place,
    weight: u64,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
struct Place {
    x: u32,
    y: u32,
}

/// Another record with a field of any type.
#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
struct Three<F> {
    first: F,
    second: F,
    third: F,
}

// SAFETY: three values of one `Pod` type have no padding between them or behind them.
unsafe impl<F: Pod> Pod for Three<F> {}

const LEN_BYTES: usize = size_of::<Record>();

/// What is known of one byte.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Known {
    Unwritten,
    Constant(u8),
    Stored { byte: u8, host: bool, devices: [bool; 2] },
}

use Known::{Constant, Stored, Unwritten};

type Bytes = [Known; LEN_BYTES];

impl Known {
    fn byte(self) -> Option<u8> {
        match self {
            Unwritten => None,
            Constant(byte) | Stored { byte, .. } => Some(byte),
        }
    }
}

/// The same part of the array and of the model: some elements, and a field of each.
struct Both<'a, F: Sample> {
    /// A stream of each device, and which of these the step uses.
    streams: &'a [Stream],
    here: usize,
    view: SmartViewMut<'a, F, IxDyn>,
    model: ArrayViewMutD<'a, Bytes>,
    field: Range<usize>,
}

impl<'a, F: Sample> Both<'a, F> {
    /// The elements; `None` if some byte was never written.
    fn expected(&self) -> Option<ArrayD<F>> {
        let read = |record: &Bytes| -> Option<F> {
            let bytes: Option<Vec<u8>> =
                record[self.field.clone()].iter().map(|known| known.byte()).collect();
            bytes.map(|bytes| pod_read_unaligned(&bytes))
        };
        let elements: Option<Vec<F>> = self.model.iter().map(read).collect();
        let shape = self.model.raw_dim();
        elements.map(|elements| ArrayD::from_shape_vec(shape, elements).expect("as many"))
    }

    fn count(&self, is_counted: impl Fn(&Known) -> bool) -> u64 {
        let bytes = self.model.iter().flat_map(|record| &record[self.field.clone()]);
        bytes.filter(|known| is_counted(known)).count() as u64
    }

    fn change(&mut self, change: impl Fn(&mut Known)) {
        for record in &mut self.model {
            record[self.field.clone()].iter_mut().for_each(&change);
        }
    }

    fn write(&mut self, elements: &ArrayD<F>, known: impl Fn(u8) -> Known) {
        let field = self.field.clone();
        Zip::from(&mut self.model).and(elements).for_each(|record, element| {
            for (known_byte, byte) in record[field.clone()].iter_mut().zip(bytes_of(element)) {
                *known_byte = known(*byte);
            }
        });
    }

    fn stream(&self) -> &'a Stream {
        &self.streams[self.here]
    }

    fn only_here(&self) -> [bool; 2] {
        [self.here == 0, self.here == 1]
    }

    /// Asserts what a call moved to a device and to the host.
    fn moves(&mut self, expected: [u64; 2], call: impl FnOnce(&mut Self) -> Result<()>) {
        let before = bytes(self.view.traffic());
        call(self).unwrap_or_else(|error| panic!("{error}"));
        let after = bytes(self.view.traffic());
        let to_device = after[0] + after[2] - before[0] - before[2];
        assert_eq!([to_device, after[1] - before[1]], expected, "moved");
    }

    fn stale_on_host(&self) -> u64 {
        self.count(|known| matches!(known, Stored { host: false, .. }))
    }

    fn stale_on_device(&self) -> u64 {
        self.count(|known| matches!(known, Stored { devices, .. } if !devices[self.here]))
    }

    fn reaches(&mut self, on_host: bool, on: [bool; 2]) {
        self.change(|known| {
            if let Stored { host, devices, .. } = known {
                *host |= on_host;
                *devices = [devices[0] || on[0], devices[1] || on[1]];
            }
        });
    }

    /// Makes all copies of the stored bytes valid, after a call that chose the place itself.
    fn settle(&mut self) -> Result<()> {
        drop(self.view.host()?);
        self.streams.iter().try_for_each(|stream| self.view.gpu_on(stream).map(drop))?;
        self.reaches(true, [true; 2]);
        Ok(())
    }
}

fn assert_unwritten<T>(outcome: Result<T>) {
    assert!(matches!(outcome, Err(Error::Uninitialised { .. })), "unwritten bytes were read");
}

/// One call on a part, and the same on the model.
fn step<F: Sample>(mut both: Both<'_, F>, call: u8, number: usize) -> Result<()> {
    if both.view.is_empty() {
        return Ok(());
    }
    let expected = both.expected();
    match (call % 14, expected) {
        (call @ 0..5, Some(expected)) => both.read(call, &expected),
        (call @ 5..7, Some(expected)) => both.update(call, &expected, number),
        (call @ 0..7, None) => {
            both.read_unwritten(call);
            Ok(())
        }
        (call @ 7..12, _) => both.overwrite(call, number),
        (_, expected) => both.set_last(expected.as_ref(), value(number)),
    }
}

impl<F: Sample> Both<'_, F> {
    fn read(&mut self, call: u8, expected: &ArrayD<F>) -> Result<()> {
        let (stream, up, down) = (self.stream(), self.stale_on_device(), self.stale_on_host());
        match call {
            0 => {
                self.moves([0, down], |both| {
                    assert_eq!(both.view.host()?, expected);
                    Ok(())
                });
                self.reaches(true, [false; 2]);
            }
            1 => {
                self.moves([up, 0], |both| both.view.prefetch(stream));
                self.reaches(false, self.only_here());
            }
            2 => self.moves([0, down], |both| {
                assert_eq!(both.view.snapshot_on(stream)?.wait()?, expected);
                Ok(())
            }),
            3 => {
                self.moves([0, 0], |both| {
                    assert_eq!(both.view.try_clone()?.host()?, expected);
                    Ok(())
                });
                let mut copy = SmartArray::<F, _>::uninit(expected.raw_dim().f());
                copy.assign(&self.view)?;
                assert_eq!(copy.host()?, expected);
                self.settle()?;
            }
            _ => {
                let mut records = SmartArray::<Three<F>, _>::zeros(expected.raw_dim());
                make_newest(&mut records, stream)?;
                field_mut!(records, Three<F>, second).assign(&self.view)?;
                assert_eq!(field!(records, Three<F>, second).host()?, expected);
                assert_eq!(field!(records, Three<F>, third).host()?.first(), Some(&F::zeroed()));
                self.settle()?;
            }
        }
        Ok(())
    }

    fn read_unwritten(&self, call: u8) {
        match call {
            0 => assert_unwritten(self.view.host()),
            1 => assert_unwritten(self.view.gpu_on(self.stream())),
            2 => assert_unwritten(self.view.snapshot_on(self.stream())),
            _ => assert_unwritten(self.view.to_vec()),
        }
    }

    fn update(&mut self, call: u8, expected: &ArrayD<F>, number: usize) -> Result<()> {
        let (up, down) = (self.stale_on_device(), self.stale_on_host());
        if call == 5 {
            let (stream, devices) = (self.stream(), self.only_here());
            self.moves([up, 0], |both| make_newest(&mut both.view, stream));
            self.write(expected, |byte| Stored { byte, host: false, devices });
            return Ok(());
        }
        let new: ArrayD<F> = numbered(expected.raw_dim(), number);
        self.moves([0, down], |both| {
            let mut host = both.view.host_mut()?;
            assert_eq!(host, expected);
            host.assign(&new);
            Ok(())
        });
        self.write(&new, |byte| Stored { byte, host: true, devices: [false; 2] });
        Ok(())
    }

    fn overwrite(&mut self, call: u8, number: usize) -> Result<()> {
        let (stream, shape) = (self.stream(), self.model.raw_dim());
        let new: ArrayD<F> = numbered(shape.clone(), number);
        match call {
            7 => {
                self.moves([0, 0], |both| {
                    both.view.host_overwrite()?.assign(&new);
                    Ok(())
                });
                self.write(&new, |byte| Stored { byte, host: true, devices: [false; 2] });
            }
            8 => {
                let from = SmartArray::from(new.clone());
                self.moves([0, 0], |both| both.view.assign_on(stream, &from));
                let devices = self.only_here();
                self.write(&new, |byte| Stored { byte, host: false, devices });
            }
            9 => {
                self.view.assign(&SmartArray::from(new.clone()))?;
                self.write(&new, |byte| Stored { byte, host: true, devices: [true; 2] });
                self.settle()?;
            }
            _ => {
                let constant = value::<F>(number % 3);
                self.moves([0, 0], |both| match call {
                    10 => both.view.fill(constant),
                    _ => both.view.fill_on(stream, constant),
                });
                self.write(&ArrayD::from_elem(shape, constant), Constant);
            }
        }
        Ok(())
    }

    /// Reads the last element, sets it, and makes both copies of it valid.
    fn set_last(&mut self, expected: Option<&ArrayD<F>>, new: F) -> Result<()> {
        let last = IxDyn(&self.view.shape().iter().map(|len| len - 1).collect::<Vec<_>>());
        if let Some(expected) = expected {
            assert_eq!(self.view.get(last.clone())?, expected[&last]);
        }
        self.view.set(last.clone(), new)?;
        assert_eq!(self.view.get(last.clone())?, new);
        let indices = last.slice().iter();
        let element = indices.fold(self.view.view(), |view, at| view.index_axis(Axis(0), *at));
        drop(element.host()?);
        self.streams.iter().try_for_each(|stream| element.gpu_on(stream).map(drop))?;
        let written = self.model[&last][self.field.clone()].iter_mut().zip(bytes_of(&new));
        written.for_each(|(known, byte)| {
            *known = Stored { byte: *byte, host: true, devices: [true; 2] };
        });
        Ok(())
    }
}

/// The part of the array that a step uses, and the step.
type Step = (u8, u8, bool, [u8; 8]);

/// Where the contents come from, the shape, the axis order, and the steps.
type Program = (u8, Vec<usize>, bool, Vec<Step>);

fn programs() -> impl Strategy<Value = Program> {
    let shapes = vec(1_usize..5, 0..4);
    (any::<u8>(), shapes, any::<bool>(), vec(any::<Step>(), 1..14))
}

fn made(origin: u8, shape: &[usize], is_fortran: bool) -> (SmartArray<Record, IxDyn>, Bytes) {
    let (shape, record) = (IxDyn(shape).set_f(is_fortran), value::<Record>(99));
    let known = |known: fn(u8) -> Known| {
        let mut all = [Unwritten; LEN_BYTES];
        all.iter_mut().zip(bytes_of(&record)).for_each(|(all, byte)| *all = known(*byte));
        all
    };
    match origin % 4 {
        0 => (SmartArray::uninit(shape), [Unwritten; LEN_BYTES]),
        1 => (SmartArray::zeros(shape), [Constant(0); LEN_BYTES]),
        2 => (SmartArray::full(shape, record), known(Constant)),
        _ => {
            let host = ArrayD::from_elem(shape, record);
            let stored = |byte| Stored { byte, host: true, devices: [false; 2] };
            (SmartArray::from(host), known(stored))
        }
    }
}

fn run(streams: &[Stream], (origin, shape, is_fortran, steps): Program) -> Result<()> {
    let (mut array, known) = made(origin, &shape, is_fortran);
    let mut model = ArrayD::from_elem(IxDyn(&shape), known);
    for (field, call, is_sliced_first, numbers) in steps {
        let info = slice_of(&shape, numbers);
        let (here, number) =
            (usize::from(numbers[6]) % streams.len(), usize::from(numbers[5]) * 1_000);
        macro_rules! step {
            ($bytes:expr, |$records:ident| $field:expr) => {{
                let outcome = if is_sliced_first {
                    let mut $records = array.slice_mut(&info);
                    let (view, model) = ($field, model.slice_mut(&info));
                    step(Both { streams, here, view, model, field: $bytes }, call, number)
                } else {
                    let $records = &mut array;
                    let view = $field.slice_move(&info);
                    let model = model.slice_mut(&info);
                    step(Both { streams, here, view, model, field: $bytes }, call, number)
                };
                outcome?
            }};
        }
        match field % 9 {
            0 => step!(0..4, |records| field_mut!(records, Record, id)),
            1 => step!(4..5, |records| field_mut!(records, Record, flags[0])),
            2 => step!(6..7, |records| field_mut!(records, Record, flags[2])),
            3 => step!(4..8, |records| field_mut!(records, Record, flags)),
            4 => step!(8..16, |records| field_mut!(records, Record, place)),
            5 => step!(8..12, |records| field_mut!(records, Record, place.x)),
            6 => step!(12..16, |records| field_mut!(records, Record, place.y)),
            7 => step!(16..24, |records| field_mut!(records, Record, weight)),
            _ => step!(0..LEN_BYTES, |records| records.view_mut()),
        }
    }
    Ok(())
}

pub(crate) fn fields_and_elements_move_exactly_their_stale_bytes(lab: &Lab) -> Result<()> {
    let devices = lab.pair().map_or_else(|| vec![lab.device()], Vec::from);
    let streams: Vec<Stream> = devices.iter().map(Device::stream).collect();
    let outcome = runner((120, 600), 10).run(&programs(), |program| {
        with_checked_totals(&devices, || run(&streams, program))
            .unwrap_or_else(|error| panic!("{error}"));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    Ok(())
}

fn table(rows: usize, columns: usize) -> Array2<Record> {
    numbered((rows, columns), 7)
}

pub(crate) fn kernels_take_fields_and_only_these_move(lab: &Lab) -> Result<()> {
    let (table, stream) = (table(20, 30), lab.stream());
    let mut records = SmartArray::from(table.clone());
    let mut ids = SmartArray::<u32, _>::uninit((20, 30));
    let id = field!(records, Record, id);
    lab.copy_sized(&stream, &id, &mut ids)?;
    assert_eq!(bytes(records.traffic()), [4 * 600, 0, 0]);
    assert_eq!(ids.host()?, table.mapv(|record| record.id));

    let mut x = field_mut!(records, Record, place.x);
    let odd = s![1..;2, ..;-3];
    let grid = over_2d(10, 10);
    lab.add_sized(&stream, 5, &mut x.slice_mut(odd))?;
    assert_eq!(bytes(records.traffic()), [4 * 700, 0, 0]);
    let host = records.residency().host();
    assert_eq!(host, Partial { valid_bytes: 24 * 600 - 4 * 100 });
    assert_eq!(field!(records, Record, place.y).host()?, table.mapv(|record| record.place.y));
    assert_eq!(bytes(records.traffic())[1], 0);
    let mut expected = table;
    expected.slice_mut(odd).mapv_inplace(|mut record| {
        record.place.x = record.place.x.wrapping_add(5);
        record
    });
    assert_eq!(records.host()?, expected);
    assert_eq!(bytes(records.traffic()), [4 * 700, 4 * 100, 0]);
    let mut x = field_mut!(records, Record, place.x);
    lab.assert_same(&lab.kernels().add_sized, grid, (5, &mut x.slice_mut(odd)))
}

pub(crate) fn one_launch_takes_several_fields(lab: &Lab) -> Result<()> {
    let mut records = SmartArray::from(table(9, 8));
    let expected = records.host()?.mapv(|record| Record { id: record.place.y, ..record });
    let (mut id, y) = field_mut!(records, Record, id, place.y);
    lab.copy_sized(&lab.stream(), &y, &mut id)?;
    assert_eq!(records.host()?, expected);
    assert_eq!(bytes(records.traffic()), [4 * 72, 4 * 72, 0]);
    Ok(())
}

pub(crate) fn constants_of_records_are_filled_field_by_field(lab: &Lab) -> Result<()> {
    let (record, stream) = (value::<Record>(3), lab.stream());
    let mut records = SmartArray::full(50, record);
    let weights = field!(records, Record, weight).try_clone()?;
    assert_eq!(weights.host()?, Array1::from_elem(50, record.weight));
    field!(records, Record, place).prefetch(&stream)?;
    field_mut!(records, Record, place.y).fill(9)?;
    field_mut!(records, Record, flags[1]).fill_on(&stream, 8)?;
    make_newest(&mut field_mut!(records, Record, flags[3]), &stream)?;
    let mut expected = record;
    (expected.place.y, expected.flags[1]) = (9, 8);
    assert_eq!(records.get(49)?, expected);
    assert_eq!(bytes(records.traffic()), [0, 1, 0], "one byte of one record was on the device");
    assert_eq!(records.host()?, Array1::from_elem(50, expected));
    assert_eq!(bytes(records.traffic()), [0, 51, 0]);
    make_newest(&mut records, &stream)?;
    assert_eq!(records.snapshot_on(&stream)?.wait()?, Array1::from_elem(50, expected));
    Ok(())
}

pub(crate) fn a_field_is_written_before_the_others(lab: &Lab) -> Result<()> {
    let mut records = SmartArray::<Record, _>::uninit(40).named("records");
    let ids: SmartArray<u32, _> = SmartArray::from(numbered(40, 1));
    field_mut!(records, Record, id).assign_on(&lab.stream(), &ids)?;
    assert_eq!(field!(records, Record, id).host()?, ids.host()?);
    let unwritten = field!(records, Record, weight).slice(s![3..9]).host().map(drop);
    let Err(Error::Uninitialised { part, .. }) = unwritten else { panic!("{unwritten:?}") };
    assert_eq!(part, "bytes 16..24 of the elements [3..9]");
    assert_unwritten(records.get(0));
    assert_unwritten(records.host().map(drop));
    assert_eq!(bytes(records.traffic()), [0, 4 * 40, 0]);
    Ok(())
}

pub(crate) fn device_records_have_fields(lab: &Lab) -> Result<()> {
    let (record, stream) = (value::<Record>(5), lab.stream());
    let mut one = DeviceArray::<Record, _>::full_on(&stream, (), record)?;
    assert_eq!(field!(one, Record, weight).get(())?, record.weight);
    field_mut!(one, Record, weight).set((), 77)?;
    field_mut!(one, Record, place.x).fill(6)?;
    assert_eq!(one.get(())?.weight, 77);
    assert_eq!(one.copy_to_host()?.into_scalar().place, Place { x: 6, ..record.place });

    let table = table(6, 5);
    let mut records = DeviceArray::from_host_on(&stream, &table)?;
    let (mut id, x) = field_mut!(records, Record, id, place.x);
    lab.copy_sized(&stream, &x, &mut id)?;
    let ids = field!(records, Record, id).copy_to_host()?;
    assert_eq!(ids, table.mapv(|record| record.place.x));
    let mut weights = field_mut!(records, Record, weight);
    weights.copy_from_host(&Array2::from_elem((6, 5), 4).view())?;
    let mut back = Array2::zeros((5, 6));
    weights.view().copy_to_host_into(&mut back.view_mut().reversed_axes())?;
    assert_eq!((back.sum(), back.len()), (120, 30));
    let columns = records.view();
    assert_eq!(field!(columns.t(), Record, place).to_contiguous()?.shape(), [5, 6]);
    Ok(())
}

/// Of pinned memory only the bytes of the field move, of mapped memory none.
pub(crate) fn fields_of_pinned_and_mapped_records(lab: &Lab) -> Result<()> {
    let (device, stream, table) = (lab.device(), lab.stream(), table(6, 5));
    let _here = device.enter();
    let plus_five = table.mapv(|mut record| {
        record.place.x = record.place.x.wrapping_add(5);
        record
    });
    let mut pinned = PinnedArray::from_array(table.clone())?;
    lab.add_sized(&stream, 5, &mut field_mut!(pinned, Record, place.x))?;
    assert_eq!(bytes(pinned.traffic()), [4 * 30, 0, 0]);
    assert_eq!(field!(pinned, Record, weight).host()?, table.mapv(|record| record.weight));
    assert_eq!(bytes(pinned.traffic()), [4 * 30, 0, 0]);
    assert_eq!(pinned.host()?, plus_five);
    assert_eq!(bytes(pinned.traffic()), [4 * 30, 4 * 30, 0]);
    let x = DeviceArray::from_host_on(&stream, &table.mapv(|record| record.place.x))?;
    x.copy_to_pinned(&mut field_mut!(pinned, Record, place.x))?;
    assert_eq!(pinned.host()?, table);
    let mut ids = DeviceArray::<u32, _>::uninit_on(&stream, (6, 5))?;
    ids.copy_from_pinned(&field!(pinned, Record, id))?;
    assert_eq!(ids.copy_to_host()?, table.mapv(|record| record.id));

    let before = device.traffic();
    let mut mapped = MappedArray::from_array(table.clone())?;
    lab.add_sized(&stream, 5, &mut field_mut!(mapped, Record, place.x))?;
    assert_eq!(*mapped.host()?, plus_five);
    let (mut id, y) = field_mut!(mapped, Record, id, place.y);
    lab.copy_sized(&stream, &y, &mut id)?;
    assert_eq!(mapped.host()?.mapv(|record| record.id), table.mapv(|record| record.place.y));
    assert_eq!(field!(mapped, Record, weight).get((5, 4))?, table[(5, 4)].weight);
    assert_eq!(bytes(device.traffic() - before), [0; 3]);
    let managed = ManagedArray::from_array(table.clone());
    if let Ok(mut managed) = managed {
        field_mut!(managed, Record, flags[2]).fill(9)?;
        assert!(managed.host()?.iter().all(|record| record.flags[2] == 9));
    }
    Ok(())
}
