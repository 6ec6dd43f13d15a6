//! Section 6, as far as it is there: what moved, why, and because of which line.

use resident::audit::{self, Cause, Direction};
use resident::{Grid, InOut, Kernel, Result, SmartArray};

use crate::lab::lab;
use crate::moves::{NOTHING, moves};

#[test]
fn a_capture_tells_what_moved_and_because_of_which_line() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1.0_f32; 10]).named("xs");
    let (value, report) = audit::capture(|| -> Result<(f32, u32)> {
        drop(array.gpu_mut_on(&device.stream())?);
        Ok((array.host()?.sum(), line!()))
    });
    let (sum, line) = value?;
    assert_eq!((sum, moves(report.traffic())), (10.0, [(1, 40), (1, 40), (0, 0)]));
    let sites = report.sites();
    assert_eq!(sites.len(), 2);
    let download = sites.iter().find(|site| site.direction == Direction::ToHost).expect("one download");
    assert_eq!((download.location.line(), download.cause, &*download.array), (line, Cause::Host, "xs"));
    assert!(download.location.file().ends_with("audit.rs"));
    assert_eq!(download.stale_since.map(|site| site.line()), Some(line - 1));
    assert_eq!((download.flow.count, download.flow.bytes), (1, 40));
    Ok(())
}

#[test]
fn a_report_prints_a_table_with_sites_and_totals() -> Result<()> {
    let device = lab();
    let add = Kernel::<(InOut<f32>,)>::new("add").host(|_grid, (_,)| {});
    let mut array = SmartArray::from(vec![1.0_f32; 1000]).named("xs");
    let (outcome, report) = audit::capture(|| add.launch_on(&device.stream(), Grid::cover(1), (&mut array,)));
    outcome?;
    let table = report.to_string();
    for word in ["audit.rs:", "xs", "to_device", "launch", "4_000", "never there", "avoided", "every argument in and out"] {
        assert!(table.contains(word), "{word} is not in\n{table}");
    }
    assert_eq!((report.traffic().avoided.bytes, report.conservative().bytes), (4000, 8000));
    Ok(())
}

#[test]
fn captures_nest_and_see_only_their_own_thread() -> Result<()> {
    let device = lab();
    let arrays = [SmartArray::from(vec![1_u8; 10]), SmartArray::from(vec![1_u8; 20])];
    let ((_, inner), outer) = audit::capture(|| {
        arrays[0].prefetch(&device.stream()).expect("room");
        audit::capture(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| SmartArray::from(vec![1_u8; 40]).prefetch(&device.stream()).expect("room"));
            });
            arrays[1].prefetch(&device.stream()).expect("room");
        })
    });
    assert_eq!(moves(inner.traffic()), [(1, 20), (0, 0), (0, 0)]);
    assert_eq!(moves(outer.traffic()), [(2, 30), (0, 0), (0, 0)]);
    let ((), nothing) = audit::capture(|| ());
    assert_eq!(moves(nothing.traffic()), NOTHING);
    Ok(())
}

#[test]
fn every_way_to_ask_has_its_cause() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let touch = Kernel::<(InOut<u8>,)>::new("touch").host(|_grid, (_,)| {});
    let fresh = || SmartArray::from(vec![1_u8; 10]);
    let causes = |work: &dyn Fn() -> Result<()>| -> Vec<Cause> {
        let (outcome, report) = audit::capture(work);
        outcome.expect("queued");
        report.sites().iter().map(|site| site.cause).collect()
    };
    assert_eq!(causes(&|| touch.launch_on(&stream, Grid::cover(1), (&mut fresh(),))), [Cause::Launch]);
    assert_eq!(causes(&|| fresh().gpu_on(&stream).map(drop)), [Cause::Gpu]);
    assert_eq!(causes(&|| fresh().prefetch(&stream)), [Cause::Prefetch]);
    let there = fresh();
    let mut there = there;
    drop(there.gpu_mut_on(&stream)?);
    assert_eq!(causes(&|| there.get(0).map(drop)), [Cause::Explicit]);
    assert_eq!(causes(&|| there.snapshot_on(&stream)?.wait().map(drop)), [Cause::Explicit]);
    assert_eq!(causes(&|| there.host().map(drop)), [Cause::Host]);
    Ok(())
}

#[test]
fn one_planned_copy_is_one_count_however_many_parts_it_has() -> Result<()> {
    use resident::ndarray::{Array2, s};
    let device = lab();
    let mut array = SmartArray::from(Array2::<u8>::ones((10, 10)));
    for row in [1, 3, 5, 7] {
        drop(array.slice_mut(s![row, ..]).gpu_mut_on(&device.stream())?);
    }
    assert_eq!(moves(array.traffic()), [(4, 40), (0, 0), (0, 0)]);
    drop(array.host()?);
    assert_eq!(moves(array.traffic()), [(4, 40), (1, 40), (0, 0)], "four rows, one copy");
    drop(array.gpu_on(&device.stream())?);
    assert_eq!(moves(array.traffic()), [(5, 100), (1, 40), (0, 0)]);
    Ok(())
}

#[test]
fn the_inventory_lists_live_arrays_and_forgets_dropped_ones() -> Result<()> {
    let device = lab();
    let array = SmartArray::from(vec![1.0_f64; 10]).named("listed here");
    array.prefetch(&device.stream())?;
    let entry = audit::inventory().into_iter().find(|entry| entry.name() == "listed here").expect("it lives");
    assert_eq!((entry.shape(), entry.element(), entry.bytes()), (&[10][..], "f64", 80));
    let places: Vec<String> = entry.places().map(|(place, validity)| format!("{place} {validity}")).collect();
    assert_eq!(places, ["host valid".to_owned(), format!("{} valid", device.name())]);
    assert!(entry.to_string().contains("listed here"));
    drop(array);
    assert!(audit::inventory().iter().all(|entry| entry.name() != "listed here"));
    Ok(())
}
