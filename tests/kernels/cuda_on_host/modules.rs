//! Kernels of one source share its variables, which the host reads and writes.

use resident::ndarray::Ix1;
use resident::{
    CudaSource, Device, Emulation, Error, Grid, In, InOut, Kernel, Result, Signature, SmartArray,
};

use crate::{checking, device};

const SOURCE: &str = r#"
    __constant__ float coef[3] = {1, 1, 1};
    __device__ int calls;
    static __constant__ float hidden[2];
    namespace ns { __device__ unsigned long long total; }
    __global__ void count(int *out) { out[0] = atomicAdd(&calls, 1); }
    extern "C" __global__ void line(float *x) {
        x[threadIdx.x] = coef[0] + coef[1] * x[threadIdx.x] + hidden[1];
        if (threadIdx.x == 0) { ++calls; ns::total += 5; }
    }
    template <typename T> __global__ void last(T *x) { x[0] = coef[2]; ++calls; }

    __managed__ int met;
    extern "C" __global__ void meet(int *out) { out[0] = ++met; }
    namespace { __constant__ int scale = 2; }
    namespace ns { static __constant__ int offset = 3; }
    extern "C" __global__ void scaled(int *x) { x[0] = scale * x[0] + ns::offset; }
    extern "C" __global__ void f(float n, const int *x, resident::View1<double> y) {}
"#;

/// A kernel of a clone of a source.
fn of<S: Signature>(source: &CudaSource, name: &str) -> Kernel<S> {
    // SAFETY: the kernels of this suite access as many elements as there are threads.
    unsafe { Kernel::<S>::new("kernel").cuda(source.clone().entry(name)) }
}

/// A source with variables of its own. Its code is that of others, if a kernel of this name is
/// prepared before a variable is used, since they have the same instance.
fn source() -> (CudaSource, Kernel<(InOut<f64>,)>) {
    let source = CudaSource::c(SOURCE);
    let last = of(&source, "last<double>");
    (source, last)
}

#[test]
fn kernels_of_one_source_share_its_variables_on_each_device() -> Result<()> {
    let (source, last) = source();
    let count = of::<(InOut<i32>,)>(&source, "count");
    let line = of::<(InOut<f32>,)>(&source, "line");
    for device in [device(), device(), checking()] {
        let stream = device.stream();
        let (mut n, mut x) = (SmartArray::<i32, _>::zeros(1), SmartArray::<f32, _>::zeros(2));
        let mut y = SmartArray::<f64, _>::zeros(1);
        line.launch_on(&stream, Grid::new(1, 2), (&mut x,))?;
        last.launch_on(&stream, Grid::new(1, 1), (&mut y,))?;
        count.launch_on(&stream, Grid::new(1, 1), (&mut n,))?;
        device.synchronize()?;
        assert_eq!(n.get(0)?, 2, "of the two others");
        assert_eq!(x.to_vec()?, [1.0, 1.0]);
        let _here = device.enter();
        assert_eq!(source.variable::<i32>("calls").read()?, [3]);
        assert_eq!(source.variable::<u64>("ns::total").read()?, [5]);
    }
    Ok(())
}

#[test]
fn a_managed_variable_is_one_of_the_device() -> Result<()> {
    let (source, _last) = source();
    let meet = of::<(InOut<i32>,)>(&source, "meet");
    let (here, mut out) = (device(), SmartArray::<i32, _>::zeros(1));
    meet.launch_on(&here.stream(), Grid::new(1, 1), (&mut out,))?;
    assert_eq!(out.get(0)?, 1);
    let _here = here.enter();
    assert_eq!(source.variable::<i32>("met").read()?, [1]);
    Ok(())
}

#[test]
fn the_host_writes_variables_before_later_launches_and_after_earlier_ones() -> Result<()> {
    let (source, _last) = source();
    let line = of::<(InOut<f32>,)>(&source, "line");
    for device in [device(), Device::emulated(Emulation::new().seed(3)), checking()] {
        let (_here, other) = (device.enter(), device.new_stream()?);
        line.prepare(&device)?;
        let coef = source.variable::<f32>("coef");
        let mut arrays: Vec<_> = (0..4).map(|_| SmartArray::<f32, _>::ones(2)).collect();
        for (index, x) in arrays.iter_mut().enumerate() {
            coef.write_on(&other, &[index as f32, 2.0, 0.0])?;
            line.launch_on(&device.stream(), Grid::new(1, 2), (x,))?;
        }
        for (index, x) in arrays.iter().enumerate() {
            assert_eq!(x.to_vec()?, [index as f32 + 2.0; 2]);
        }
        assert_eq!(coef.read()?, [3.0, 2.0, 0.0]);
        source.variable::<f32>("hidden").write(&[0.0, 10.0])?;
        line.launch(Grid::new(1, 2), (&mut arrays[0],))?;
        assert_eq!(arrays[0].to_vec()?, [3.0 + 2.0 * 2.0 + 10.0; 2]);
    }
    Ok(())
}

