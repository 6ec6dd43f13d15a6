//! Processor time of all compilers that one source starts, with an empty cache, on the embedded
//! device: `cargo bench -p resident-benches --bench compiling`. `-- --quick` runs one round. Each
//! figure is the least of the rounds, each of which is a process of its own.

use std::path::PathBuf;
use std::process::Command;

use resident::{Device, Emulation, InOut, Kernel};

const ROUNDS: usize = 6;

/// What the lines of the table are, and the statement of their kernel.
const SOURCES: [(&str, &str); 4] = [
    ("three lines", "x[i] = x[i] + 1;"),
    ("with a shift and a conversion", "x[i] = (int)(0.5f * x[i]) + (1 << (x[i] & 63));"),
    ("with `int i = x` of a float", "float y = 0.5f * x[i]; int n = y; x[i] = n;"),
    ("with numbers of 16 bits", "x[i] = (int)__half2float(__float2half(0.5f * x[i]));"),
];

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let Some(at) = words.iter().position(|word| word == "--compile") {
        let source = words[at + 1].parse().expect("the number of a source");
        return compile(source, words[at + 2] == "checked");
    }
    let rounds = if words.iter().any(|word| word == "--quick") { 1 } else { ROUNDS };
    let kinds = SOURCES.len() * 2;
    let mut least = vec![f64::INFINITY; kinds];
    for _ in 0..rounds {
        for (kind, least) in least.iter_mut().enumerate() {
            *least = least.min(seconds_in_process(kind / 2, kind % 2 == 1));
        }
    }
    println!("| source | plain, s | checked, s |\n|---|---|---|");
    for ((name, _), pair) in SOURCES.iter().zip(least.chunks(2)) {
        println!("| {name} | {:.3} | {:.3} |", pair[0], pair[1]);
    }
}

/// Compiles a source in a new process with an empty cache.
fn seconds_in_process(source: usize, is_checked: bool) -> f64 {
    let cache = cache();
    let program = std::env::current_exe().expect("this program");
    let mode = if is_checked { "checked" } else { "plain" };
    let mut command = Command::new(program);
    command.args(["--compile", &source.to_string(), mode]).env("RESIDENT_CACHE", &cache);
    let output = command.output().expect("this program runs");
    std::fs::remove_dir_all(&cache).expect("the cache is there");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn cache() -> PathBuf {
    std::env::temp_dir().join(format!("resident-compiling-{}", std::process::id()))
}

fn compile(source: usize, is_checked: bool) {
    let include = if SOURCES[source].1.contains("half") { "#include <cuda_fp16.h>\n" } else { "" };
    let text = format!(
        "{include}extern \"C\" __global__ void k(int *x) {{\n\
         \x20   int i = threadIdx.x;\n    {}\n}}",
        SOURCES[source].1
    );
    // SAFETY: it does not run.
    let kernel = unsafe { Kernel::<(InOut<i32>,)>::new("k").cuda(&*text) };
    let device =
        if is_checked { Device::emulated(Emulation::new().sanitize(true)) } else { Device::cpu() };
    kernel.prepare(&device).expect("it compiles");
    println!("{}", seconds_of_children());
}

/// User and system time of the processes that this one has started and that have ended.
fn seconds_of_children() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the function writes to memory of this type.
    let ended = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) };
    assert_eq!(ended, 0, "the times of processes are known");
    // SAFETY: zeroes are a value of this type, and the function has written another one.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
