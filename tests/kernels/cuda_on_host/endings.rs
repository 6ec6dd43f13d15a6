//! What would end a process, or a compilation never: a kernel fails or goes on instead, or its
//! source is refused with the line.

use resident::{CudaSource, Device, Emulation, Error, Grid, InOut, Kernel, SmartArray};

use crate::kernel;

/// Why a device refuses a kernel, that never runs, of this source.
fn refused(source: &str, device: &Device) -> String {
    crate::refused::<(InOut<i32>,)>(device, "wrong", source)
}

#[test]
fn what_ends_a_process_and_no_compiler_for_gpus_takes_is_refused_with_its_line() {
    for (source, words) in [
        ("\nextern \"C\" void exit(int);", "2: the function `exit` is declared as one of the host"),
        ("__device__ int one(void);\nint fork();", "2: the function `fork` is declared as one of"),
        (
            "__device__ void f() {\n __builtin_exit(1); }",
            "2: NVRTC has no `__builtin_exit`: write `__trap()`",
        ),
        (
            "__device__ void *f(int n) {\n return alloca(n); }",
            "2: the source does not declare `alloca`",
        ),
        ("__device__ void f(int n) {\n exit(n); }", "2: the source does not declare `exit`"),
    ] {
        let kernel = "\nextern \"C\" __global__ void wrong(int *x) { x[0] = 1; }";
        let log = refused(&[source, kernel].concat(), &Device::cpu());
        assert!(log.starts_with(&format!("wrong.cu:{words}")), "{log}");
    }
}

/// The code would run while the library is loaded, or leave a lock behind.
#[test]
fn variables_that_code_initialises_are_refused_with_their_line() {
    let number = "struct Number { int value; __device__ Number() : value(5) {} };\n";
    let kernel = |body| format!("extern \"C\" __global__ void wrong(int *x) {{ {body} }}");
    let endless = "struct Endless { int value; __device__ Endless() { for (;;) ++value; } };\n";
    let this = "this variable is initialised or destroyed by code; NVRTC refuses that";
    let cases = [
        (
            format!("{endless}\n__device__ Endless one;\n{}", kernel("x[0] = one.value;")),
            ":3: ",
            this,
        ),
        (
            kernel("static int before = x[1]; x[0] = before;"),
            ": ",
            "the `static` variable `before` of a function is initialised by code",
        ),
    ];
    for is_checked in [false, true] {
        let device = Device::emulated(Emulation::new().sanitize(is_checked));
        for (source, place, words) in &cases {
            let log = refused(source, &device);
            assert!(log.starts_with(&format!("wrong.cu{place}{words}")), "{log}");
        }
    }
    // What needs no code is not refused: empty constructors, and those of shared memory.
    let fine = "struct Empty { int value; __device__ Empty() {} };\n__device__ Empty one;\n\
                struct Constant { int v; __device__ constexpr Constant(int v) : v(v) {} };\n\
                __constant__ Constant two(2);\n__device__ float2 three = {3, 4};";
    let body = "__shared__ Number of_block; x[0] = one.value + two.v + three.x;";
    let fine = [number, fine, "\n", &kernel(body).replace("wrong", "fine")].concat();
    let fine = self::kernel::<(InOut<i32>,)>("fine", fine);
    let mut x = SmartArray::<i32, _>::ones(1);
    fine.launch_on(&Device::cpu().stream(), Grid::new(1, 1), (&mut x,)).expect("it is queued");
    assert_eq!(x.get(0).expect("a number"), 5);
}

