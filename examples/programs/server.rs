//! A server of eight threads: each answers requests on a stream of its own with weights that all
//! of them share, which are uploaded once. It prints what was copied.

use std::thread;

use resident::ndarray::{Array1, Array2, Ix2};
use resident::ops;
use resident::prelude::*;

const THREADS: usize = 8;
const REQUESTS: usize = 100;

/// Answers the requests of one thread: products of the weights and the requests' numbers.
fn serve(weights: &SmartArray<f32, Ix2>, device: &Device, thread: usize) -> Result<f32> {
    let stream = device.new_stream()?;
    let (outputs, inputs) = weights.dim();
    let mut answer = SmartArray::<f32, _>::uninit(outputs).named("answer");
    let mut sum = 0.0;
    for request in 0..REQUESTS {
        let numbers = Array1::from_elem(inputs, (thread + request) as f32);
        ops::matmul_on(&stream, weights, &SmartArray::from(numbers).named("request"), &mut answer)?;
        sum += answer.host()?.sum();
    }
    Ok(sum)
}

fn main() -> Result<()> {
    let weights = Array2::from_shape_fn((64, 256), |(i, j)| ((i + j) % 3) as f32);
    let weights = SmartArray::from(weights).named("weights");
    let device = Device::current()?;
    let sums = thread::scope(|scope| {
        let (weights, device) = (&weights, &device);
        let serve = |thread| scope.spawn(move || serve(weights, device, thread));
        let threads: Vec<_> = (0..THREADS).map(serve).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    let sums: Vec<f32> = Result::from_iter::<Vec<Result<f32>>>(sums)?;
    println!("{} requests, answers of {}", THREADS * REQUESTS, sums.iter().sum::<f32>());
    println!("the weights: {}\nall arrays: {}", weights.traffic(), device.traffic());
    Ok(())
}
