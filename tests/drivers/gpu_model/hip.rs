//! The model on the HIP backend, over the stand-in for HIP.

pub(crate) use support::hip::face;

// Included for each of the two stand-ins: a `Lab` has functions that know their stand-in.
#[allow(clippy::duplicate_mod, reason = "see above")]
#[path = "stand_in.rs"]
mod stand_in;

// As above.
#[allow(clippy::duplicate_mod, reason = "see above")]
#[path = "short_rows.rs"]
mod short_rows;

// As above.
#[allow(clippy::duplicate_mod, reason = "see above")]
#[path = "tiles.rs"]
mod tiles;

/// The programs again, with costs at which all copies of short rows are packed on the device.
#[test]
fn with_short_rows_packed() {
    let output = support::own_process::run(
        "hip::stand_in::programs_do_what_the_reference_says",
        &[("RESIDENT_COPY_CALL_BYTES", "0")],
    );
    support::own_process::assert_success(&output, "the model");
}

/// The programs again, as HIP 5.2: other calls allocate and free. A process has one runtime, so
/// they run in another.
#[test]
fn as_hip_5_without_pools() {
    let output = support::own_process::run(
        "hip::stand_in::programs_do_what_the_reference_says",
        &[(face::OLDER, "1")],
    );
    support::own_process::assert_success(&output, "the model");
}
