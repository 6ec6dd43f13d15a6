//! All environment variables whose names start with `RESIDENT_`, and what looks like one of them.

/// An environment variable.
#[derive(Debug)]
pub struct Variable {
    /// Its name. That of a group ends with `_`.
    pub name: &'static str,
    /// What it may be.
    pub expected: &'static str,
    /// What holds if it is not set.
    pub default: &'static str,
    /// The file that tells programmers of it.
    pub documented: &'static str,
}

const fn variable(
    name: &'static str,
    expected: &'static str,
    default: &'static str,
    documented: &'static str,
) -> Variable {
    Variable { name, expected, default, documented }
}

const PAGE: &str = "docs/guide/configuration.md";
const MPI: &str = "mpi/src/lib.rs";
const OF_TESTS: &str = "CONTRIBUTING.md";
const LONG_CHECKS: &str = "scripts/long-checks";
const SWITCH: &str = "1, true, yes or on, or else 0, false, no or off";
const FILE: &str = "a file";

/// The variables of the library, of `resident-mpi`, of the tests and of the scripts.
pub const VARIABLES: &[Variable] = &[
    variable("RESIDENT_AUDIT", "words with commas between them", "no report", PAGE),
    variable("RESIDENT_DEVICE", "cpu, cuda:N or hip:N", "the first GPU, else cpu", PAGE),
    variable("RESIDENT_CACHE", "a folder, or off", "in the user's cache folder", PAGE),
    variable("RESIDENT_SANITIZE", SWITCH, "off", PAGE),
    variable("RESIDENT_CPU_KERNELS", "cuda or host", "host", PAGE),
    variable("RESIDENT_LAUNCH_TIMEOUT", "a number of seconds above 0", "no limit", PAGE),
    variable("RESIDENT_COMPILE_FOR", "architectures with commas between them", "none", PAGE),
    variable("RESIDENT_CXX", "a C++ compiler", "c++, clang++ or g++", PAGE),
    variable("RESIDENT_COMPILE_TIMEOUT", "a number of seconds above 0", "300", PAGE),
    variable("RESIDENT_NVRTC", FILE, "found by its name", PAGE),
    variable("RESIDENT_HIP", FILE, "found by its name", PAGE),
    variable("RESIDENT_HIPRTC", FILE, "found by its name", PAGE),
    variable("RESIDENT_HIP_CHECK", SWITCH, "off", PAGE),
    variable("RESIDENT_COHERENT", SWITCH, "on for NVIDIA GPUs with the host's page tables", PAGE),
    variable("RESIDENT_GRAPHS", SWITCH, "on", PAGE),
    variable("RESIDENT_PINNED_MAX", "a number of bytes", "an eighth of the memory", PAGE),
    variable("RESIDENT_STAGING_THREADS", "a number from 0 to 1024", "up to 7", PAGE),
    variable("RESIDENT_CHUNK_BYTES", "a number of bytes", "4M", PAGE),
    variable("RESIDENT_CHUNKS_MAX", "a number", "8", PAGE),
    variable("RESIDENT_COPY_CALL_BYTES", "a number", "150000", PAGE),
    variable("RESIDENT_COPY_DEVICE_ROW_BYTES", "a number", "32", PAGE),
    variable("RESIDENT_COPY_ROW_BYTES", "a number", "256", PAGE),
    variable("RESIDENT_MPI", "host, device or nccl", "found by a test", MPI),
    variable("RESIDENT_MPI_TIMEOUT", "a number of seconds above 0", "300", MPI),
    variable("RESIDENT_MPI_SELF_TEST", "set", "not set", "mpi/src/self_test.rs"),
    variable("RESIDENT_MPIRUN", "a program", "mpirun", "mpi/README.md"),
    variable("RESIDENT_MPI4PY", "a Python", "nothing is compared", "mpi/README.md"),
    variable("RESIDENT_MPI_BENCH", "set", "not set", "mpi/benches/exchange/main.rs"),
    variable("RESIDENT_MPI_TEST_", "of tests", "not set", "mpi/tests/processes/launch.rs"),
    variable("RESIDENT_TEST_", "of tests", "not set", OF_TESTS),
    variable("RESIDENT_MUTANT", "of tests", "not set", "scripts/mutants"),
    variable("RESIDENT_MUTANTS_", "of tests", "not set", "scripts/mutants"),
    variable("RESIDENT_MODEL_CASES", "a number", "a sample", OF_TESTS),
    variable("RESIDENT_SWEEP_SEEDS", "a number", "a sample", OF_TESTS),
    variable("RESIDENT_SWEEP_ALL", "1", "a sample", OF_TESTS),
    variable("RESIDENT_LARGE", "set", "not set", OF_TESTS),
    variable("RESIDENT_REQUIRE_GPU", "set", "not set", OF_TESTS),
    variable("RESIDENT_REAL_DRIVER", "set, and not 0", "not set", OF_TESTS),
    variable("RESIDENT_DEFECTS_ON", "a device", "not set", "scripts/gpu/defects.py"),
    variable(
        "RESIDENT_STAND_IN_",
        "of tests",
        "not set",
        "tests/drivers/stand_in/nccl/processes.rs",
    ),
    variable("RESIDENT_SOAK_", "a number", "short", "tests/long/sweeps/soak.rs"),
    variable("RESIDENT_STRESS_", "a number", "short", "tests/long/sweeps/stress.rs"),
    variable("RESIDENT_FUZZ_SECONDS", "a number", "60", LONG_CHECKS),
];

/// Whether the table has the name, or its group.
pub fn is_known(name: &str) -> bool {
    VARIABLES.iter().any(|one| match one.name.strip_suffix('_') {
        Some(_) => name.starts_with(one.name),
        None => name == one.name,
    })
}

/// What to say of a name, if it looks like one of the library's and is not.
pub(super) fn complaint(name: &str) -> Option<String> {
    if !name.starts_with("RESIDENT_") || is_known(name) {
        return None;
    }
    let names = VARIABLES.iter().map(|one| one.name).filter(|name| !name.ends_with('_'));
    let nearest = names.min_by_key(|known| distance(name, known));
    let meant = nearest.filter(|known| distance(name, known) <= 3);
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
    Some(format!("{name} is set, which is no variable of this library and has no effect{meant}"))
}

/// How many letters must be added, removed or replaced to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, b) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::{complaint, distance};

    #[test]
    fn names_that_are_no_variables_are_told_with_what_was_meant() {
        let said = complaint("RESIDENT_SANITISE").expect("it is misspelt");
        assert!(said.ends_with("did you mean RESIDENT_SANITIZE?"), "{said}");
        let said = complaint("RESIDENT_COLOUR_OF_WALLS").expect("it is unknown");
        assert!(said.ends_with("has no effect"), "{said}");
        for known in ["RESIDENT_AUDIT", "RESIDENT_TEST_PART", "PATH", "RESIDENTS_COUNT"] {
            assert_eq!(complaint(known), None, "{known}");
        }
    }

    #[test]
    fn the_distance_counts_letters() {
        for (one, other, expected) in [("", "ab", 2), ("kitten", "sitting", 3), ("one", "one", 0)] {
            assert_eq!(distance(one, other), expected);
        }
    }
}
