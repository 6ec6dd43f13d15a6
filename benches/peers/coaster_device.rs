//! A second device for coaster with its own memory and copies by `memcpy`. Without a GPU coaster
//! has only the host device.

use std::any::Any;

use coaster::device::{Error, IDevice, IMemory, MemorySync};
use coaster::frameworks::native::device::Cpu;
use coaster::frameworks::native::flatbox::FlatBox;
use coaster::frameworks::native::hardware::Hardware;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Second;

pub struct SecondMemory(Box<[u8]>);

impl IMemory for SecondMemory {}

impl IDevice for Second {
    type H = Hardware;
    type M = SecondMemory;

    fn id(&self) -> &isize {
        &1
    }

    fn hardwares(&self) -> &Vec<Hardware> {
        static NONE: Vec<Hardware> = Vec::new();
        &NONE
    }

    fn alloc_memory(&self, size: usize) -> Result<SecondMemory, Error> {
        Ok(SecondMemory(vec![0; size].into_boxed_slice()))
    }
}

impl MemorySync for Second {
    fn sync_in(
        &self,
        own: &mut dyn Any,
        source_device: &dyn Any,
        source: &dyn Any,
    ) -> Result<(), Error> {
        if !source_device.is::<Cpu>() {
            return Err(Error::NoMemorySyncRoute);
        }
        let (Some(own), Some(source)) =
            (own.downcast_mut::<SecondMemory>(), source.downcast_ref::<FlatBox>())
        else {
            return Err(Error::MemorySyncError);
        };
        own.0.copy_from_slice(source.as_slice());
        Ok(())
    }

    fn sync_out(
        &self,
        own: &dyn Any,
        target_device: &dyn Any,
        target: &mut dyn Any,
    ) -> Result<(), Error> {
        if !target_device.is::<Cpu>() {
            return Err(Error::NoMemorySyncRoute);
        }
        let (Some(own), Some(target)) =
            (own.downcast_ref::<SecondMemory>(), target.downcast_mut::<FlatBox>())
        else {
            return Err(Error::MemorySyncError);
        };
        target.as_mut_slice().copy_from_slice(&own.0);
        Ok(())
    }
}