/// Kernels that end early or go on; `prints` and those behind it print.
const SOURCE: &str = r#"
    __device__ float promoted(int n, ...) {
        __builtin_va_list list;
        __builtin_va_start(list, n);
        return __builtin_va_arg(list, float);
    }
    extern "C" __global__ void promote(int *x) { x[0] = promoted(1, 2.0f); }
    extern "C" __global__ void trap(int *x) { if (x[1]) __builtin_trap(); x[0] = 1; }
    extern "C" __global__ void divide(int *x) {
        const __int128 zero = x[1] - x[1], one = x[2];
        x[3] = (int)(one / zero) ^ (int)(one % zero);
        x[4] = (int)((unsigned __int128)one / (unsigned __int128)zero);
        x[5] = (int)((unsigned __int128)one % (unsigned __int128)zero);
        x[0] = (int)((one << 100) / (zero + 5) >> 90);
    }
    extern "C" __global__ void vector(int *x) {
        *reinterpret_cast<float4 *>(x + 1) = make_float4(1, 2, 3, 4);
    }
    extern "C" __global__ void release(int *x) { free(x + 2); }
    extern "C" __global__ void twice(int *x) {
        void *volatile memory = malloc(100);
        free(memory);
        free(memory);
    }
    extern "C" __global__ void stars(int *x) {
        printf("abc %*d %-5hhd|%%n %.*s %p\n", 3, 7, 'c', 2, "text", x);
        x[0] = 5;
    }
    extern "C" __global__ void counts(int *x) { printf(x[1] ? "abc%n" : "", x + 1); }
    extern "C" __global__ void mixes(int *x) { printf(x[1] ? "%s" : "%d", 42); }
    extern "C" __global__ void lacks(int *x) { printf(x[1] ? "%d %d" : "%d", 42); }
    extern "C" __global__ void no_format(int *x) { printf(x[1] ? (char *)0 : "%d", 42); }
    extern "C" __global__ void wide(int *x) { printf("%1000000000d", 1); }
    extern "C" __global__ void precise(int *x) { printf("%d %.*f", 1, -2000000000, 1.0); }
    extern "C" __global__ void long_text(int *x) {
        printf("%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d"
               "%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d%1000000d",
               1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17);
    }
"#;

#[test]
fn launches_fail_or_go_on_where_a_process_would_end() {
    let source = CudaSource::c(SOURCE).option("--device-int128");
    // SAFETY: it does not run.
    let any = unsafe { Kernel::<(InOut<i32>,)>::new("stars").cuda(source.clone()) };
    let unlimited = "the format of `printf` asks for a width or a precision of more than 1048576";
    // On one device the source is compiled once.
    let devices = [false, true].map(|checked| Device::emulated(Emulation::new().sanitize(checked)));
    if any.prepare(&devices[0]).is_err_and(|error| error.to_string().contains("no C++ compiler")) {
        return;
    }
    let no_memory = "which is no memory that `malloc` gave a kernel, or is free already";
    for (name, expected, checked) in [
        ("stars", Ok(5), Ok(5)),
        ("counts", Err("a conversion that CUDA lacks, such as `%n`"), Err("conversion that CUDA")),
        ("mixes", Err("a value does not fit its conversion"), Err("(block (0, 0, 0), thread")),
        ("lacks", Err("more conversions than values"), Err("calls `printf` wrongly: the format")),
        ("no_format", Err("is a null pointer"), Err("is a null pointer")),
        ("divide", Ok(204), Err("divides an integer by zero")),
        ("release", Err(no_memory), Err(no_memory)),
        ("twice", Err(no_memory), Err(no_memory)),
        ("wide", Err(unlimited), Err(unlimited)),
        ("precise", Err(unlimited), Err(unlimited)),
        ("long_text", Err("writes more than 16 MiB"), Err("writes more than 16 MiB")),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        ("promote", Err("an instruction that ends it"), Err("an instruction that ends it")),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        ("vector", Err("no multiple of its length"), Err("at a misaligned address")),
        ("trap", Err("called __builtin_trap()"), Err("called __builtin_trap()")),
    ] {
        for (is_checked, expected) in [(false, expected), (true, checked)] {
            let device = &devices[usize::from(is_checked)];
            // SAFETY: each accesses only elements of its argument.
            let kernel = unsafe { Kernel::<(InOut<i32>,)>::new(name).cuda(source.clone()) };
            let mut x = SmartArray::<i32, _>::from(vec![0, 1, 1, 0, 0, 0]);
            kernel.launch_on(&device.stream(), Grid::new(1, 1), (&mut x,)).expect("it is queued");
            match (expected, x.to_vec()) {
                (Ok(first), Ok(x)) => assert_eq!(x[..3], [first, 1, 1], "{name}"),
                (Err(words), Err(Error::Lost { cause, .. })) => {
                    assert!(cause.contains(words), "{name}: {cause}");
                }
                // Clang gives it a value.
                (Err(_), Ok(_)) if name == "promote" => {}
                // It may choose instructions that need no alignment.
                (Err(_), Ok(_)) if name == "vector" && !is_checked => {}
                (expected, seen) => panic!("{name}: {seen:?}, not {expected:?}"),
            }
        }
    }
}
