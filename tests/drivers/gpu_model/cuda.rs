//! The model on the CUDA backend, over the stand-in driver.

pub(crate) use support::cuda::face;

// Included for each of the two stand-ins: a `Lab` has functions that know their stand-in.
#[path = "stand_in.rs"]
mod stand_in;

// As above.
#[path = "short_rows.rs"]
mod short_rows;

// As above.
#[path = "tiles.rs"]
mod tiles;

/// The programs again, with costs at which all copies of short rows are packed on the device.
#[test]
fn with_short_rows_packed() {
    let output = support::own_process::run(
        "cuda::stand_in::programs_do_what_the_reference_says",
        &[("RESIDENT_COPY_CALL_BYTES", "0")],
    );
    support::own_process::assert_success(&output, "the model");
}
