//! Shapes, contiguity flags and bounds of device arrays and of their views, against ndarray's.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Mutex;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestRunner};
use resident::ndarray::{ArrayViewD, SliceInfo, SliceInfoElem};
use support::panics::text_of;
use support::prelude::*;

type Slice = SliceInfo<Vec<SliceInfoElem>, IxDyn, IxDyn>;

fn runner() -> TestRunner {
    TestRunner::new(Config {
        cases: 512,
        rng_seed: RngSeed::Fixed(10),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    })
}

fn check<S: Strategy>(cases: S, test: impl Fn(S::Value)) {
    let outcome = runner().run(&cases, |case| {
        test(case);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

/// Whether ndarray says that the elements are contiguous, row by row and column by column.
fn ndarrays(view: &ArrayViewD<'_, u32>) -> [bool; 2] {
    [view.is_standard_layout(), view.t().is_standard_layout()]
}

/// NumPy's rule: without elements both are true; axes of length 1 are ignored.
fn numpys(shape: &[usize], strides: &[isize]) -> [bool; 2] {
    fn is_dense<'a>(axes: impl Iterator<Item = (&'a usize, &'a isize)>) -> bool {
        let mut next = 1;
        axes.filter(|(len, _)| **len != 1).all(|(len, stride)| {
            let is_next = *stride == next;
            next *= *len as isize;
            is_next
        })
    }
    if shape.contains(&0) {
        return [true; 2];
    }
    let axes = || shape.iter().zip(strides);
    [is_dense(axes().rev()), is_dense(axes())]
}

macro_rules! flags {
    ($array:expr) => {
        [$array.is_c_contiguous(), $array.is_f_contiguous()]
    };
}

fn assert_flags(view: &DeviceView<'_, u32, IxDyn>, expected: &ArrayViewD<'_, u32>) {
    assert_eq!(view.shape(), expected.shape());
    let context = format!("{:?}, strides {:?}", view.shape(), view.strides());
    assert_eq!(flags!(view), ndarrays(expected), "{context}");
    assert_eq!(flags!(view), numpys(view.shape(), view.strides()), "{context}");
}

/// A slice that is in range: of half of the indices, of all of them, or of one.
fn slice_in_range(shape: &[usize], numbers: [u8; 8]) -> Slice {
    let axis = |(len, number): (&usize, u8)| {
        let end = match number % 4 {
            0 => len / 2,
            1 => (*len).min(1),
            _ => *len,
        };
        let step = [1, 1, 1, 2, -1, -2][usize::from(number / 4) % 6];
        SliceInfoElem::Slice { start: 0, end: Some(end as isize), step }
    };
    let elements: Vec<_> = shape.iter().zip(numbers).map(axis).collect();
    SliceInfo::try_from(elements).expect("as many axes in as out")
}

#[test]
fn contiguity_flags_are_those_of_ndarray_and_numpy() {
    let cases = (vec(0_usize..4, 0..6), any::<bool>(), any::<[u8; 8]>(), any::<[u8; 8]>());
    check(cases, |(shape, is_fortran, numbers, order)| {
        let contents = ArrayD::<u32>::zeros(IxDyn(&shape).set_f(is_fortran));
        let stream = Device::cpu().stream();
        let mut array = DeviceArray::from_host_on(&stream, &contents).expect("memory");
        assert_eq!(flags!(array), ndarrays(&contents.view()), "{shape:?}");
        assert_flags(&array.view(), &contents.view());
        let slice = slice_in_range(&shape, numbers);
        let (part, expected) = (array.slice(&slice), contents.slice(&slice));
        assert_flags(&part, &expected);
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        axes.sort_by_key(|axis| order[*axis]);
        let turned = expected.clone().permuted_axes(IxDyn(&axes));
        assert_flags(&part.permuted_axes(IxDyn(&axes)), &turned);
        let mut repeated = shape.clone();
        repeated.insert(0, usize::from(order[7] % 3));
        let expected = contents.broadcast(repeated.clone()).expect("a new first axis");
        assert_flags(&array.broadcast(repeated).expect("a new first axis"), &expected);
        let exclusive = array.slice_mut(&slice).permuted_axes(IxDyn(&axes));
        assert_eq!(flags!(exclusive), ndarrays(&turned));
    });
}

/// The text and the line of this file of the last panic.
static PANIC: Mutex<Option<(String, Option<u32>)>> = Mutex::new(None);

/// The result of a call in this line of this file. `None` if it panics, there and with the array's
/// name.
fn in_range(line: u32, call: impl FnOnce() -> Vec<usize>) -> Option<Vec<usize>> {
    let outcome = catch_unwind(AssertUnwindSafe(call)).ok();
    let panic = PANIC.lock().expect("no panic holds it").take();
    if outcome.is_none() {
        let (text, seen) = panic.expect("the hook was called");
        assert!(text.contains("out of range in \"table\""), "{text}");
        assert_eq!(seen, Some(line), "{text}");
    }
    outcome
}

/// Indices and ranges within bounds of an axis of up to four indices, and beyond them.
fn any_element() -> impl Strategy<Value = SliceInfoElem> {
    let end = prop_oneof![(-5_isize..6).prop_map(Some), any::<bool>().prop_map(|_| None)];
    let slice = (-5_isize..6, end, -3_isize..4);
    prop_oneof![
        (-5_isize..6).prop_map(SliceInfoElem::Index),
        slice.prop_map(|(start, end, step)| SliceInfoElem::Slice { start, end, step }),
    ]
}

#[test]
#[ignore = "changes the panic hook: run in processes of its own by the test below"]
fn any_slices() {
    let printing = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let here = info.location().filter(|at| at.file() == file!()).map(Location::line);
        let text = text_of(info.payload()).unwrap_or_default().to_owned();
        if text.starts_with("assertion") {
            printing(info);
        }
        *PANIC.lock().expect("no panic holds it") = Some((text, here));
    }));
    let device = Device::cpu();
    let refused = Mutex::new([0_u32; 2]);
    check((vec((0_usize..5, any_element()), 1..4), any::<bool>()), |(axes, is_more)| {
        let (mut shape, elements): (Vec<_>, Vec<_>) = axes.into_iter().unzip();
        // A slice of fewer axes is refused too.
        shape.extend((is_more && shape.len() == 3).then_some(2));
        let contents = ArrayD::<u32>::zeros(IxDyn(&shape));
        let info: Slice = SliceInfo::try_from(elements).expect("any elements");
        let expected = catch_unwind(|| contents.slice(&info).shape().to_vec()).ok();
        refused.lock().expect("no panic holds it")[usize::from(expected.is_none())] += 1;
        let table = SmartArray::from(contents).named("table");
        let mut table = table.into_device(&device).expect("memory");
        let seen = [
            in_range(line!(), || table.slice(&info).shape().to_vec()),
            in_range(line!(), || table.view().slice(&info).shape().to_vec()),
            in_range(line!(), || table.slice_mut(&info).shape().to_vec()),
            in_range(line!(), || table.view_mut().slice(&info).shape().to_vec()),
            in_range(line!(), || table.view_mut().slice_move(&info).shape().to_vec()),
        ];
        seen.iter().for_each(|seen| assert_eq!(*seen, expected, "{info:?} of {shape:?}"));
    });
    let refused = refused.into_inner().expect("no panic holds it");
    assert!(refused.iter().all(|count| *count > 50), "{refused:?} in range and out of it");
}

#[test]
fn slices_out_of_range_panic_at_the_users_line_and_name_the_array() {
    let output = own_process::run(test_name!(any_slices), &[]);
    assert_success(&output, "any_slices");
}
