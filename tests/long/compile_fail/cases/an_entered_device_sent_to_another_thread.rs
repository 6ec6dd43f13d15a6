//! A device may be sent to a thread and entered there.
//! Wrong: a scope belongs to the thread that entered it.
//~ Device::cpu() => Device::cpu().enter()
//~ device.enter())).join().unwrap() => device))
use resident::Device;

pub(crate) fn main() {
    let device = Device::cpu();
    std::thread::spawn(move || drop(device.enter())).join().unwrap();
}
