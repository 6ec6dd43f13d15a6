//! Kernels over matrices on a stand-in for a driver. Each of the two stand-ins, `super::face`, has
//! its own copy.

use std::sync::{Mutex, Once, PoisonError};

use resident::{Device, GpuSource};

use super::face::{self as driver, Access, Parameter, Settings, View, register};

const NUMBER: Parameter = Parameter::Scalar { len_bytes: 4 };

fn matrix(access: Access) -> Parameter {
    Parameter::View { dimensions: 2, element_bytes: 4, access }
}

fn parameters(kernel: &str) -> Vec<Parameter> {
    use Access::{Read, ReadWrite, Write};
    match kernel {
        "plus" => vec![NUMBER, matrix(Read), matrix(Write)],
        "add" => vec![NUMBER, matrix(ReadWrite)],
        "mix" => vec![matrix(Read), matrix(ReadWrite)],
        "scale" | "broken" => vec![NUMBER, matrix(ReadWrite)],
        "mirror" | "relax" => vec![NUMBER, matrix(Read), matrix(Write)],
        other => panic!("there is no kernel {other}"),
    }
}

/// A kernel in the driver's format: its parameters, without code.
pub fn code(kernel: &str) -> GpuSource {
    driver::code(kernel, &parameters(kernel))
}

/// As [`code`], as backends take it.
pub fn source(kernel: &str) -> resident_backend::GpuSource {
    driver::source(kernel, &parameters(kernel))
}

fn change(view: &View, new: impl Fn(usize, u32) -> u32) {
    (0..view.len()).for_each(|index| view.set(index, new(index, view.get(index))));
}

/// The tags that kernels recorded, in the order in which the kernels ran.
static RAN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn note(tag: u32) {
    RAN.lock().unwrap_or_else(PoisonError::into_inner).push(tag);
}

/// Takes the tags of the kernels that ran since the last call.
pub fn take_ran() -> Vec<u32> {
    std::mem::take(&mut *RAN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Loads the driver, registers the kernels, and opens the devices.
pub fn open(settings: Settings, count: usize) -> Vec<Device> {
    driver::load(settings).unwrap_or_else(|fault| panic!("{fault}"));
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(register_kernels);
    (0..count)
        .map(|ordinal| driver::device(ordinal).unwrap_or_else(|error| panic!("{error}")))
        .collect()
}

fn register_kernels() {
    register("plus", &parameters("plus"), |launch| {
        let (k, x) = (launch.scalar::<u32>(0), launch.view(1));
        change(&launch.view(2), |index, _| x.get::<u32>(index).wrapping_add(k));
        Ok(())
    });
    register("add", &parameters("add"), |launch| {
        let k = launch.scalar::<u32>(0);
        change(&launch.view(1), |_, x| x.wrapping_add(k));
        Ok(())
    });
    register("mix", &parameters("mix"), |launch| {
        let x = launch.view(0);
        change(&launch.view(1), |index, y| y.wrapping_add(x.get(index)));
        Ok(())
    });
    register("scale", &parameters("scale"), |launch| {
        let tag = launch.scalar::<u32>(0);
        note(tag);
        change(&launch.view(1), |_, x| x.wrapping_mul(3).wrapping_add(tag));
        Ok(())
    });
    register("mirror", &parameters("mirror"), |launch| {
        note(launch.scalar(0));
        let x = launch.view(1);
        let columns = x.shape[1] as usize;
        change(&launch.view(2), |index, _| {
            x.get(index / columns * columns + columns - 1 - index % columns)
        });
        Ok(())
    });
    register("relax", &parameters("relax"), |launch| {
        note(launch.scalar(0));
        let x = launch.view(1);
        let (rows, columns) = (x.shape[0] as usize, x.shape[1] as usize);
        change(&launch.view(2), |index, _| {
            let own = x.get::<u32>(index);
            if !(1..rows - 1).contains(&(index / columns)) {
                return own;
            }
            x.get::<u32>(index - columns)
                .wrapping_add(own.wrapping_mul(3))
                .wrapping_add(x.get(index + columns))
                .wrapping_add(1)
        });
        Ok(())
    });
    register("broken", &parameters("broken"), |_launch| Err(driver::Fault::IllegalAddress));
}
