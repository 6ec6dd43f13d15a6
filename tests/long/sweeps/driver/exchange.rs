//! The program that exchanges arrays by DLPack, on the GPU backend. In each run another driver call
//! fails.

use super::{OUT_OF_MEMORY, UNKNOWN, sweep, two_devices};
use crate::exchange::run_on;

#[test]
fn each_refused_driver_call_of_an_exchange_can_be_repeated() {
    support::own_process!();
    let [device, _] = two_devices();
    let devices = [device];
    for code in [OUT_OF_MEMORY, UNKNOWN] {
        let swept = sweep(code, 1.., || run_on(&devices, false));
        assert!(swept.told > 20, "{} errors in {} runs", swept.told, swept.runs);
    }
}
