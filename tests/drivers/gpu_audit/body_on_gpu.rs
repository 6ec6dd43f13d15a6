//! A kernel on the stand-in driver's device, whose body is a function of the test.

use resident::{CudaSource, Device, InOut, Kernel, Result};
use resident_stand_in::{Access, Length, Parameter, Settings, load, register};

const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry waits(
	.param .u64 waits_param_0
)
{ ret; }
";

/// The device and the kernel. A driver belongs to a process.
pub(crate) fn device_with(
    settings: Settings,
    body: impl Fn() + Send + Sync + 'static,
) -> Result<(Device, Kernel<(InOut<f32>,)>)> {
    load(settings).expect("the stand-in driver loads");
    let memory = Parameter::Pointer { access: Access::ReadWrite, length: Length::ToEnd };
    register("waits", &[memory], move |_launch| {
        body();
        Ok(())
    });
    // SAFETY: the function above accesses nothing.
    let kernel = unsafe { Kernel::new("waits").cuda(CudaSource::ptx(PTX)) };
    Ok((Device::cuda(0)?, kernel))
}
