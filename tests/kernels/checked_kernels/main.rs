//! Kernels with one known defect each, and correct twins, on a device that checks them: every
//! defect is found at its line, and nothing else is. Without a C++ compiler these tests say so and
//! do nothing.
//!
//! `RESIDENT_DEFECTS_ON=cuda:0` runs the kernels with defects on that GPU, where another checker
//! looks at them (`scripts/gpu/defects.py`); `RESIDENT_DEFECTS_ON=list` only tells what they are.

support::record_launches!();

mod barriers;
mod bounds;
mod contents;
mod correct;
mod left_out;
mod races;
mod reports;
mod sharing;
mod views;

use resident::emulation::{Finding, FindingKind};
use resident::{
    Arguments, CudaSource, Device, Emulation, Error, Grid, In, InOut, Kernel, Out, Signature,
    SmartArray,
};

/// The length of the arrays of a [`Case`].
const LEN: usize = 256;

/// A kernel whose defect an argument turns on.
struct Case {
    /// The body. Parameters are `const float *in, float *io, float *out, int bad`, of 256 elements
    /// each; `i` is the number of the thread in the grid. The defect is on the line that ends in
    /// `// here`.
    body: &'static str,
    /// What stands before the kernel.
    before: &'static str,
    grid: Grid,
    is_strict: bool,
}

impl Case {
    /// A kernel that is launched in four blocks of 64 threads.
    fn new(body: &'static str) -> Self {
        Self { body, before: "", grid: Grid::new(4, 64), is_strict: false }
    }

    fn after(self, before: &'static str) -> Self {
        Self { before, ..self }
    }

    fn grid(self, grid: Grid) -> Self {
        Self { grid, ..self }
    }

    /// On a device that reports what old GPUs do not allow.
    fn strict(self) -> Self {
        Self { is_strict: true, ..self }
    }

    fn source(&self) -> String {
        let Self { body, before, .. } = self;
        format!(
            "{before}\n\
             extern \"C\" __global__ void \
             kernel(const float *in, float *io, float *out, int bad) {{\n\
             int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             (void)i;\n{body}\n}}\n"
        )
    }

    /// What is found. Elements are 0, 1, 2, ...
    fn run(&self, is_bad: bool) -> Option<Vec<Finding>> {
        let numbers = || SmartArray::from((0..LEN).map(|i| i as f32).collect::<Vec<_>>());
        let (input, mut both, mut output) = (numbers(), numbers(), SmartArray::uninit(LEN));
        type Parameters = (In<f32>, InOut<f32>, Out<f32>, i32);
        let arguments = (&input, &mut both, &mut output, i32::from(is_bad));
        let device = Device::emulated(Emulation::new().sanitize(true).strict(self.is_strict));
        check_on::<Parameters>(&device, self.source(), self.grid, arguments)
    }

    /// The defect is the first one that is found; without it nothing is found but notes. `None` if
    /// there is no compiler, and where another checker looks for the defect.
    fn finds(self, kind: FindingKind) -> Option<Finding> {
        if let Some(place) = std::env::var_os("RESIDENT_DEFECTS_ON") {
            println!("defect: {kind:?}");
            if place != "list" {
                self.run_unchecked(&place.to_string_lossy());
            }
            return None;
        }
        let findings = self.run(true)?;
        let errors: Vec<&Finding> = findings.iter().filter(|one| one.kind.is_error()).collect();
        let [error, ..] = *errors else { panic!("no error: {findings:#?}") };
        assert_eq!(error.kind, kind, "{error}");
        let source = self.source();
        let line = source.lines().position(|line| line.ends_with("// here")).expect("a marker");
        let found = error.line.as_ref().map(|line| line.number as usize);
        assert_eq!(found, Some(line + 1), "{error}");
        self.is_correct_if_not_bad();
        Some(error.clone())
    }

    /// Runs the kernel with its defect. What comes of it is for the other checker to tell.
    fn run_unchecked(&self, place: &str) {
        let ordinal = place.strip_prefix("cuda:").and_then(|number| number.parse().ok());
        let gpu = ordinal.map(Device::cuda).expect("RESIDENT_DEFECTS_ON names a GPU: cuda:0");
        let stream = gpu.unwrap_or_else(|error| panic!("{error}")).stream();
        let numbers = || SmartArray::from((0..LEN).map(|i| i as f32).collect::<Vec<_>>());
        let (input, mut both, mut output) = (numbers(), numbers(), SmartArray::uninit(LEN));
        let kernel = Kernel::<(In<f32>, InOut<f32>, Out<f32>, i32)>::new("kernel");
        // SAFETY: it breaks what it promises, on a GPU and for a checker, in a process of its own.
        let kernel = unsafe { kernel.cuda(CudaSource::c(self.source()).option("-lineinfo")) };
        let arguments = (&input, &mut both, &mut output, 1);
        let outcome = kernel.launch_on(&stream, self.grid, arguments);
        println!("{:?}", outcome.and_then(|()| stream.synchronize()));
    }

    fn is_correct_if_not_bad(&self) {
        let findings = self.run(false).unwrap_or_default();
        let error = findings.iter().find(|one| one.kind.is_error());
        assert!(error.is_none(), "{}", error.expect("it is there"));
    }
}

/// A device that checks kernels.
fn device() -> Device {
    Device::emulated(Emulation::new().sanitize(true))
}

/// Launches a kernel with a body in CUDA C, checked. Returns what was found, notes included;
/// `None`, with a message, if there is no C++ compiler.
fn check<S: Signature>(
    source: impl Into<CudaSource>,
    grid: Grid,
    arguments: impl Arguments<S>,
) -> Option<Vec<Finding>> {
    check_on(&device(), source, grid, arguments)
}

/// As [`check`], on one of such devices.
fn check_on<S: Signature>(
    device: &Device,
    source: impl Into<CudaSource>,
    grid: Grid,
    arguments: impl Arguments<S>,
) -> Option<Vec<Finding>> {
    // SAFETY: the device ends threads before they access what they must not.
    let kernel = unsafe { Kernel::<S>::new("kernel").cuda(source) };
    match kernel.prepare(device) {
        Err(Error::Compile { log, .. }) if log.contains("there is no C++ compiler") => {
            eprintln!("skipped: {log}");
            return None;
        }
        outcome => outcome.unwrap_or_else(|error| panic!("{error}")),
    }
    kernel.launch_on(&device.stream(), grid, arguments).expect("it is queued");
    let outcome = device.synchronize();
    let findings = device.emulation().expect("it is emulated").findings();
    let error = findings.iter().find(|finding| finding.kind.is_error());
    match (error, outcome) {
        (None, outcome) => outcome.unwrap_or_else(|error| panic!("{error}")),
        (Some(finding), outcome) => {
            let text = outcome.expect_err("the launch fails").to_string();
            assert!(text.contains(&finding.to_string()), "{text}");
        }
    }
    Some(findings)
}
