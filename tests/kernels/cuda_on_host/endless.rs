//! Kernels that do not end, with a time limit. The tests run in processes of their own, since the
//! limit is a variable of the process.

use resident::{Emulation, Grid, InOut, Result, SmartArray};
use support::own_process;

use crate::one_of;

/// A busy machine may stop a process for seconds, but these launches never end.
const LIMIT: (&str, &str) = ("RESIDENT_LAUNCH_TIMEOUT", "0.2");

/// Of which the first ends if it is not endless.
const SOURCE: &str = r#"
    extern "C" __global__ void count(int *x, int is_endless) {
        __syncthreads();
        volatile int steps = 0;
        while (is_endless || steps < 1000) ++steps;
        x[threadIdx.x] = steps;
    }
    extern "C" __global__ void wait(int *x) { while (atomicAdd(x + blockIdx.x, 0) == 0); }
    // Counting adds no shared memory to the most.
    extern "C" __global__ void full(int *x) {
        __shared__ int all[12288];
        all[threadIdx.x] = 1;
        x[0] = all[0];
    }
"#;

/// Launches a kernel that never ends if `is_endless`, on a device that checks kernels and on one
/// that does not.
fn launch(is_endless: bool) -> Result<()> {
    let count = one_of::<(InOut<i32>, i32)>(SOURCE, "count");
    for is_checked in [false, true] {
        let device = resident::Device::emulated(Emulation::new().sanitize(is_checked));
        let mut x = SmartArray::<i32, _>::zeros(4);
        count.launch_on(&device.stream(), Grid::new(1, 4), (&mut x, i32::from(is_endless)))?;
        device.synchronize()?;
        assert_eq!(x.to_vec()?, [1000; 4]);
    }
    Ok(())
}

#[test]
fn far_below_the_limit() {
    own_process!([("RESIDENT_LAUNCH_TIMEOUT", "600")]);
    launch(false).expect("it ends");
    let _is_ready = one_of::<(InOut<i32>,)>(SOURCE, "full");
}

#[test]
fn launches_end_at_the_limit_and_name_the_kernel() {
    own_process!([LIMIT]);
    let text = launch(true).expect_err("it does not end").to_string();
    let words = ["kernel \"kernel\"", "it ran longer than 200ms", "a loop in an included header"];
    assert!(words.iter().all(|words| text.contains(words)), "{text}");
    // Threads, and blocks, that wait for what no other one writes.
    let wait = one_of::<(InOut<i32>,)>(SOURCE, "wait");
    for is_checked in [false, true] {
        let device = resident::Device::emulated(Emulation::new().sanitize(is_checked));
        let mut x = SmartArray::<i32, _>::zeros(3);
        wait.launch_on(&device.stream(), Grid::new(3, 4), (&mut x,)).expect("it is queued");
        let error = device.synchronize().expect_err("it does not end");
        assert!(error.to_string().contains("it ran longer than 200ms"), "{error}");
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod loops {
    use resident::{CudaSource, Device, Emulation, Grid, InOut, Kernel, SmartArray};

    /// Loops that call nothing or compute nothing, and loops in code of other libraries, which a
    /// signal must not leave with a lock.
    const BODIES: [(&str, &str); 13] = [
        ("empty", "for (;;) ;"),
        ("behind", "x[0] = 7; if (x[1]) for (;;) ;"),
        ("invariant", "int sum = 0; do { sum += x[1]; } while (true); x[0] = sum;"),
        ("condition", "while (x[1] == 1) ; x[0] = 3;"),
        ("flag", "if (threadIdx.x == 1) while (x[2] == 0) ; else x[0] = 3;"),
        ("copies", "for (;;) memcpy(x, x + 8, 16);"),
        ("long_copies", "for (;;) memcpy(x, x + n / 2, n * 2);"),
        ("sines", "float s = x[1]; while (s < 2) s = sinf(s + x[1]); x[0] = s;"),
        ("heap", "for (;;) { void *volatile p = malloc(n); free(p); }"),
        ("prints", "for (;;) printf(\"\");"),
        ("barrier", "__syncthreads(); if (threadIdx.x == 1) for (;;) ; __syncthreads();"),
        ("call", "again(x);"),
        (
            "ends",
            "char *p = (char *)malloc(n); printf(\"%c\\n\", p ? 'p' : '0'); free(p); x[0] = 5;",
        ),
    ];

    /// A function, and the kernels of `BODIES`.
    fn source() -> CudaSource {
        let function = "__device__ __noinline__ void again(int *x) { for (;;) ++x[0]; }";
        let kernel = |(name, body): &(_, _)| {
            format!("\nextern \"C\" __global__ void {name}(int *x, int n) {{ {body} }}")
        };
        CudaSource::c([function.to_owned(), BODIES.iter().map(kernel).collect()].concat())
    }

    fn launch(
        kernel: &Kernel<(InOut<i32>, i32)>,
        device: &Device,
        grid: Grid,
    ) -> Result<i32, String> {
        let elements = 1 << 16;
        let mut x = SmartArray::<i32, _>::zeros(elements);
        x.set(1, 1).expect("an element");
        let launched = kernel.launch_on(&device.stream(), grid, (&mut x, elements as i32));
        launched.and_then(|()| device.synchronize()).map_err(|error| error.to_string())?;
        x.get(0).map_err(|error| error.to_string())
    }

    pub(super) fn end() {
        let source = source();
        let ends = crate::kernel::<(InOut<i32>, i32)>("ends", source.clone());
        for is_checked in [false, true] {
            let device = Device::emulated(Emulation::new().sanitize(is_checked));
            for (name, _) in BODIES.iter().filter(|(name, _)| *name != "ends") {
                // SAFETY: each accesses only elements of its argument.
                let endless = unsafe { Kernel::new(*name).cuda(source.clone()) };
                // On one thread of the machine, and on several.
                let grid = if is_checked { Grid::new(1, 2) } else { Grid::new(64, 256) };
                let text = launch(&endless, &device, grid).expect_err("it does not end");
                assert!(text.contains("it ran longer than 100ms"), "{name}: {text}");
                assert_eq!(launch(&ends, &device, Grid::new(1, 1)), Ok(5), "{name}");
            }
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn loops_end_at_the_limit() {
    own_process!([("RESIDENT_LAUNCH_TIMEOUT", "0.1")]);
    loops::end();
}

#[test]
fn a_wrong_limit_is_refused() {
    own_process!([("RESIDENT_LAUNCH_TIMEOUT", "soon")]);
    // SAFETY: the kernel does nothing.
    let nothing = unsafe {
        resident::Kernel::<(InOut<i32>,)>::new("nothing")
            .cuda("extern \"C\" __global__ void nothing(int *x) {}")
    };
    let error = nothing.prepare(&resident::Device::cpu()).expect_err("the limit is no number");
    let text = error.to_string();
    assert!(text.contains("RESIDENT_LAUNCH_TIMEOUT=soon: expected a number of seconds"), "{text}");
}
