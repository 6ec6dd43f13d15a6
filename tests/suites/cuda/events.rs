//! Events of the CUDA backend that programs cannot make: those that the library records without
//! timing; and the priorities of the driver. On the stand-in driver.

use resident::{Device, StreamPriorities};
use resident_backend::{Backend, DeviceKind, EventTiming};
use resident_stand_in::Settings;
use support::own_process;

#[test]
fn the_time_between_two_events_needs_timing_in_both() {
    own_process!();
    resident_stand_in::load(Settings::new()).expect("the stand-in driver loads");
    let gpu = resident_gpu::open(DeviceKind::Cuda, 0).expect("it opens");
    let queue = gpu.new_queue().expect("a stream");
    let [timed, later] = [(); 2].map(|()| queue.record(EventTiming::Enabled).expect("an event"));
    let [untimed, other] = [(); 2].map(|()| queue.record(EventTiming::Disabled).expect("an event"));
    other.synchronize().expect("alive");
    for (event, earlier) in [(&timed, &untimed), (&untimed, &timed), (&other, &untimed)] {
        let refused = event.elapsed_since(&**earlier).expect_err("one has no timing").to_string();
        assert!(refused.contains("both events must be recorded with timing"), "{refused}");
    }
    later.elapsed_since(&*timed).expect("both have timing and are complete");
}

#[test]
fn the_priorities_of_streams_are_those_of_the_driver() {
    own_process!();
    resident_stand_in::load(Settings::new()).expect("the stand-in driver loads");
    let device = Device::cuda(0).expect("it opens");
    let range = device.stream_priorities().expect("the driver tells");
    assert_eq!(range, StreamPriorities { least: 0, greatest: -5 });
    for (asked, given) in [(i32::MIN, -5), (-6, -5), (-5, -5), (-1, -1), (0, 0), (1, 0)] {
        let stream = device.new_stream_with_priority(asked).expect("a stream");
        assert_eq!(stream.priority().expect("the driver tells"), given, "{asked}");
    }
}
