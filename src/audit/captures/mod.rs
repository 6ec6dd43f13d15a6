//! What captures, scopes and ledgers keep of what was recorded.

pub(super) mod capture;
pub(super) mod device_times;
pub(super) mod instrumented;
pub(super) mod latest;
pub(super) mod ledger;
pub(super) mod steps;
pub(super) mod timed;
