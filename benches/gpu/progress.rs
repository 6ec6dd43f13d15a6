//! The steps of the example tell how far they are. Here nobody looks, also where the output is a
//! terminal: looking takes events.

use resident::{Result, Stream};

pub(crate) struct Progress;

impl Progress {
    pub(crate) fn follow(&self, _label: &'static str, _stream: &Stream) -> Result<()> {
        Ok(())
    }
}
