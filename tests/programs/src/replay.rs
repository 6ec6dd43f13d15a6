//! Runs programs from bytes as libFuzzer's driver does, in plain tests.

use std::fmt::Debug;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use arbitrary::{Arbitrary, Unstructured};

/// Runs the program in these bytes; if it panics, prints the program.
fn run<P: for<'a> Arbitrary<'a> + Debug>(bytes: &[u8], name: &str, body: impl Fn(&P)) {
    let Ok(program) = P::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&program))) {
        eprintln!("{name} is {program:#?}");
        resume_unwind(panic);
    }
}

/// Runs all inputs in `fuzz/regressions/<target>`; a target that never failed has no such folder.
pub fn kept<P: for<'a> Arbitrary<'a> + Debug>(target: &str, body: impl Fn(&P)) {
    let all = regressions();
    let folder = all.join(target);
    if !folder.exists() {
        return;
    }
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()));
    for entry in entries {
        let path = entry.expect("readable").path();
        run(&fs::read(&path).expect("readable"), &path.display().to_string(), &body);
    }
}

/// The folder of regression inputs: in the tested package, or in the workspace around it.
fn regressions() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = package.ancestors().map(|folder| folder.join("fuzz/regressions"));
    folders.find(|folder| folder.is_dir()).expect("the repository has the folder")
}

/// Runs the programs in this number of random inputs of up to `len_max` bytes. The inputs are the
/// same in every run.
pub fn random<P: for<'a> Arbitrary<'a> + Debug>(inputs: u64, len_max: u64, body: impl Fn(&P)) {
    for input in 0..inputs {
        let mut random = Random(input);
        let len = random.next() % (len_max + 1);
        let bytes: Vec<u8> = (0..len).map(|_| (random.next() >> 56) as u8).collect();
        run(&bytes, &format!("random input {input}"), &body);
    }
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
