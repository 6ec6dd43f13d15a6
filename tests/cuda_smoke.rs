//! smoke
use resident::{Device, SmartArray, ndarray::{Array2, s}};
use resident_stand_in as stand_in;

#[test]
fn smoke() {
    stand_in::load(stand_in::Settings::default()).unwrap();
    let gpu = Device::cuda(0).unwrap();
    println!("{gpu} {:?} {:?} {:?}", gpu.capacity(), gpu.memory(), Device::all());
    let _here = gpu.enter();
    stand_in::take_calls();
    let mut a = SmartArray::from(Array2::from_shape_fn((40, 50), |(i, j)| (i * 50 + j) as f32));
    drop(a.gpu().unwrap());
    drop(a.gpu_mut().unwrap());
    println!("{}", a.slice(s![3..30, 4..9]).host().unwrap().sum());
    println!("{}", a.host().unwrap().sum());
    a.fill(2.5).unwrap();
    drop(a.gpu_mut().unwrap());
    println!("{}", a.host().unwrap().sum());
    let mut b = SmartArray::<f64, _>::full((30, 30), 1.5);
    drop(b.gpu_mut().unwrap());
    println!("{}", b.host().unwrap().sum());
    let big = SmartArray::from(vec![1_u8; 40_000_000]);
    let mut copy = SmartArray::<u8, _>::uninit(40_000_000);
    copy.assign_on(&gpu.stream(), &big).unwrap();
    println!("{}", copy.host().unwrap().iter().map(|x| *x as u64).sum::<u64>());
    drop((a, b, big, copy));
    gpu.synchronize().unwrap();
    for call in stand_in::take_calls() { println!("{call}"); }
    println!("{:?} {:?}", stand_in::hazards(), stand_in::notes());
    println!("{:?}", gpu.memory());
}
