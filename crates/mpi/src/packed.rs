//! The elements of one part, contiguous in row-major order: what MPI reads and writes.
//!
//! They are an array of their own. To pack is to assign the part to it, where the part's contents
//! are newest, on a stream; what a device has packed then comes down in the same stream. MPI uses
//! the array's host memory, whose address is constant while the array lives.

use resident::ndarray::{ArrayRef, Dimension};
use resident::{
    AsView, AsViewMut, Element, PinnedArray, SmartArray, SmartView, SmartViewMut, Stream, Validity,
};

use crate::error::Result;

/// How often the memory is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// It is ordinary memory, as pinning would take longer than it saves.
    Once,
    /// It is pinned for the current device.
    Repeated,
}

/// The array.
pub(crate) enum Packed<T: Element, D: Dimension> {
    Ordinary(SmartArray<T, D>),
    Pinned(PinnedArray<T, D>),
}

impl<T: Element, D: Dimension> Packed<T, D> {
    /// Without contents.
    pub(crate) fn new(shape: D, used: Use) -> Result<Self> {
        Ok(match used {
            Use::Once => Self::Ordinary(SmartArray::uninit(shape).named("message")),
            Use::Repeated => Self::Pinned(PinnedArray::uninit(shape)?.named("message")),
        })
    }

    /// Queues the copy of `part`, which has this shape: on `stream` where the part is newest on its
    /// device, and by the host, before this returns, where it is newest there.
    #[track_caller]
    pub(crate) fn pack_on(&mut self, stream: &Stream, part: &impl AsView<T, D>) -> Result<()> {
        let _here = stream.enter();
        self.view_mut().assign(&part.as_view())?;
        self.view().prefetch_host_on(stream)?;
        Ok(())
    }

    /// Copies elements of the host.
    #[track_caller]
    pub(crate) fn pack_from_host(&mut self, elements: &ArrayRef<T, D>) -> Result<()> {
        self.view_mut().host_overwrite()?.assign(elements);
        Ok(())
    }

    /// Waits until the elements are on the host, not for later work of the stream, and returns
    /// their address, which is constant. They stay valid there until the array is written.
    pub(crate) fn ready(&self) -> Result<*const T> {
        Ok(self.view().host()?.as_ptr())
    }

    /// Makes the host's copy the newest, for MPI to write it, once queued work that reads it is
    /// done. Returns its address, which is constant.
    pub(crate) fn overwrite(&mut self) -> Result<*mut T> {
        Ok(self.view_mut().host_overwrite()?.as_mut_ptr())
    }

    /// Copies the elements to `part`, which has this shape: on `stream` if the part has a copy on
    /// its device, else on the host.
    #[track_caller]
    pub(crate) fn unpack_on(&self, stream: &Stream, part: &mut impl AsViewMut<T, D>) -> Result<()> {
        let mut part = part.as_view_mut();
        if part.residency().on(&stream.device()) == Validity::Absent {
            part.assign(&self.view())?;
        } else {
            part.assign_on(stream, &self.view())?;
        }
        Ok(())
    }

    /// An array of the elements.
    #[track_caller]
    pub(crate) fn into_array(self) -> Result<SmartArray<T, D>> {
        match self {
            Self::Ordinary(array) => Ok(array),
            Self::Pinned(array) => Ok(SmartArray::from(array.into_array()?)),
        }
    }

    pub(crate) fn view(&self) -> SmartView<'_, T, D> {
        match self {
            Self::Ordinary(array) => array.view(),
            Self::Pinned(array) => array.view(),
        }
    }

    fn view_mut(&mut self) -> SmartViewMut<'_, T, D> {
        match self {
            Self::Ordinary(array) => array.view_mut(),
            Self::Pinned(array) => array.view_mut(),
        }
    }
}

/// The stream of calls that name none.
pub(crate) fn current_stream() -> Result<Stream> {
    // The guard of an array without elements, for which nothing is allocated or moved.
    Ok(SmartArray::<u8, _>::uninit(0).gpu()?.stream())
}
