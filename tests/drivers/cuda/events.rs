//! Events of the CUDA backend that programs cannot make: those that the library records without
//! timing; the priorities of the driver; the stream of a short path. On the stand-in driver.

use resident::ndarray::Ix2;
use resident::{Device, Grid, InOut, Kernel, Result, SmartArray, StreamPriorities};
use resident_backend::{Backend, DeviceKind, EventTiming};
use resident_stand_in::Settings;
use support::cuda::driver;
use support::in_own_process;

#[test]
fn the_time_between_two_events_needs_timing_in_both() {
    in_own_process!(resident_stand_in::load(Settings::new()).expect("the stand-in driver loads"));
    let gpu = resident_gpu::open(DeviceKind::Cuda, 0).expect("it opens");
    let stream = gpu.new_stream(None).expect("a stream");
    let [timed, later] = [(); 2].map(|()| stream.record(EventTiming::Enabled).expect("an event"));
    let [untimed, other] =
        [(); 2].map(|()| stream.record(EventTiming::Disabled).expect("an event"));
    other.synchronize().expect("alive");
    let (first, second) = ("the earlier event was recorded", "the later event was recorded");
    for (event, earlier, expected) in [
        (&timed, &untimed, &[first][..]),
        (&untimed, &timed, &[second]),
        (&other, &untimed, &[first, second]),
    ] {
        let refused = event.elapsed_since(&**earlier).expect_err("one has no timing").to_string();
        let named = [first, second].map(|text| refused.contains(&format!("{text} without timing")));
        assert_eq!(named, [first, second].map(|text| expected.contains(&text)), "{refused}");
    }
    later.elapsed_since(&*timed).expect("both have timing and are complete");
}

#[test]
fn the_priorities_of_streams_are_those_of_the_driver() {
    in_own_process!(resident_stand_in::load(Settings::new()).expect("the stand-in driver loads"));
    let device = Device::cuda(0).expect("it opens");
    let range = device.stream_priorities().expect("the driver tells");
    assert_eq!(range, StreamPriorities { least: 0, greatest: -5 });
    for (asked, given) in [(i32::MIN, -5), (-6, -5), (-5, -5), (-1, -1), (0, 0), (1, 0)] {
        let stream = device.new_stream_with_priority(asked).expect("a stream");
        assert_eq!(stream.priority().expect("the driver tells"), given, "{asked}");
    }
}

/// Behind repeated launches, `get` copies without a look at the array's state.
#[test]
fn an_element_behind_repeated_launches_is_read_on_the_entered_stream() -> Result<()> {
    let device = in_own_process!(driver::open(Settings::new(), 1).remove(0));
    // SAFETY: the stand-in's host function accesses only the view's elements.
    let add = unsafe { Kernel::<(u32, InOut<u32, Ix2>)>::new("add").cuda(driver::code("add")) };
    let (stream, mut array) = (device.new_stream()?, SmartArray::<u32, _>::zeros((4, 4)));
    for _ in 0..4 {
        add.launch_on(&device.stream(), Grid::cover(1), (1, &mut array))?;
    }
    let streams_of_read = || -> Result<Vec<u64>> {
        resident_stand_in::take_calls();
        assert_eq!(array.get((1, 1))?, 4);
        let calls = resident_stand_in::take_calls().into_iter();
        let copies = calls.filter(|call| call.name.starts_with("cuMemcpyDtoH"));
        Ok(copies.map(|call| call.stream).collect())
    };
    let usual = streams_of_read()?;
    let _scope = stream.enter();
    let entered = streams_of_read()?;
    assert_eq!((usual.len(), entered.len()), (1, 1));
    assert_ne!(usual, entered);
    Ok(())
}
