//! The audit: what was copied, why, and because of which line.

use resident::Flow;
use resident::audit::{self, Cause, Direction, Report, Site};
use support::prelude::*;

#[test]
fn a_capture_reports_what_moved_and_which_line_triggered_it() -> Result<()> {
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
    let download =
        sites.iter().find(|site| site.direction == Direction::ToHost).expect("one download");
    assert_eq!(
        (download.location.line(), download.cause, &*download.array),
        (line, Cause::Host, "xs")
    );
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
    let (outcome, report) =
        audit::capture(|| add.launch_on(&device.stream(), Grid::cover(1), (&mut array,)));
    outcome?;
    let table = report.to_string();
    for word in [
        "audit.rs:",
        "xs",
        "to_device",
        "launch",
        "4_000",
        "never there",
        "avoided",
        "every argument in and out",
    ] {
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
        arrays[0].prefetch(&device.stream()).expect("enough memory");
        audit::capture(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    SmartArray::from(vec![1_u8; 40])
                        .prefetch(&device.stream())
                        .expect("enough memory");
                });
            });
            arrays[1].prefetch(&device.stream()).expect("enough memory");
        })
    });
    assert_eq!(moves(inner.traffic()), [(1, 20), (0, 0), (0, 0)]);
    assert_eq!(moves(outer.traffic()), [(2, 30), (0, 0), (0, 0)]);
    let ((), nothing) = audit::capture(|| ());
    assert_eq!(moves(nothing.traffic()), NOTHING);
    Ok(())
}

/// Uploads `len` bytes on a thread of its own, within `around`.
fn upload_on_a_thread(device: &Device, len: usize, around: impl FnOnce(&dyn Fn()) + Send) {
    let upload = || {
        let array = SmartArray::from(vec![1_u8; len]).named("elsewhere");
        array.prefetch(&device.stream()).expect("enough memory");
    };
    std::thread::scope(|threads| drop(threads.spawn(|| around(&upload))));
}

#[test]
fn a_capture_of_all_threads_sees_other_threads_and_its_own() -> Result<()> {
    let device = lab();
    let own = SmartArray::from(vec![1_u8; 20]).named("own of a capture of all");
    let (outcome, report) = audit::capture_all(|| {
        upload_on_a_thread(&device, 4321, |upload| upload());
        own.prefetch(&device.stream())
    });
    outcome?;
    // Other tests run meanwhile.
    let bytes = |name: &str| -> Vec<u64> {
        let sites = report.sites();
        sites.iter().filter(|site| site.array == name).map(|site| site.flow.bytes).collect()
    };
    assert_eq!(bytes("own of a capture of all"), [20], "{report}");
    assert!(bytes("elsewhere").contains(&4321), "{report}");
    upload_on_a_thread(&device, 4322, |upload| upload());
    assert!(!bytes("elsewhere").contains(&4322), "it is over");
    Ok(())
}

#[test]
fn a_capture_that_saw_nothing_says_that_other_threads_copied() {
    let device = lab();
    let ((), blind) = audit::capture(|| upload_on_a_thread(&device, 40, |upload| upload()));
    assert!(blind.is_empty());
    assert!(blind.to_string().contains("other threads copied"), "{blind}");
    let ((), seeing) = audit::capture(|| {
        let scope = audit::scope();
        upload_on_a_thread(&device, 40, move |upload| scope.run(upload));
    });
    assert!(!seeing.to_string().contains("other threads copied"), "{seeing}");
}

#[test]
fn the_copies_of_a_scope_count_once_to_each_capture_around_it() {
    let device = lab();
    let (((), inner), outer) = audit::capture(|| {
        audit::capture(|| {
            let scope = audit::scope();
            upload_on_a_thread(&device, 10, |upload| {
                let ((), own) = audit::capture(|| scope.clone().run(|| scope.run(upload)));
                assert_eq!(moves(own.traffic()), [(1, 10), (0, 0), (0, 0)]);
                upload();
            });
            scope.run(|| drop(SmartArray::from(vec![1_u8; 30]).gpu_on(&device.stream())));
        })
    });
    assert_eq!(moves(inner.traffic()), [(2, 40), (0, 0), (0, 0)], "not what left the scope");
    assert_eq!(moves(outer.traffic()), moves(inner.traffic()));
}

