//! `.cuda`, `prepare`, `attributes`, `prototype` and `compare`, as far as they can be tested
//! without a GPU.

use resident::CudaSource;
use support::prelude::*;

#[test]
fn every_form_of_source_is_taken() {
    let sources = [
        CudaSource::from("C"),
        CudaSource::c("C")
            .entry("scale<float>")
            .define("N", 3)
            .option("--use_fast_math")
            .include("headers"),
        CudaSource::file("kernels.cu"),
        CudaSource::ptx(".version 8.0"),
        CudaSource::cubin([0x7F, 0x45]),
    ];
    for source in sources {
        // SAFETY: the kernel is never launched.
        let kernel = unsafe { Kernel::<(f32, InOut<f32>)>::new("scale").cuda(source) };
        assert!(matches!(kernel.prepare(&lab()), Err(Error::Compile { .. })), "not CUDA C");
        assert!(kernel.host(|_grid, _| ()).prepare(&lab()).is_ok());
    }
}

#[test]
fn the_prototype_is_the_declaration_to_paste() {
    let kernel = Kernel::<(f32, In<f32>, InOut<f64, Ix2>, Out<u32, Ix1>, [f32; 3])>::new("mixed");
    assert_eq!(
        kernel.prototype(),
        "extern \"C\" __global__ void mixed(float a, const float *x, resident::View2<double> y, \
         resident::View1<unsigned int> z, \
         f32_3 /* [f32; 3], 12 bytes */ b)"
    );
    // SAFETY: the kernel is never launched on a GPU.
    let named = unsafe { kernel.cuda(CudaSource::c("").entry("other")) };
    assert!(named.prototype().starts_with("extern \"C\" __global__ void other(float a, "));
}

#[test]
fn a_host_body_needs_nothing_of_a_device() -> Result<()> {
    let kernel = Kernel::<(InOut<f32>,)>::new("nothing").host(|_grid, _| ());
    let attributes = kernel.attributes(&lab())?;
    assert_eq!((attributes.registers, attributes.shared_bytes, attributes.local_bytes), (0, 0, 0));
    assert_eq!(attributes.block_threads_max, 1024);
    Ok(())
}

/// What compares is in `tests/kernels`, since it takes a C++ compiler.
#[test]
fn compare_refuses_what_a_launch_refuses_and_a_kernel_with_one_body() {
    let (x, mut y) = (SmartArray::<f32, _>::uninit(3), SmartArray::<f32, _>::uninit(4));
    let kernel = Kernel::<(In<f32>, Out<f32>)>::new("copy")
        .require("one length", |_grid, (x, y)| x.len() == y.len());
    let kernel = kernel.host(|_grid, (x, y)| y.copy_from_slice(x));
    let compare = |y: &mut SmartArray<f32, Ix1>, grid| kernel.compare(&lab(), grid, (&x, y), 0.0);
    assert!(matches!(compare(&mut y, Grid::cover(3)), Err(Error::Requirement { .. })));
    assert!(matches!(compare(&mut y, Grid::new(0, 1)), Err(Error::Grid { .. })));
    let of = |kernel: &str| Kernel::<(Out<f32>,)>::new(String::from(kernel));
    let host = of("host").host(|_grid, _| ());
    // SAFETY: the kernels are never launched.
    let with_cuda = |kernel: Kernel<(Out<f32>,)>| unsafe { kernel.cuda("") };
    let (cuda, not_c) = (with_cuda(of("cuda")), with_cuda(host.clone()));
    let mut compare = |kernel: &Kernel<(Out<f32>,)>, device: Device| {
        kernel.compare(&device, Grid::cover(4), (&mut y,), 0.0)
    };
    for device in [lab, Device::cpu] {
        for (kernel, method) in
            [(&host, ".cuda(..)"), (&cuda, ".host(..)"), (&of("none"), ".host(..)")]
        {
            let compared = compare(kernel, device());
            let Err(error @ Error::NoKernelBody { .. }) = compared else { panic!("{compared:?}") };
            assert!(error.to_string().contains(&format!("add one with `{method}`")), "{error}");
        }
        assert!(matches!(compare(&not_c, device()), Err(Error::Compile { .. })));
    }
}
