//! Mistakes of newcomers in CUDA C, and the whole message of each. `INSTA_UPDATE=always cargo test
//! -p resident-tests-kernels --test cuda_on_host mistakes::` writes the messages anew; then read
//! the difference.

use resident::{Device, Emulation, In, InOut, Kernel, Out, Result, SmartArray};
use support::mistakes::{Mistake, messages};

const SCALE: &str = r#"
extern "C" __global__ void scale(unsigned n, float *x) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
"#;

/// Launches the kernel of this name, whose source is [`SCALE`] with an edit.
fn scale(name: &str, from: &str, to: &str) -> Result<()> {
    assert!(SCALE.contains(from), "{from}");
    // SAFETY: the kernel accesses as many elements as its count says, or does not compile.
    let kernel = unsafe { Kernel::<(u32, InOut<f32>)>::new(name).cuda(SCALE.replace(from, to)) };
    kernel.launch(8, (8, &mut SmartArray::ones(8)))
}

/// A device that checks kernels.
fn checking() -> Device {
    Device::emulated(Emulation::new().sanitize(true))
}

const MISTAKES: &[Mistake] = &[
    ("the kernel's name", || scale("scael", "scale", "scale")),
    ("an element's type", || scale("scale", "float *x", "double *x")),
    ("parameters in another order", || {
        scale("scale", "unsigned n, float *x", "float *x, unsigned n")
    }),
    ("a parameter too many", || scale("scale", "unsigned n", "unsigned m, unsigned n")),
    ("an index beyond the end", || {
        let source = SCALE.replace("if (i < n) ", "");
        // SAFETY: the device checks each access.
        let kernel = unsafe { Kernel::<(u32, InOut<f32>)>::new("scale").cuda(source) };
        let (device, mut x) = (checking(), SmartArray::<f32, _>::ones(8).named("x"));
        kernel.launch_on(&device.stream(), 16, (16, &mut x))?;
        device.synchronize()
    }),
    ("an output that is not all written", || {
        let source = SCALE.replace("*=", "=");
        // SAFETY: the kernel writes as many elements as its count says.
        let kernel = unsafe { Kernel::<(u32, Out<f32>)>::new("scale").cuda(source) };
        let (device, mut x) = (checking(), SmartArray::<f32, _>::uninit(8).named("x"));
        kernel.launch_on(&device.stream(), 8, (4, &mut x))?;
        x.to_vec().map(drop)
    }),
    ("a comparison without a body in CUDA C", || {
        let copy = Kernel::<(In<f32>, Out<f32>)>::new("copy")
            .host(|_grid, (from, to)| to.copy_from_slice(from));
        let (x, mut y) = (SmartArray::<f32, _>::ones(8), SmartArray::<f32, _>::uninit(8));
        copy.compare(&Device::cpu(), 8, (&x, &mut y), 0.0).map(drop)
    }),
];

#[test]
fn mistakes_in_cuda_c() {
    insta::assert_snapshot!(messages(MISTAKES));
}

/// The words are the compiler's own, so only what is added to them is compared.
#[test]
fn errors_of_the_compiler_show_the_line_of_the_source() {
    let edits =
        [("*= 2;", "*= 2", "    if (i < n) x[i] *= 2"), ("x[i] *=", "x[j] *=", "x[j] *= 2;")];
    for (from, to, shown) in edits {
        let error = scale("scale", from, to).expect_err("it does not compile").to_string();
        let mut lines = error.lines().skip_while(|line| !line.starts_with("scale.cu:4:"));
        let [Some(first), Some(source), Some(mark)] = [(); 3].map(|()| lines.next()) else {
            panic!("{error}")
        };
        assert!(first.contains("error: ") && source.ends_with(shown), "{error}");
        assert!(mark.trim_start().starts_with('^'), "{error}");
    }
}
