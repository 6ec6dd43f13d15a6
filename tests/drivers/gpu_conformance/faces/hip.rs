//! The stand-in for AMD's HIP, as the suite uses it.

pub(crate) mod face {
    pub(crate) use resident_stand_in_hip::*;

    use resident::{Device, Result};

    pub(crate) use crate::hip::settings;

    /// Driver calls that create an object, with the call that destroys it.
    pub(crate) const PAIRS: [(&[&str], &str); 7] = [
        (&["hipMallocFromPoolAsync"], "hipFreeAsync"),
        (&["hipMalloc", "hipMallocManaged"], "hipFree"),
        (&["hipHostMalloc"], "hipHostFree"),
        (&["hipHostRegister"], "hipHostUnregister"),
        (&["hipMemAddressReserve"], "hipMemAddressFree"),
        (&["hipMemCreate"], "hipMemRelease"),
        (&["hipMemMap"], "hipMemUnmap"),
    ];
    pub(crate) const STREAMS: (&str, &str) = ("hipStreamCreateWithFlags", "hipStreamDestroy");
    pub(crate) const HOST_FUNCTION: &str = "hipLaunchHostFunc";

    pub(crate) fn load_compiler() {
        resident_stand_in_hiprtc::load().unwrap_or_else(|fault| panic!("{fault}"));
    }

    pub(crate) fn device(ordinal: usize) -> Result<Device> {
        Device::hip(ordinal)
    }

    pub(crate) fn device_count() -> usize {
        (0..).take_while(|ordinal| device(*ordinal).is_ok()).count()
    }
}

// Included for each of the two stand-ins: its statics say what the process knows of one of them.
#[allow(clippy::duplicate_mod, reason = "see above")]
#[path = "rig.rs"]
pub(crate) mod rig;
