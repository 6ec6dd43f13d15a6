//! The reason why a row or a contender could not be measured.

use std::fmt;

/// The reason, as a sentence for the report.
#[derive(Clone, Debug)]
pub struct Fault(String);

pub type Outcome<T = ()> = Result<T, Fault>;

impl Fault {
    pub fn new(text: impl fmt::Display) -> Self {
        Self(text.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<resident::Error> for Fault {
    fn from(error: resident::Error) -> Self {
        Self::new(error)
    }
}

impl From<resident::cudarc::driver::DriverError> for Fault {
    fn from(error: resident::cudarc::driver::DriverError) -> Self {
        // cudarc's debug form names the result and the driver's description.
        Self::new(format_args!("{error:?}"))
    }
}

impl From<resident::cudarc::nvrtc::result::NvrtcError> for Fault {
    fn from(error: resident::cudarc::nvrtc::result::NvrtcError) -> Self {
        Self::new(format_args!("NVRTC: {error:?}"))
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::new(error)
    }
}

impl From<String> for Fault {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}
