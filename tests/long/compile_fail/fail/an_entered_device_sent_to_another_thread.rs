//! A scope belongs to the thread that entered it.
use resident::Device;

fn main() {
    let here = Device::cpu().enter();
    std::thread::spawn(move || drop(here));
}
