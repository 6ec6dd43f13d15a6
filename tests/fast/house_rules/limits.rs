//! What a build and the tree may weigh: `limits.toml` has the limits, at the values of the day on
//! which one was set last. A change that raises one gives its reason in the line.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::sources::{none, root, sources};

/// The limits by name. Each line is `name = number`, and perhaps a comment.
fn limits() -> BTreeMap<String, usize> {
    let lines = include_str!("limits.toml").lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split('#').next()?.split_once('='));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), value.trim().parse().expect("a number")))
        .collect()
}

/// The packages that a command builds for the programs of these packages, with their build scripts.
fn packages(edges: &str, roots: &[&str]) -> usize {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root()).args(["tree", "--offline", "--prefix=none", "--no-dedupe"]);
    command.args(["--format={p}", "--edges", edges]);
    for name in roots {
        command.args(["-p", name]);
    }
    let output = command.output().expect("cargo runs the tests");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = text.lines().filter_map(|line| Some(line.trim().split(" (").next()?.to_owned()));
    names.filter(|name| !name.is_empty()).collect::<BTreeSet<_>>().len()
}

fn lines(folders: &[&str]) -> usize {
    sources(folders).iter().map(|source| source.text.lines().count()).sum()
}

/// Functions and methods that are `pub` in the library's own sources. Those of macros count once.
fn public_functions() -> usize {
    let is_public = |line: &&str| {
        let line = line.trim_start();
        ["pub fn ", "pub const fn ", "pub unsafe fn ", "pub async fn "]
            .iter()
            .any(|start| line.starts_with(start))
    };
    sources(&["src"]).iter().map(|source| source.text.lines().filter(is_public).count()).sum()
}

#[test]
fn nothing_weighs_more_than_its_limit() {
    let limits = limits();
    let product = ["src", "crates", "macros", "mpi", "report"];
    let others = ["tests", "examples", "benches", "fuzz/fuzz_targets"];
    let measured = [
        ("packages_of_first_report", packages("normal,build", &["resident-examples"])),
        ("packages_of_cargo_test", packages("normal,build,dev", &[])),
        ("lines_of_the_product", lines(&product)),
        ("lines_of_tests_and_examples", lines(&others)),
        ("public_functions", public_functions()),
    ];
    let heavy = measured.iter().filter(|(name, value)| *value > limits[*name]);
    let say = |(name, value): &(&str, usize)| {
        format!("{name} is {value}, and limits.toml allows {}", limits[*name])
    };
    none(heavy.map(say).collect());
    // A limit far above what is there limits nothing.
    let loose = measured.iter().filter(|(name, value)| *value * 21 / 20 + 10 < limits[*name]);
    none(loose.map(|one| say(one) + ": lower the limit").collect());
}
