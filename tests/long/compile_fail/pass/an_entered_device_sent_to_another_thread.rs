//! A device may be sent to a thread and entered there.
use resident::Device;

pub(crate) fn main() {
    let device = Device::cpu();
    std::thread::spawn(move || drop(device.enter())).join().unwrap();
}
