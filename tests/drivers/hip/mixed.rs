//! A machine with GPUs of both vendors: arrays move between them by way of the host, exactly.

use proptest::prelude::{ProptestConfig, any, prop};
use proptest::prop_assert_eq;
use proptest::test_runner::TestRunner;
use resident::ndarray::{Array2, Ix2, s};
use resident::{Device, DeviceKind, Grid, InOut, Kernel, Result, SmartArray, Traffic, audit};
use support::{in_own_process, own_process};

use super::open;

/// An NVIDIA GPU and an AMD GPU.
fn both() -> [Device; 2] {
    let amd = open(resident_stand_in_hip::Settings::new());
    resident_stand_in::load(resident_stand_in::Settings::new()).expect("the driver loads");
    resident_stand_in_nvrtc::load().expect("NVRTC loads");
    [Device::cuda(0).expect("it opens"), amd]
}

#[test]
fn both_vendors_devices_are_listed_nvidias_first() {
    let [nvidia, amd] = in_own_process!(both());
    assert_eq!(Device::all(), [nvidia.clone(), amd.clone(), Device::cpu()]);
    assert_eq!([nvidia.kind(), amd.kind()], [DeviceKind::Cuda, DeviceKind::Hip]);
    assert_eq!(Device::current().expect("there are two"), nvidia);
    assert!(amd.cuda_context().is_err() && amd.stream().try_cudarc().is_err());
    assert!(nvidia.stream().wait(&amd.stream().record().expect("an event")).is_ok());
}

#[test]
fn contents_move_by_way_of_the_host() {
    let [nvidia, amd] = in_own_process!(both());
    let mut array = SmartArray::<u32, _>::uninit((100, 50));
    array.gpu_overwrite_on(&nvidia.stream()).map(drop).expect("memory");
    array.host_overwrite().expect("memory").fill(7);
    drop(array.gpu_mut_on(&nvidia.stream()).expect("it uploads"));
    drop(array.gpu_mut_on(&amd.stream()).expect("it moves"));
    let traffic = array.traffic();
    assert_eq!((traffic.to_device.bytes, traffic.to_host.bytes), (40_000, 20_000));
    assert_eq!(traffic.between_devices.bytes, 0);
    assert_eq!(array.host().expect("a download").sum(), 7 * 5000);
}

fn increment(array: &mut SmartArray<u32, Ix2>, device: &Device) -> Result<()> {
    type Bump = (InOut<u32, Ix2>,);
    // SAFETY: each thread writes one element of the view.
    let kernel = unsafe {
        Kernel::<Bump>::new("bump").cuda(
            r#"extern "C" __global__ void bump(resident::View2<unsigned> x) {
                long long i = resident::thread();
                if (i < x.size()) x.at(i) += 1;
            }"#,
        )
    };
    let mut part = array.slice_mut(s![2.., ..;2]);
    kernel.launch_on(&device.stream(), Grid::cover(part.len()), (&mut part,))
}

/// Random programs over both GPUs, the embedded device and the host give the plain array's
/// contents, whatever was pinned by which vendor's driver.
#[test]
fn random_programs_over_both_vendors() {
    own_process!();
    let [nvidia, amd] = both();
    let devices = [nvidia, amd, Device::cpu()];
    let mut runner = TestRunner::new(ProptestConfig::with_cases(48));
    let steps = prop::collection::vec((0..3_usize, any::<bool>()), 1..12);
    let outcome = runner.run(&(steps, 0..3_usize), |(steps, pin)| {
        let mut plain = Array2::<u32>::from_elem((8, 9), 5);
        let mut array = SmartArray::from(plain.clone());
        if pin < 2 {
            let _here = devices[pin].enter();
            array.page_lock().expect("it can be pinned");
        }
        let total = || devices.iter().fold(Traffic::default(), |sum, one| sum + one.traffic());
        let before = total();
        let (outcome, report) = audit::capture(|| {
            for (device, reads) in steps {
                increment(&mut array, &devices[device]).expect("it runs");
                plain.slice_mut(s![2.., ..;2]).mapv_inplace(|x| x + 1);
                if reads {
                    prop_assert_eq!(&*array.host().expect("a download"), &plain);
                }
            }
            Ok(())
        });
        outcome?;
        // All three count the same copies.
        prop_assert_eq!(report.traffic(), array.traffic());
        prop_assert_eq!(array.traffic(), total() - before);
        prop_assert_eq!(&*array.host().expect("a download"), &plain);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