#[test]
fn a_scope_outlives_its_capture_and_a_panic() {
    let device = lab();
    let (scope, report) = audit::capture(audit::scope);
    assert!(report.is_empty());
    let outcome = std::panic::catch_unwind(|| scope.run(|| panic!("within the scope")));
    assert!(outcome.is_err());
    let ((), later) = audit::capture(|| {
        upload_on_a_thread(&device, 10, |upload| scope.run(upload));
    });
    assert!(later.is_empty(), "the scope belongs to the first capture\n{later}");
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
    assert_eq!(
        causes(&|| touch.launch_on(&stream, Grid::cover(1), (&mut fresh(),))),
        [Cause::Launch]
    );
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
    let entry = audit::inventory()
        .into_iter()
        .find(|entry| entry.name() == "listed here")
        .expect("the context is alive");
    assert_eq!((entry.shape(), entry.element(), entry.bytes()), (&[10][..], "f64", 80));
    let places: Vec<String> =
        entry.places().map(|(place, validity)| format!("{place} {validity}")).collect();
    assert_eq!(places, ["host valid".to_owned(), format!("{} valid", device.name())]);
    assert_eq!(
        entry.to_string(),
        format!("\"listed here\" f64[10], 80 bytes: host valid, {} valid", device.name())
    );
    let unnamed = SmartArray::from(vec![1.0_f64; 7531]);
    let lines: Vec<String> = audit::inventory()
        .iter()
        .map(ToString::to_string)
        .filter(|line| line.contains("7531"))
        .collect();
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].starts_with("f64[7531] made at ")
            && lines[0].ends_with(", 60_248 bytes: host valid"),
        "{lines:?}"
    );
    drop(unnamed);
    drop(array);
    assert!(audit::inventory().iter().all(|entry| entry.name() != "listed here"));
    Ok(())
}

type Matrix = SmartArray<f32, Ix2>;

fn matrix() -> Matrix {
    SmartArray::from(Array2::ones((30, 10)))
}

/// The only line of the report. The report must have one line, caused by a single call.
fn only(report: &Report) -> Site {
    let sites = report.sites();
    assert_eq!(sites.len(), 1, "{report}");
    sites[0].clone()
}

/// The report's `stale_since` line for rows that a prefetch copies to a device.
fn stale_since(array: &Matrix, rows: std::ops::Range<usize>, device: &Device) -> Option<u32> {
    let (outcome, report) = audit::capture(|| array.slice(s![rows, ..]).prefetch(&device.stream()));
    outcome.expect("enough memory");
    let site = only(&report);
    assert_eq!(site.never_there, site.stale_since.is_none());
    site.stale_since.map(|location| location.line())
}

#[test]
fn each_part_knows_the_line_that_made_it_stale() -> Result<()> {
    let device = lab();
    let mut array = matrix();
    array.slice(s![..20, ..]).prefetch(&device.stream())?;
    let first = line!() + 1;
    drop(array.slice_mut(s![..10, ..]).host_mut()?);
    drop(array.slice_mut(s![10..20, ..]).host_mut()?);
    drop(array.slice_mut(s![20.., ..]).host_mut()?);
    assert_eq!(stale_since(&array, 0..5, &device), Some(first));
    assert_eq!(stale_since(&array, 5..15, &device), Some(first + 1), "the later of two");
    assert_eq!(stale_since(&array, 20..25, &device), None, "it was never valid there");
    assert_eq!(stale_since(&array, 15..30, &device), Some(first + 1), "some was never there");
    Ok(())
}

#[test]
fn the_host_and_each_device_know_of_their_own() -> Result<()> {
    let (device, other) = (lab(), Device::emulated(Emulation::new()));
    let mut array = matrix();
    array.prefetch(&device.stream())?;
    array.prefetch(&other.stream())?;
    let first = line!() + 1;
    drop(array.slice_mut(s![..10, ..]).gpu_mut_on(&device.stream())?);
    drop(array.slice_mut(s![10.., ..]).gpu_mut_on(&other.stream())?);
    let (_, report) = audit::capture(|| array.slice(s![5..15, ..]).host().map(drop));
    let lines: Vec<Option<u32>> = report
        .sites()
        .iter()
        .map(|site| site.stale_since.map(|location| location.line()))
        .collect();
    assert_eq!(report.sites().len(), 2, "from two devices\n{report}");
    assert!(lines.contains(&Some(first)) && lines.contains(&Some(first + 1)), "{report}");
    assert_eq!(stale_since(&array, 10..20, &device), Some(first + 1));
    assert_eq!(stale_since(&array, 0..10, &other), Some(first));
    Ok(())
}

/// An array is on at most 63 devices, and the next takes the place of one that has released it.
#[test]
fn a_device_in_the_place_of_another_has_no_history() -> Result<()> {
    let devices: Vec<Device> = (0..64).map(|_| lab()).collect();
    let mut array = matrix();
    devices[..63].iter().try_for_each(|device| array.prefetch(&device.stream()))?;
    let first = line!() + 1;
    drop(array.slice_mut(s![..10, ..]).host_mut()?);
    array.release_on(&devices[5])?;
    assert_eq!(stale_since(&array, 0..5, &devices[63]), None, "it was never valid there");
    assert_eq!(stale_since(&array, 0..5, &devices[6]), Some(first));
    Ok(())
}

