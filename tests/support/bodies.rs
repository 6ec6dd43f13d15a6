//! Kernels over flat `u32` arrays (slices), and a gate at which a body waits until the test has
//! queued more work.

use std::sync::{Arc, Condvar, Mutex};

use resident::{Device, Emulation, Grid, In, InOut, Kernel, Out};

/// A gate, closed at first; `pass` waits until it is open.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub fn pass(&self) {
        let mut is_open = self.0.0.lock().unwrap();
        while !*is_open {
            is_open = self.0.1.wait(is_open).unwrap();
        }
    }
}

/// A grid for a launch whose body ignores the grid.
pub fn one() -> Grid {
    Grid::cover(1)
}

/// `y = x + k`.
pub fn plus() -> Kernel<(u32, In<u32>, Out<u32>)> {
    Kernel::new("plus").host(|_, (k, x, y): (u32, &[u32], &mut [u32])| {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x + k);
    })
}

/// `x *= 2`.
pub fn double() -> Kernel<(InOut<f32>,)> {
    Kernel::new("double").host(|_, (x,): (&mut [f32],)| x.iter_mut().for_each(|x| *x *= 2.0))
}

/// `x += k`.
pub fn add() -> Kernel<(u32, InOut<u32>)> {
    Kernel::new("add").host(|_, (k, x): (u32, &mut [u32])| x.iter_mut().for_each(|x| *x += k))
}

/// `y += x`.
pub fn accumulate() -> Kernel<(In<u32>, InOut<u32>)> {
    Kernel::new("accumulate")
        .host(|_, (x, y): (&[u32], &mut [u32])| y.iter_mut().zip(x).for_each(|(y, x)| *y += x))
}

/// Reads and writes its array, and panics once the gate is open.
pub fn broken_update(gate: &Gate) -> Kernel<(InOut<u32>,)> {
    let gate = gate.clone();
    Kernel::new("broken").host(move |_, (_,): (&mut [u32],)| {
        gate.pass();
        panic!("it is broken")
    })
}

/// Writes its second array from its first, and panics once the gate is open.
pub fn broken_output(gate: &Gate) -> Kernel<(In<u32>, Out<u32>)> {
    let gate = gate.clone();
    Kernel::new("broken").host(move |_, (_, _): (&[u32], &mut [u32])| {
        gate.pass();
        panic!("it is broken")
    })
}

/// Settings of a seeded device, which runs work only when a thread waits, and of a device with
/// worker threads. Both devices check the order of work.
pub fn modes() -> [fn() -> Emulation; 2] {
    [|| Emulation::new().seed(11), Emulation::new]
}

/// Asserts that the device found no hazard (unordered accesses).
#[track_caller]
pub fn assert_ordered(device: &Device) {
    crate::watched::assert_no_hazard(std::slice::from_ref(device));
}

/// As [`assert_ordered`], under a seed.
#[track_caller]
pub fn assert_ordered_under(seed: u64, device: &Device) {
    crate::watched::assert_no_hazard_in(format_args!("seed {seed}"), device);
}
