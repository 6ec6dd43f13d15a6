//! Results stay where they are made, and only numbers come to the host.

use ndarray::Axis;
use resident::{DeviceArray, Result, SmartArray, audit, ops};

use crate::rust;

#[test]
fn nothing_moves_for_operands_on_the_device() -> Result<()> {
    let device = rust();
    let _here = device.enter();
    let a = DeviceArray::<f32, _>::full((400, 400), 2.0)?;
    let (mut c, mut row) = (DeviceArray::like(&a)?, DeviceArray::<f32, _>::zeros(400)?);
    let mut places = DeviceArray::<u64, _>::zeros((400, 400))?;
    let mut number = DeviceArray::<f32, _>::zeros(1)?;
    let (outcome, report) = audit::capture(|| -> Result<()> {
        ops::add(&a, &a, &mut c)?;
        ops::scaled_add(3.0, &a, &mut c)?;
        ops::copy(&a.t(), &mut c.view_mut().reversed_axes())?;
        ops::sum_axis(&c, Axis(0), &mut row)?;
        ops::sum(&c, &mut number)?;
        ops::norm_l2(&c, &mut number)?;
        ops::cumulative_sum(&a, &mut c)?;
        ops::cumulative_product(&a, &mut c)?;
        ops::searchsorted(&row, &c, &mut places)?;
        device.synchronize()
    });
    outcome?;
    let traffic = report.traffic();
    assert_eq!((traffic.to_device.bytes, traffic.to_host.bytes), (0, 0));
    Ok(())
}

#[test]
fn a_method_brings_its_numbers() -> Result<()> {
    let _here = rust().enter();
    let a = SmartArray::<f64, _>::ones((300, 400));
    type Number = fn(&SmartArray<f64, ndarray::Ix2>) -> Result<f64>;
    // A deviation takes the sum of the differences too.
    let numbers: [(Number, f64, u64); 2] = [(|a| a.sum(), 120_000.0, 8), (|a| a.std(1.0), 0.0, 16)];
    for (number, expected, len_bytes) in numbers {
        let (found, report) = audit::capture(|| number(&a));
        assert_eq!(found?, expected);
        let traffic = report.traffic();
        assert_eq!((traffic.to_device.bytes, traffic.to_host.bytes), (0, len_bytes));
        assert!(report.sites().iter().all(|site| format!("{site:?}").contains("residency.rs")));
    }
    Ok(())
}

#[test]
fn only_the_part_that_is_read_is_uploaded() -> Result<()> {
    let _here = rust().enter();
    let a = SmartArray::from(ndarray::Array2::<f32>::ones((100, 100)));
    let part = a.slice(ndarray::s![10..20, ..]);
    assert_eq!(part.sum()?, 1000.0);
    assert_eq!(a.traffic().to_device.bytes, 4000);
    let columns = a.slice(ndarray::s![.., 50..60]);
    assert_eq!(columns.max()?, 1.0);
    assert_eq!(a.traffic().to_device.bytes, 4000 + 90 * 10 * 4);
    Ok(())
}
