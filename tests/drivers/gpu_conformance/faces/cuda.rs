//! The stand-in for CUDA's driver, as the suite uses it.

pub(crate) mod face {
    pub(crate) use resident_stand_in::*;

    use resident::{Device, Result};

    pub(crate) use crate::stand_in::settings;

    /// Driver calls that create an object, with the call that destroys it.
    pub(crate) const PAIRS: [(&[&str], &str); 7] = [
        (&["cuMemAllocFromPoolAsync"], "cuMemFreeAsync"),
        (&["cuMemAlloc_v2", "cuMemAllocManaged"], "cuMemFree_v2"),
        (&["cuMemHostAlloc"], "cuMemFreeHost"),
        (&["cuMemHostRegister_v2"], "cuMemHostUnregister"),
        (&["cuMemAddressReserve"], "cuMemAddressFree"),
        (&["cuMemCreate"], "cuMemRelease"),
        (&["cuMemMap"], "cuMemUnmap"),
    ];
    pub(crate) const STREAMS: (&str, &str) = ("cuStreamCreate", "cuStreamDestroy_v2");
    pub(crate) const HOST_FUNCTION: &str = "cuLaunchHostFunc";

    pub(crate) fn load_compiler() {
        resident_stand_in_nvrtc::load().unwrap_or_else(|fault| panic!("{fault}"));
        if crate::faces::is_poorer() {
            resident_stand_in_nvrtc::set_version(11, 4);
        }
    }

    pub(crate) fn device(ordinal: usize) -> Result<Device> {
        Device::cuda(ordinal)
    }

    pub(crate) fn device_count() -> usize {
        (0..).take_while(|ordinal| device(*ordinal).is_ok()).count()
    }
}

// Included for each of the two stand-ins: its statics say what the process knows of one of them.
#[allow(clippy::duplicate_mod, reason = "see above")]
#[path = "rig.rs"]
pub(crate) mod rig;
