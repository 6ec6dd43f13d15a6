//! The `tracing` events of device memory. In processes of their own, since a subscriber belongs to
//! the process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use support::prelude::*;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::{double, grid, ones};

/// One event.
#[derive(Clone, Debug, Default, PartialEq)]
struct Change {
    change: String,
    bytes: i64,
    array: String,
    device: String,
    site: Option<String>,
}

impl Visit for Change {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "site" {
            self.site = Some(format!("{value:?}"));
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        assert_eq!(field.name(), "bytes");
        self.bytes = value;
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "change" => self.change = value.to_owned(),
            "array" => self.array = value.to_owned(),
            "device" => self.device = value.to_owned(),
            other => panic!("{other}"),
        }
    }
}

/// The events so far.
#[derive(Clone, Default)]
struct Changes(Arc<Mutex<Vec<Change>>>);

impl<S: tracing::Subscriber> Layer<S> for Changes {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() == "resident::memory" {
            let mut change = Change::default();
            event.record(&mut change);
            self.0.lock().expect("no panic").push(change);
        }
    }
}

impl Changes {
    fn take(&self) -> Vec<Change> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }

    fn seen<T>(&self, run: impl FnOnce() -> T) -> T {
        let subscriber = tracing_subscriber::registry().with(self.clone());
        tracing::subscriber::with_default(subscriber, run)
    }
}

/// An event of this line of this file; none of a drop.
fn change(change: &str, array: &str, device: &Device, line: Option<u32>) -> Change {
    let site = line.map(|line| format!("{}:{line}:", file!()));
    let (change, array, device) = (change.to_owned(), array.to_owned(), device.name());
    Change { change, bytes: 40, array, device, site }
}

fn without_columns(changes: Vec<Change>) -> Vec<Change> {
    let without = |site: String| site.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    changes.into_iter().map(|one| Change { site: one.site.map(without), ..one }).collect()
}

#[test]
fn each_change_of_device_memory_is_one_event_with_all_fields() -> Result<()> {
    own_process!();
    let (device, changes) = (Device::emulated(Emulation::new().memory(90)), Changes::default());
    let stream = device.stream();
    let line = changes.seen(|| -> Result<u32> {
        let [mut a, mut b, c] = ["a", "b", "c"].map(|name| ones(10).named(name));
        let line = line!();
        double().launch_on(&stream, grid(), (&mut a,))?;
        drop(b.gpu_overwrite_on(&stream)?); // copies nothing
        drop(a.gpu_on(&stream)?); // no change
        c.prefetch(&stream)?; // evicts the second, of which only the device has the contents
        a.release_on(&device)?;
        a.release_on(&device)?; // no change
        drop(c);
        Ok(line)
    })?;
    let at = |offset| Some(line + offset);
    let expected = [
        change("allocation", "a", &device, at(1)),
        change("allocation", "b", &device, at(2)),
        change("eviction", "b", &device, at(4)),
        change("allocation", "c", &device, at(4)),
        change("free", "a", &device, at(5)),
        change("free", "c", &device, None),
    ];
    assert_eq!(without_columns(changes.take()), expected);
    Ok(())
}

#[test]
fn memory_of_others_is_taken_over_and_given_back() -> Result<()> {
    own_process!();
    let (device, changes) = (Device::cpu(), Changes::default());
    let mut owner = vec![1.0_f32; 10];
    let address = owner.as_mut_ptr().expose_provenance() as u64;
    let line = line!() + 3;
    changes.seen(|| {
        // SAFETY: the vector keeps the ten elements, which nothing else uses.
        unsafe { DeviceArray::<f32, _>::from_device_memory(&device, address, 10, owner) }.map(drop)
    })?;
    let seen = without_columns(changes.take());
    let expected = ["allocation", "free"].map(|what| change(what, &seen[0].array, &device, None));
    assert_eq!(seen[0].site, change("", "", &device, Some(line)).site);
    assert_eq!([Change { site: None, ..seen[0].clone() }, seen[1].clone()], expected);
    Ok(())
}

/// A program that allocates, evicts, releases and drops in many ways.
fn use_memory(device: &Device) -> Result<()> {
    let (stream, other) = (device.stream(), device.new_stream()?);
    let _here = stream.enter();
    let mut arrays: Vec<_> = (0..4).map(|_| ones(10)).collect();
    for round in 0..12 {
        double().launch_on(&stream, grid(), (&mut arrays[round % 4],))?;
        if round % 5 == 4 {
            arrays[round % 4] = arrays[(round + 1) % 4].try_clone()?;
        }
    }
    drop(arrays.remove(0).into_array()?);
    let table = arrays.remove(0).into_device(device)?;
    let copy = table.copy_to_host_on(&other)?;
    drop(table.into_device_memory()?);
    copy.wait()?;
    let mut mapped: SmartArray<f32, _> = MappedArray::from_array(ones(10).host()?.view())?.into();
    double().launch_on(&other, grid(), (&mut mapped,))?;
    let _host = DeviceArray::<f32, _>::zeros_on(&other, 5)?.copy_to_host()?;
    device.set_memory_limit(Some(0))
}

#[test]
fn what_is_allocated_is_freed_or_evicted() {
    own_process!();
    for emulation in [Emulation::new(), Emulation::new().seed(1)] {
        let (device, changes) = (Device::emulated(emulation.memory(130)), Changes::default());
        changes.seen(|| use_memory(&device)).expect("it fits");
        let changes = changes.take();
        let of = |kind: &'static str| changes.iter().filter(move |change| change.change == kind);
        let bytes = |kind| of(kind).map(|change| change.bytes).sum::<i64>();
        assert_eq!(bytes("allocation"), bytes("free") + bytes("eviction"), "{changes:#?}");
        assert_eq!((of("eviction").count(), of("free").count()), (6, 5), "{changes:#?}");
    }
}

/// A subscriber that panics at each event of memory.
struct Broken;

impl<S: tracing::Subscriber> Layer<S> for Broken {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        assert_ne!(event.metadata().target(), "resident::memory", "it is broken");
    }
}

/// An allocation's event unwinds the call; that of a drop does not, nor one in an unwind.
#[test]
fn a_subscriber_that_panics_leaves_no_memory_in_use() -> Result<()> {
    own_process!();
    let device = Device::emulated(Emulation::new().memory(90));
    let stream = device.stream();
    let mut arrays: Vec<_> = (0..3).map(|_| ones(10)).collect();
    let subscriber = tracing_subscriber::registry().with(Broken);
    tracing::subscriber::with_default(subscriber, || {
        for array in &mut arrays {
            let launch = || double().launch_on(&stream, grid(), (&mut *array,));
            catch_unwind(AssertUnwindSafe(launch)).expect_err("the allocation's event");
        }
        drop(arrays.pop());
        assert_eq!(arrays[0].residency().on(&device), Absent, "it was evicted");
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _dropped = arrays;
            std::panic::panic_any("the program's");
        }));
        let panic = unwound.expect_err("it unwinds");
        assert_eq!(panic.downcast_ref(), Some(&"the program's"));
    });
    device.synchronize()?;
    assert_eq!(device.memory().in_use, 0);
    Ok(())
}
