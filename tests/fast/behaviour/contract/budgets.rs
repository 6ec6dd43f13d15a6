//! Budgets for copies, and reports as JSON.

use resident::Budget;
use resident::audit::{self, Direction};
use support::prelude::*;

#[test]
fn a_budget_that_is_kept_gives_the_value() -> Result<()> {
    let device = lab();
    let budget = Budget::new().to_device(40).to_host(0).between_devices(0);
    let array = SmartArray::from(vec![1.0_f32; 10]);
    assert_eq!(budget.enforce(|| array.gpu_on(&device.stream()).map(|there| there.len()))??, 10);
    assert_eq!(budget.enforce(|| array.host().map(|here| here.sum()))??, 10.0);
    assert_eq!(Budget::new().to_host(0).enforce(|| 3)?, 3, "the other directions are free");
    let failed = budget.enforce(|| SmartArray::<f32, _>::uninit(3).host().map(drop))?;
    assert!(matches!(failed, Err(Error::Uninitialised { .. })), "{failed:?}");
    Ok(())
}

#[test]
fn over_budget_lists_the_call_sites_that_spent_it_the_largest_first() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let mut arrays = [10, 1000, 100].map(|len| SmartArray::from(vec![1_u8; len]));
    arrays[1].set_name("largest");
    let (first, call) = (line!() + 3, line!() + 1);
    let outcome = Budget::new().to_device(1099).to_host(1000).between_devices(0).enforce(|| {
        // One line for each array.
        arrays[0].prefetch(&stream)?;
        arrays[1].prefetch(&stream)?;
        arrays[2].prefetch(&stream)?;
        drop(arrays[1].gpu_mut_on(&stream)?);
        arrays[1].host().map(drop)
    });
    let Err(error @ Error::OverBudget { .. }) = outcome else { panic!("1,110 bytes") };
    let Error::OverBudget { spent, sites, .. } = &error else { unreachable!("it was matched") };
    assert_eq!(spent, "1_110 bytes to_device of at most 1_099");
    let lines = [first + 1, first + 2, first].map(|line| format!("{}:{line}:", file!()));
    assert_eq!(sites.len(), 3, "only this direction: {sites:?}");
    assert!(sites.iter().zip(&lines).all(|(site, line)| site.starts_with(line)), "{sites:?}");
    assert!(sites[0].contains("\"largest\", 1_000 bytes in 1 copy to_device for prefetch"));
    let text = error.to_string();
    assert!(text.contains(&format!("(called at {}:{call}:", file!())), "{text}");
    assert!(text.contains(&sites[2]), "{text}");
    Ok(())
}

#[test]
fn a_budget_counts_scopes_and_is_counted_by_captures() {
    let device = lab();
    let (outcome, report) = audit::capture(|| {
        Budget::new().to_device(9).enforce(|| {
            let scope = audit::scope();
            let upload = || SmartArray::from(vec![1_u8; 10]).prefetch(&device.stream());
            std::thread::scope(|threads| threads.spawn(|| scope.run(upload)).join())
        })
    });
    assert!(matches!(outcome, Err(Error::OverBudget { .. })));
    assert_eq!(report.traffic().to_device.bytes, 10);
}

/// Two arrays, each copied to two devices and back: 10 and 100 bytes.
fn copies_of_two_arrays(devices: &[Device; 2]) -> Result<()> {
    let mut arrays = [SmartArray::from(vec![1_u8; 10]), SmartArray::from(vec![1_u8; 100])];
    arrays[0].set_name("small");
    arrays[1].set_name("large");
    for array in &mut arrays {
        for device in devices {
            drop(array.gpu_mut_on(&device.stream())?);
            array.host_mut().map(drop)?;
        }
    }
    Ok(())
}