#[test]
fn a_constant_was_on_the_host_and_not_on_a_device() -> Result<()> {
    let device = lab();
    let mut array = Matrix::zeros((30, 10));
    array.slice(s![..10, ..]).prefetch(&device.stream())?;
    let line = line!() + 1;
    drop(array.slice_mut(s![..10, ..]).gpu_mut_on(&device.stream())?);
    let (_, report) = audit::capture(|| array.host().map(drop));
    assert_eq!(only(&report).stale_since.map(|location| location.line()), Some(line));
    drop(array.host_mut()?);
    assert_eq!(stale_since(&array, 10..30, &device), None);
    array.fill(3.0)?;
    drop(array.host_mut()?);
    assert_eq!(stale_since(&array, 0..5, &device), Some(line + 3), "stale since then");
    Ok(())
}

#[test]
fn a_copy_that_was_let_go_of_is_stale_since_then() -> Result<()> {
    let device = lab();
    let mut array = matrix();
    array.slice(s![..10, ..]).prefetch(&device.stream())?;
    let line = line!() + 1;
    array.release_on(&device)?;
    assert_eq!(stale_since(&array, 0..10, &device), Some(line));
    assert_eq!(stale_since(&array, 10..20, &device), None);
    Ok(())
}

#[test]
fn different_reasons_for_staleness_are_distinguished() -> Result<()> {
    let device = lab();
    let mut array = matrix().named("xs");
    let (_, report) = audit::capture(|| {
        (0..3).try_for_each(|round| {
            array.prefetch(&device.stream())?;
            if round == 0 { array.host_mut().map(drop) } else { array.host_overwrite().map(drop) }
        })
    });
    let sites = report.sites();
    assert_eq!(sites.len(), 3, "{report}");
    assert!(
        sites.iter().all(|site| site.location == sites[0].location
            && site.flow == Flow { count: 1, bytes: 1200 })
    );
    assert_eq!(sites.iter().filter(|site| site.never_there).count(), 1);
    Ok(())
}

#[test]
fn an_assignment_between_devices_names_both_and_no_line() -> Result<()> {
    let devices = [0, 1].map(|_| Device::emulated(Emulation::new()));
    let (mut source, mut target) = (matrix().named("source"), matrix().named("target"));
    drop(source.gpu_mut_on(&devices[0].stream())?);
    target.prefetch(&devices[1].stream())?;
    let (outcome, report) = audit::capture(|| target.assign_on(&devices[1].stream(), &source));
    outcome?;
    let site = only(&report);
    assert_eq!(
        (&*site.array, site.direction, site.cause),
        ("target", Direction::BetweenDevices, Cause::Explicit)
    );
    assert_eq!((site.device, site.source), (devices[1].name(), Some(devices[0].name())));
    assert!(site.stale_since.is_none() && !site.never_there);
    let text = report.to_string();
    let rows: Vec<&str> = text.lines().skip(2).take(2).collect();
    assert!(rows[0].contains(&format!("{} -> {}", devices[0], devices[1])), "{text}");
    assert_eq!(rows[1], format!("    at {}", site.location));
    Ok(())
}

#[test]
fn a_site_says_on_which_device() -> Result<()> {
    let device = lab();
    let mut array = matrix().named("xs");
    let ((), report) = audit::capture(|| array.prefetch(&device.stream()).expect("enough memory"));
    let site = only(&report);
    assert_eq!((&site.device, &site.source), (&device.name(), &None));
    let line = format!(
        "{}: \"xs\", 1_200 bytes in 1 copy to_device for prefetch, {device}, never there",
        site.location
    );
    assert_eq!(site.to_string(), line);
    drop(array.gpu_mut_on(&device.stream())?);
    let (_, report) = audit::capture(|| array.host().map(drop));
    assert_eq!(only(&report).device, device.name());
    Ok(())
}

#[test]
fn traffic_adds_up_and_reports_what_is_new() -> Result<()> {
    let device = lab();
    let mut array = matrix();
    array.prefetch(&device.stream())?;
    let before = array.traffic();
    drop(array.gpu_mut_on(&device.stream())?);
    drop(array.host()?);
    let since = array.traffic() - before;
    assert_eq!(
        (since.to_device.count, since.to_host.bytes, since.moved()),
        (0, 1200, Flow { count: 1, bytes: 1200 })
    );
    assert_eq!(since.to_string(), "1_200 bytes in 1 copy to the host");
    assert_eq!([before, since].into_iter().sum::<Traffic>(), array.traffic());
    assert_eq!((before - array.traffic()).to_string(), "nothing moved", "never below 0");
    let (_, report) = audit::capture(|| array.host().map(drop));
    assert!(report.is_empty());
    Ok(())
}
