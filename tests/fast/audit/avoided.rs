//! What launches saved, compared with a launcher that copies every argument in and out.

use resident::{Device, DeviceArray, Emulation, Flow, Result, SmartArray};

use crate::{copy, double, grid, report_of};

const ROUNDS: u64 = 10;

fn flow(count: u64) -> Flow {
    Flow { count, bytes: 400 * count }
}

/// Each round writes the array on the host, computes, and reads it on the host.
#[test]
fn a_program_that_moves_what_a_launcher_moves_saves_nothing_and_says_so() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let stream = device.stream();
    let mut frame = SmartArray::from(vec![0.0_f32; 100]);
    let report = report_of(|| {
        (0..ROUNDS).try_for_each(|round| {
            frame.host_overwrite()?.fill(round as f32);
            double().launch_on(&stream, grid(), (&mut frame,))?;
            frame.host().map(drop)
        })
    })?;
    assert_eq!(report.conservative(), flow(2 * ROUNDS));
    assert_eq!(report.traffic().moved(), report.conservative());
    let avoided = [report.traffic(), frame.traffic(), device.traffic()].map(|it| it.avoided);
    assert_eq!(avoided, [Flow::default(); 3]);
    let document = report.to_document();
    assert_eq!((document.avoided, document.conservative), (flow(0), flow(2 * ROUNDS)));
    let text = report.to_string();
    assert!(text.contains("every argument in and out would have moved 8_000 bytes"), "{text}");
    assert!(text.contains("avoided compared with it, for the arrays of launches: nothing"));
    Ok(())
}

#[test]
fn every_copy_of_an_array_of_launches_counts_whatever_call_made_it() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let stream = device.stream();
    let mut state = SmartArray::from(vec![0.0_f32; 100]);
    let other = SmartArray::from(vec![0.0_f32; 100]);
    let report = report_of(|| {
        state.prefetch(&stream)?;
        other.prefetch(&stream)?;
        for _ in 0..ROUNDS {
            double().launch_on(&stream, grid(), (&mut state,))?;
        }
        assert_eq!(state.get(3)?, 0.0);
        state.host().map(drop)
    })?;
    // The prefetch, the element and the download; nothing of the other array.
    let moved = Flow { count: 3, bytes: 804 };
    let expected = flow(2 * ROUNDS) - moved;
    let avoided = [report.traffic(), state.traffic(), device.traffic()].map(|it| it.avoided);
    assert_eq!(avoided, [expected; 3]);
    assert_eq!(other.traffic().avoided, Flow::default());
    let text = report.to_string();
    assert!(text.contains("arrays of launches: 7_196 bytes\n"), "{text}");
    Ok(())
}

#[test]
fn what_moves_more_than_a_launcher_saves_nothing_of_other_arrays() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let stream = device.stream();
    let mut arrays = [0.0_f32, 1.0].map(|x| SmartArray::from(vec![x; 100]));
    let report = report_of(|| {
        let [state, bounced] = &mut arrays;
        for _ in 0..ROUNDS {
            double().launch_on(&stream, grid(), (&mut *state,))?;
            // Four copies, of which a launcher would make two.
            double().launch_on(&stream, grid(), (&mut *bounced,))?;
            bounced.host_mut()?[0] += 1.0;
            bounced.prefetch(&stream)?;
            bounced.host_mut()?[0] += 1.0;
        }
        Ok(())
    })?;
    // Reading the first array back would be one more copy: it stays on the device.
    assert_eq!(report.traffic().avoided, report.conservative() - report.traffic().moved());
    assert_eq!(arrays[1].traffic().avoided, Flow::default());
    assert_eq!(arrays[0].traffic().avoided, flow(2 * ROUNDS - 1));
    Ok(())
}

#[test]
fn explicit_arrays_do_not_count_as_saved() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let stream = device.stream();
    let mut target = SmartArray::from(vec![0.0_f32; 100]);
    let here = ndarray::Array1::<f32>::ones(100);
    let report = report_of(|| {
        let mut there = DeviceArray::from_host_on(&stream, &here)?;
        for _ in 0..ROUNDS {
            double().launch_on(&stream, grid(), (&mut there,))?;
        }
        copy().launch_on(&stream, grid(), (&there, &mut target))?;
        there.copy_to_host().map(drop)
    })?;
    // The target is the only argument that a launcher would copy.
    assert_eq!(report.conservative(), flow(2));
    assert_eq!(report.traffic().avoided, flow(2));
    assert_eq!(device.traffic().avoided, flow(2));
    assert_eq!(report.traffic().moved(), flow(2), "up and down, by the program's wish");
    Ok(())
}