#[test]
fn only_the_named_array_and_device_spend_a_budget() -> Result<()> {
    let devices = [lab(), lab()];
    let work = || copies_of_two_arrays(&devices);
    let exactly = |bytes| Budget::new().to_device(bytes).to_host(bytes).exactly();
    exactly(220).enforce(work)??;
    exactly(20).of_array("small").enforce(work)??;
    exactly(200).of_array("large").enforce(work)??;
    exactly(0).of_array("another").enforce(work)??;
    exactly(110).on_device(&devices[0]).enforce(work)??;
    exactly(110).on_device(&devices[1]).enforce(work)??;
    exactly(0).on_device(&lab()).enforce(work)??;
    exactly(10).of_array("small").on_device(&devices[1]).enforce(work)??;
    let refused = exactly(19).of_array("small").enforce(work);
    let Err(Error::OverBudget { spent, sites, .. }) = refused else { panic!("{refused:?}") };
    assert!(spent.contains("20 bytes to_device instead of 19"), "{spent}");
    assert!(sites.iter().all(|site| site.contains("small")), "{sites:?}");
    Ok(())
}

/// A copy from one device to another counts for both, and each direction has limits of its own.
#[test]
fn copies_between_devices_count_for_both_and_copies_are_counted() -> Result<()> {
    let devices = [lab(), lab()];
    let work = || {
        let mut array = SmartArray::from(vec![1_u8; 10]);
        drop(array.gpu_mut_on(&devices[0].stream())?);
        array.prefetch(&devices[1].stream())
    };
    let between = |bytes| Budget::new().between_devices(bytes).exactly();
    between(10).enforce(work)??;
    between(10).on_device(&devices[0]).enforce(work)??;
    between(10).on_device(&devices[1]).enforce(work)??;
    between(0).on_device(&lab()).enforce(work)??;
    let count = |direction, copies| Budget::new().copies(direction, copies);
    count(Direction::BetweenDevices, 1).enforce(work)??;
    count(Direction::ToDevice, 1).exactly().enforce(work)??;
    count(Direction::ToHost, 0).enforce(work)??;
    let refused = count(Direction::BetweenDevices, 0).enforce(work);
    assert!(matches!(refused, Err(Error::OverBudget { .. })), "{refused:?}");
    let refused = count(Direction::ToHost, 1).exactly().enforce(work);
    assert!(matches!(refused, Err(Error::OverBudget { .. })), "{refused:?}");
    Ok(())
}

#[test]
fn a_report_is_json_with_totals_and_sites() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1_u8; 10]).named("a \"b\" \\ \n\u{e9}");
    let (outcome, report) = audit::capture(|| -> Result<()> {
        array.prefetch(&device.stream())?;
        drop(array.gpu_mut_on(&device.stream())?);
        array.host().map(drop)
    });
    outcome?;
    let sites = report.sites();
    let object = |number: usize, rest: &str| {
        let (site, name) = (sites[number].location, r#""a \"b\" \\ \u000aé""#);
        format!(r#"{{"site": "{site}", "array": {name}, {rest}}}"#)
    };
    let upload = format!(
        r#""direction": "to_device", "device": "{device}", "source": null, "cause": "prefetch", "#
    ) + r#""count": 1, "bytes": 10, "stale_since": null, "never_there": true"#;
    let stale = sites[1].stale_since.expect("the device wrote it");
    let download =
        format!(
            r#""direction": "to_host", "device": "{device}", "source": null, "cause": "host", "#
        ) + &format!(r#""count": 1, "bytes": 10, "stale_since": "{stale}", "never_there": false"#);
    let one = r#"{"count": 1, "bytes": 10}"#;
    let none = r#"{"count": 0, "bytes": 0}"#;
    let expected = format!(
        r#"{{"version": 1, "to_device": {one}, "to_host": {one}, "between_devices": {none}, "#
    ) + &format!(
        r#""avoided": {none}, "padding": {none}, "sites": [{}, {}], "launches": 0, "#,
        object(0, &upload),
        object(1, &download)
    );
    let json = report.to_json();
    assert!(json.starts_with(&expected), "{json}\n{expected}");
    let ((), empty) = audit::capture(|| ());
    assert!(empty.to_json().contains(r#""sites": [], "#));
    Ok(())
}
