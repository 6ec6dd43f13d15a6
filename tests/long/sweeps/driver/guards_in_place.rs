//! Guards and the uses behind them, in any sequence, on the GPU backend: the other device is a GPU
//! too, or of another kind.

use support::prelude::*;

use super::{assert_no_complaint, two_devices};
use crate::guards_in_place::{IN_PLACE, run_all, sample};

#[test]
fn guards_and_uses_in_any_sequence_end() {
    support::own_process!();
    let devices = two_devices();
    run_all(&devices[0], &devices[1], &IN_PLACE, sample(3));
    run_all(&devices[0], &Device::cpu(), &IN_PLACE, sample(4));
    assert_no_complaint("any sequence");
}
