//! Operations of each kind on the CUDA backend: NVRTC's and the driver's stand-ins.

use half::f16;
use ndarray::{Array1, Array2, s};
use resident::ops;
use resident::{Device, Result, SmartArray};
use resident_stand_in::Settings;
use support::own_process;

use crate::elementwise::{self, Cases};
use crate::{elementwise_texts, half_floats, reduction_texts, reductions};

/// The stand-in's device.
fn gpu() -> Device {
    resident_stand_in::load(Settings::new()).expect("the stand-in driver loads");
    resident_stand_in_nvrtc::load().expect("the stand-in for NVRTC loads");
    Device::cuda(0).expect("the stand-in has a device")
}

/// No work was unordered, and no kernel failed.
fn assert_clean() {
    assert_eq!(resident_stand_in::take_hazards(), [""; 0]);
    assert_eq!(resident_stand_in::take_notes(), [""; 0]);
}

#[test]
fn arithmetic_is_ndarrays() {
    own_process!();
    let devices = || [Some((gpu(), (8, 2))), None::<(Device, Cases)>];
    elementwise::arithmetic::<i32>(
        devices,
        [i32::wrapping_add, i32::wrapping_sub, i32::wrapping_mul, |a, b| {
            if b == 0 { 0 } else { a.wrapping_div(b) }
        }],
    );
    assert_clean();
}

#[test]
fn reductions_are_exact() {
    own_process!();
    let device = gpu();
    reductions::exact::<i32>(&device, (7, 1), i32::wrapping_add);
    reductions::running(&device, (7, 1));
    assert_clean();
}

#[test]
fn halves_are_rounded_once() -> Result<()> {
    own_process!();
    let device = gpu();
    let _here = device.enter();
    half_floats::casts::<f16>(f16::from_bits, f16::from_f32)?;
    half_floats::arithmetic::<f16>(f16::from_bits, f16::from_f32)?;
    assert_clean();
    Ok(())
}

#[test]
fn products_and_places_are_exact() -> Result<()> {
    own_process!();
    let device = gpu();
    let _here = device.enter();
    let table = |rows, columns, seed| {
        Array2::from_shape_fn((rows, columns), |(row, column)| {
            ((row * 7 + column * 5 + seed) % 9) as f64 - 4.0
        })
    };
    let (a, b) = (table(70, 45, 1), table(45, 33, 2));
    let (ours_a, ours_b) = (SmartArray::from(a.clone()), SmartArray::from(b.clone()));
    let mut product = SmartArray::<f64, _>::uninit((70, 33));
    ops::matmul(&ours_a, &ours_b, &mut product)?;
    assert_eq!(*product.host()?, a.dot(&b));

    let places = SmartArray::from(vec![3_u64, 0, 69 * 45 + 44]);
    let mut found = SmartArray::<f64, _>::uninit(3);
    ops::gather(&ours_a, &places, &mut found)?;
    assert_eq!(found.to_vec()?, [a[[0, 3]], a[[0, 0]], a[[69, 44]]]);

    let mut line = SmartArray::from(Array1::<f64>::zeros(10));
    ops::copy(&ours_a.slice(s![..10, 2]), &mut line)?;
    assert_eq!(*line.host()?, a.slice(s![..10, 2]));
    assert_clean();
    Ok(())
}

#[test]
fn texts_compute_the_same() -> Result<()> {
    own_process!();
    let device = gpu();
    let _here = device.enter();
    elementwise_texts::parts::<f32>(|x, y, z| z + (x - y), 12)?;
    elementwise_texts::parts::<f16>(
        |x, y, z| f16::from_f32(z.to_f32() + (x.to_f32() - y.to_f32())),
        4,
    )?;
    reduction_texts::parts(8)?;
    assert_clean();
    Ok(())
}
