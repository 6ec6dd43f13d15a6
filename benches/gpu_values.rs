//! What a GPU's values cost on the embedded device, in instructions of the compiled kernels: shifts
//! by counts in variables and conversions of floats, beside the same expressions with the values
//! of C: `cargo bench -p resident-benches --bench gpu_values`. It needs a C++ compiler and
//! valgrind, which has no AVX-512, so that kernels are compiled for `x86-64-v3` at most.
//! `-- --only=rotation` counts the rows whose names contain a word.

use std::process::Command;

use resident::{CudaSource, Device, Grid, In, InOut, Kernel, SmartArray};

const THREADS: usize = 1 << 17;

/// What the functions have that run a launch's blocks.
const COUNTED: &str = "--toggle-collect=*resident::host::entry<*::start<*";

/// Types and counts that the library leaves as they are in C: a name that it does not take for an
/// integer's, and a count that begins with a literal.
const OF_C: &str = "typedef __typeof__(0) c_int;
    typedef __typeof__(0u) c_unsigned;
    typedef __typeof__((unsigned char)0) c_byte;
    typedef __typeof__(0ll) c_long;";

/// The names of the rows, and their statements. `$int` is the type or that of C; `$n` a count.
const ROWS: [(&str, &str); 13] = [
    ("a shift by one count, `u >> m & 15`", "y[i] = u >> $m & 15;"),
    ("by masked counts, `1u << (u & 31)`", "int n = u & 31; y[i] = 1u << $n;"),
    ("by any counts, `u << n`", "int n = u >> 8; y[i] = u << $n;"),
    (
        "by any counts, of 64 bits",
        "int n = u >> 9 & 127; unsigned long long w = u * 0x9e3779b97f4a7c15; y[i] = w >> $n;",
    ),
    (
        "by masked counts, of signed 64 bits",
        "int n = u & 63; long long w = u * 0x9e3779b97f4a7c15; y[i] = w >> $n;",
    ),
    ("a rotation by one count", "int n = 32 - m; y[i] = u << $m | u >> $n;"),
    ("a rotation by masked counts", "int k = u & 31, n = 32 - k & 31; y[i] = u << $k | u >> $n;"),
    (
        "eight rotations in turn by one count",
        "int n = 32 - m; for (int k = 0; k < 8; ++k) u = (u << $m | u >> $n) * 5 + 1; y[i] = u;",
    ),
    ("`(int)f`", "y[i] = ($int)(f);"),
    ("`(unsigned int)f`", "y[i] = ($unsigned)(f);"),
    ("`(unsigned char)f`", "y[i] = ($byte)(f);"),
    ("`(long long)f`", "y[i] = ($long)(f);"),
    ("`atomicAdd(&y[(int)f & 255], 1)`", "atomicAdd(&y[($int)(f) & 255], 1u);"),
];

/// Names in the statements, those with a GPU's values, and those of C.
const NAMES: [(&str, &str, &str); 7] = [
    ("$int", "int", "c_int"),
    ("$unsigned", "unsigned int", "c_unsigned"),
    ("$byte", "unsigned char", "c_byte"),
    ("$long", "long long", "c_long"),
    ("$m", "m", "0[&m]"),
    ("$n", "n", "0[&n]"),
    ("$k", "k", "0[&k]"),
];

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let Some(at) = words.iter().position(|word| word == "--count") {
        let row: usize = words[at + 1].parse().expect("the number of a row");
        return launch(ROWS[row].1, words[at + 2] == "c");
    }
    let only = words.iter().find_map(|word| word.strip_prefix("--only=")).unwrap_or("");
    println!("| kernel | values of C | a GPU's | |\n|---|---|---|---|");
    for (row, (name, _)) in ROWS.iter().enumerate().filter(|(_, (name, _))| name.contains(only)) {
        let [of_c, of_gpu] = ["c", "gpu"].map(|values| instructions(row, values));
        let more = (of_gpu as f64 / of_c as f64 - 1.0) * 100.0;
        println!("| {name} | {of_c} | {of_gpu} | {more:+.1} % |");
    }
}

/// The instructions of one launch, in a process of its own.
fn instructions(row: usize, values: &str) -> u64 {
    let program = std::env::current_exe().expect("this program");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", COUNTED]).arg(program);
    let output = valgrind.args(["--count", &row.to_string(), values]).output();
    let log = String::from_utf8(output.expect("valgrind runs").stderr).expect("text");
    let counted = log.lines().find_map(|line| line.split_once("Collected : "));
    let count = counted.and_then(|(_, count)| count.trim().parse().ok());
    count.filter(|count| *count > 0).unwrap_or_else(|| panic!("nothing was counted: {log}"))
}

fn launch(statement: &str, is_of_c: bool) {
    let replaced = NAMES.iter().fold(statement.to_owned(), |text, (name, of_gpu, of_c)| {
        text.replace(name, if is_of_c { of_c } else { of_gpu })
    });
    let text = format!(
        "{OF_C}
        extern \"C\" __global__ void k(const unsigned int *x, unsigned int *y, float a, int m,
                                     int len) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= len) return;
            unsigned int u = x[i];
            float f = a * u;
            {replaced}
        }}"
    );
    type Signature = (In<u32>, InOut<u32>, f32, i32, i32);
    // SAFETY: each thread accesses elements below the number of threads.
    let kernel = unsafe { Kernel::<Signature>::new("k").cuda(CudaSource::c(text)) };
    let device = Device::cpu();
    let x = SmartArray::from((0..THREADS as u32).collect::<Vec<_>>());
    let mut y = SmartArray::from(vec![0_u32; THREADS]);
    let grid = Grid::new(THREADS as u32 / 256, 256);
    kernel
        .launch_on(&device.stream(), grid, (&x, &mut y, 0.25, 5, THREADS as i32))
        .expect("it is queued");
    device.synchronize().expect("it runs");
}
