//! The process that tests device memory for another: see `crate::self_test`.

use std::{panic, process};

use resident::internal::environment;
use resident::ndarray::Ix1;
use resident::{Device, SmartArray};

use crate::error::Result;
use crate::initialise::init;
use crate::self_test::{ARRIVED, OTHER_CONTENTS, VARIABLE};

/// Numbers of elements, for the two ways in which libraries send short and long messages.
const LENGTHS: [u32; 2] = [16, 1 << 20];

/// The loader calls the functions of this section before `main`.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the section holds addresses of functions that the loader calls one after the other, which
// this is. It does nothing in processes that are no test.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    if environment::of_system(VARIABLE).is_none() {
        return;
    }
    let status = match panic::catch_unwind(arrives) {
        Ok(Ok(true)) => ARRIVED,
        Ok(Ok(false)) => OTHER_CONTENTS,
        Ok(Err(_)) | Err(_) => 1,
    };
    process::exit(status);
}

/// Whether elements that are newest on the current device arrive there.
fn arrives() -> Result<bool> {
    let mpi = init()?;
    let stream = Device::current()?.stream();
    let mut arrive = mpi.size() == 1;
    for len in LENGTHS {
        let elements: Vec<u32> = (1..=len).collect();
        let mut sent = SmartArray::from(elements.clone());
        let mut received = SmartArray::<u32, Ix1>::zeros(len as usize);
        drop((sent.gpu_mut_on(&stream)?, received.gpu_mut_on(&stream)?));
        let sending = mpi.isend_on(&stream, &sent, 0, 0)?;
        mpi.recv_on(&stream, &mut received, 0, 0)?;
        sending.wait()?;
        arrive &= received.to_vec()? == elements;
    }
    Ok(arrive)
}
