//! The two stand-ins, as the suite uses them.

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(feature = "hip")]
pub(crate) mod hip;