#[test]
fn what_is_wrong_with_a_variable_is_an_error_that_says_what_there_is() -> Result<()> {
    let (source, last) = source();
    let device = device();
    last.prepare(&device)?;
    let _here = device.enter();
    let Err(Error::Compile { log, .. }) = source.variable::<f32>("missing").read() else {
        panic!("there is none")
    };
    for part in ["no `__device__`", "`missing`", "`coef`", "`calls`", "`ns::total`"] {
        assert!(log.contains(part), "{log}");
    }
    let text = source.variable::<f32>("coef").write(&[1.0]).unwrap_err().to_string();
    assert!(text.contains("12 bytes") && text.contains("4 bytes"), "{text}");
    let text = source.variable::<u64>("coef").read().unwrap_err().to_string();
    assert!(text.contains("12 bytes") && text.contains("elements of 8 bytes"), "{text}");
    let wrong = CudaSource::c("wrong").variable::<i32>("x").read().unwrap_err().to_string();
    for part in ["kernel of the variable \"x\" is not ready", "refuses the source"] {
        assert!(wrong.contains(part), "{wrong}");
    }
    Ok(())
}

#[test]
fn variables_that_other_sources_do_not_see_have_names() -> Result<()> {
    let (source, _last) = source();
    let scaled = of::<(InOut<i32>,)>(&source, "scaled");
    let device = device();
    scaled.prepare(&device)?;
    let _here = device.enter();
    let mut x = SmartArray::<i32, _>::ones(1);
    assert_eq!(source.variable::<i32>("ns::offset").read()?, [3]);
    source.variable::<i32>("scale").write(&[10])?;
    scaled.launch(Grid::new(1, 1), (&mut x,))?;
    assert_eq!(x.to_vec()?, [13]);
    Ok(())
}

/// Its code could not share the variables of code that is loaded already.
#[test]
fn an_instance_that_comes_late_is_refused_if_there_are_variables() -> Result<()> {
    let (source, _last) = source();
    let device = device();
    of::<(InOut<f32>,)>(&source, "line").prepare(&device)?;
    let late = of::<(InOut<f32>,)>(&source, "last<float>");
    let Err(Error::Compile { log, .. }) = late.prepare(&device) else { panic!("it is late") };
    for part in ["`last<float>` is not in", "of `count`, `line`, `last`", "calls", "`CudaSource`"] {
        assert!(log.contains(part), "{log}");
    }
    late.prepare(&crate::device())?;

    let plain = CudaSource::c("template <typename T> __global__ void set(T *x) { x[0] = 7; }");
    for (kernel, expected) in [("set<int>", 7), ("set<unsigned>", 7)] {
        let set = of::<(InOut<i32>,)>(&plain, kernel);
        let mut x = SmartArray::<i32, _>::zeros(1);
        set.launch_on(&device.stream(), Grid::new(1, 1), (&mut x,))?;
        assert_eq!(x.get(0)?, expected);
    }
    Ok(())
}

#[test]
fn types_of_parameters_are_compared_with_the_signature() {
    let (source, _last) = source();
    type Right = (f32, In<i32>, InOut<f64, Ix1>);
    type Scalar = (u32, In<i32>, InOut<f64, Ix1>);
    type Flat = (f32, In<f32>, InOut<f64, Ix1>);
    type Sized = (f32, In<i32>, InOut<i64, Ix1>);
    of::<Right>(&source, "f").prepare(&device()).expect("it is as declared");
    let log = |outcome: Result<()>| match outcome {
        Err(Error::Compile { log, .. }) => log,
        other => panic!("{other:?}"),
    };
    let text = log(of::<Scalar>(&source, "f").prepare(&device()));
    assert!(text.contains("parameter 0 is `float`") && text.contains("(unsigned int a,"), "{text}");
    let text = log(of::<Flat>(&source, "f").prepare(&checking()));
    assert!(text.contains("parameter 1 is `const int *`"), "{text}");
    assert!(text.contains("const float *x"), "{text}");
    let text = log(of::<Sized>(&source, "f").prepare(&device()));
    assert!(
        text.contains("`resident::View1<double>`") && text.contains("View1<long long>"),
        "{text}"
    );
}
