//! `.cuda`, `prepare`, `attributes`, `prototype` and `compare`, as far as they can be tested
//! without a GPU.

use std::sync::atomic::{AtomicU32, Ordering};

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

/// A kernel that adds the number of its earlier runs to marked elements. The device's run is the
/// second, so its results differ at these elements.
fn drifting() -> Kernel<(In<u8, Ix2>, InOut<f32, Ix2>)> {
    let runs = AtomicU32::new(0);
    Kernel::<(In<u8, Ix2>, InOut<f32, Ix2>)>::new("drifting").host(
        move |_grid, (marks, mut values)| {
            let run = runs.fetch_add(1, Ordering::Relaxed) as f32;
            values.zip_mut_with(&marks, |value, mark| *value += 1.0 + run * f32::from(*mark));
        },
    )
}

#[test]
fn compare_reports_the_first_difference_in_index_order_and_leaves_the_arguments() -> Result<()> {
    let device = lab();
    let mut marks = Array2::<u8>::zeros((3, 4));
    marks[[1, 2]] = 1;
    marks[[2, 0]] = 1;
    let marks = SmartArray::from(marks);
    // A column-major array, and a part of it with a step. The differing element must be reported by
    // its index in the argument.
    let mut values = SmartArray::from(Array2::<f32>::zeros((3, 8).f())).named("values");
    let mut part = values.slice_mut(s![.., ..;2]);
    let found = drifting().compare(&device, Grid::cover(12), (&marks, &mut part), 0.4)?;
    let difference = found.expect("they differ");
    assert_eq!(
        (difference.parameter, &*difference.index, difference.count, difference.len),
        (1, &[1, 2][..], 2, 12)
    );
    assert_eq!(
        (&*difference.array, &*difference.host, &*difference.device),
        ("\"values\"", "1", "2")
    );
    assert_eq!(
        drifting().compare(&device, Grid::cover(12), (&marks, &mut part), 0.5)?,
        None,
        "within the tolerance"
    );
    assert_eq!(values.host()?.sum(), 0.0);
    assert_eq!(values.traffic(), Traffic::default(), "only copies of them moved");
    Ok(())
}

#[test]
fn compare_refuses_what_a_launch_refuses() {
    let (x, mut y) = (SmartArray::<f32, _>::uninit(3), SmartArray::<f32, _>::uninit(4));
    let kernel = Kernel::<(In<f32>, Out<f32>)>::new("copy")
        .require("one length", |_grid, (x, y)| x.len() == y.len());
    let kernel = kernel.host(|_grid, (x, y)| y.copy_from_slice(x));
    let compare =
        |y: &mut SmartArray<f32, Ix1>| kernel.compare(&lab(), Grid::cover(3), (&x, y), 0.0);
    assert!(matches!(compare(&mut y), Err(Error::Requirement { .. })));
    assert!(matches!(compare(&mut SmartArray::uninit(3)), Err(Error::Uninitialised { .. })));
    assert!(matches!(
        kernel.compare(&lab(), Grid::new(0, 1), (&x, &mut y), 0.0),
        Err(Error::Grid { .. })
    ));
    // SAFETY: the kernel is never launched.
    let no_host = unsafe { Kernel::<(Out<f32>,)>::new("no host body").cuda("") };
    assert!(matches!(
        no_host.compare(&lab(), Grid::cover(4), (&mut y,), 0.0),
        Err(Error::Compile { .. })
    ));
    let bare = Kernel::<(Out<f32>,)>::new("no body");
    assert!(matches!(
        bare.compare(&lab(), Grid::cover(4), (&mut y,), 0.0),
        Err(Error::NoKernelBody { .. })
    ));
}
