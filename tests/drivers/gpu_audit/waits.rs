//! Waits of the host for a device of another kind that still uses an array, on the stand-in driver.
//! Each test has its own process, because the driver belongs to one.

use resident::audit::{Document, DocumentRecord};
use resident::ndarray::Ix1;
use resident::{
    Device, DeviceArray, Emulation, InOut, Kernel, MappedArray, Result, SmartArray, Stream,
};
use resident_stand_in::Settings;
use support::bodies::Gate;
use support::own_process;

use crate::body_on_gpu::device_with;
use crate::{document_of, double, grid, ones};

/// The stand-in driver's device, and a kernel that waits at the gate there.
fn gpu(gate: &Gate) -> Result<(Device, Kernel<(InOut<f32>,)>)> {
    gpu_with(Settings::new(), gate)
}

fn gpu_with(settings: Settings, gate: &Gate) -> Result<(Device, Kernel<(InOut<f32>,)>)> {
    let gate = gate.clone();
    device_with(settings, move || gate.pass())
}

/// The device, the stream, the reason and the line of each wait.
fn waits(document: &Document) -> Vec<(&str, u32, &str, &str)> {
    let records = document.records.iter();
    let waits = records.filter_map(|record| match record {
        DocumentRecord::Wait { device, stream, reason, site, .. } => {
            Some((&**device, *stream, &**reason, &**site))
        }
        _ => None,
    });
    waits.collect()
}

/// Runs `access`, which makes the host wait for this device, and for no other: for contents, in a
/// call of this file.
#[track_caller]
fn assert_waits_for(stream: &Stream, access: impl FnOnce() -> Result<()>) {
    let document = document_of(access).expect("nothing fails");
    let (waits, device) = (waits(&document), stream.device().name());
    let [(waited_for, number, reason, site)] = waits[..] else { panic!("one wait: {waits:?}") };
    assert_eq!((waited_for, number, reason), (&*device, 0, "contents"));
    assert!(site.contains(file!()), "{site}");
}

/// A stream of a device that runs nothing before somebody waits for it.
fn waiting() -> Stream {
    Device::emulated(Emulation::new().seed(1)).stream()
}

const LEN: usize = 100_000;

/// Queues a kernel that changes the array, and the copy to the host.
fn copy_back_from(embedded: &Stream, array: &mut SmartArray<f32, Ix1>) -> Result<()> {
    double().launch_on(embedded, grid(), (&mut *array,))?;
    array.prefetch_host()
}

#[test]
fn the_host_reads_from_a_gpu_what_an_embedded_device_still_copies_back() -> Result<()> {
    own_process!();
    let ((gpu, _), embedded) = (gpu(&Gate::default())?, waiting());
    let mut array = ones(LEN);
    copy_back_from(&embedded, &mut array)?;
    drop(array.gpu_overwrite_on(&gpu.stream())?);
    // Else the older download could overwrite the newer one.
    assert_waits_for(&embedded, || array.prefetch_host());
    Ok(())
}

#[test]
fn a_gpu_reads_mapped_memory_to_which_an_embedded_device_still_copies() -> Result<()> {
    own_process!();
    let gate = Gate::default();
    gate.open();
    let ((gpu, kernel), embedded) = (gpu(&gate)?, waiting());
    let mut array = SmartArray::from(MappedArray::<f32, _>::zeros(LEN)?);
    copy_back_from(&embedded, &mut array)?;
    assert_waits_for(&embedded, || kernel.launch_on(&gpu.stream(), grid(), (&mut array,)));
    Ok(())
}

#[test]
fn a_copy_overwrites_pinned_memory_to_which_an_embedded_device_still_copies() -> Result<()> {
    own_process!();
    let ((gpu, _), embedded) = (gpu(&Gate::default())?, waiting());
    let (stream, own) = (gpu.stream(), DeviceArray::<f32, _>::zeros_on(&gpu.stream(), LEN)?);
    let mut array = ones(LEN);
    array.page_lock()?;
    copy_back_from(&embedded, &mut array)?;
    assert_waits_for(&embedded, || own.copy_to_pinned_on(&stream, &mut array));
    Ok(())
}

#[test]
fn an_embedded_device_reads_what_a_gpu_still_writes() -> Result<()> {
    own_process!();
    let gate = Gate::default();
    gate.open();
    // Its work runs only when a thread waits for it.
    let (gpu, kernel) = gpu_with(Settings::new().seed(1), &gate)?;
    let (stream, mut array) = (gpu.stream(), ones(LEN));
    kernel.launch_on(&stream, grid(), (&mut array,))?;
    assert_waits_for(&stream, || array.prefetch(&waiting()));
    Ok(())
}
