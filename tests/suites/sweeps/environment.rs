//! Settings of the sweeps, from environment variables.

use std::fmt::Debug;
use std::str::FromStr;

/// The number in an environment variable.
pub(crate) fn asked<N: FromStr<Err: Debug>>(variable: &str, usual: N) -> N {
    let text = std::env::var(variable).ok();
    text.map_or(usual, |text| text.parse().expect(variable))
}
