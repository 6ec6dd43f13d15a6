//! No two files of the library import each other, except in the engine core of each backend.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::modules::Crate;
use crate::sources::{none, root};

/// Folders that may contain one import circle, of at most this many files.
const ENGINE_CORES: [(&str, usize); 2] = [("crates/gpu/", 3), ("crates/embedded/", 4)];

/// Circles of two and more files: the strongly connected components of the graph.
fn circles(edges: &BTreeMap<&str, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|file| (*file, reached_from(file, edges))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (file, theirs) in &reached {
        let reaches_back =
            |other: &&&str| reached.get(**other).is_some_and(|all| all.contains(file));
        let circle: Vec<String> =
            theirs.iter().filter(reaches_back).map(|other| (*other).to_owned()).collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

fn reached_from<'a>(start: &str, edges: &'a BTreeMap<&str, BTreeSet<String>>) -> BTreeSet<&'a str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(file) = open.pop() {
        for next in edges.get(file).into_iter().flatten() {
            if reached.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    reached
}

/// Whether the circle lies in a folder that may contain one of its size.
fn is_engine_core(circle: &[String]) -> bool {
    ENGINE_CORES.iter().any(|(folder, files_max)| {
        circle.len() <= *files_max && circle.iter().all(|file| file.starts_with(folder))
    })
}

/// The edges inside a circle, one line each.
fn described(circle: &[String], edges: &BTreeMap<&str, BTreeSet<String>>) -> String {
    let inner = |file: &String| {
        let named = edges[file.as_str()].iter().filter(|other| circle.contains(other));
        format!("  {file} -> {}", named.cloned().collect::<Vec<_>>().join(", "))
    };
    let lines: Vec<String> = circle.iter().map(inner).collect();
    format!("a circle of {} files:\n{}", circle.len(), lines.join("\n"))
}

/// The library, the crates that it is made of, and the one above it.
fn crates() -> Vec<Crate> {
    let folders = fs::read_dir(root().join("crates")).expect("it is there");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name in UTF-8");
    let parts = folders.map(|entry| format!("crates/{}/src", name(entry.expect("readable"))));
    let text_of = |file: &str| fs::read_to_string(root().join(file)).ok();
    ["src", "mpi/src"]
        .map(str::to_owned)
        .into_iter()
        .chain(parts)
        .map(|folder| Crate::read(folder, &text_of))
        .collect()
}

#[test]
fn files_do_not_need_each_other_outside_the_engine_cores() {
    for part in crates() {
        let edges = part.edges();
        let circles = circles(&edges);
        let too_much = circles.iter().filter(|circle| !is_engine_core(circle));
        none(too_much.map(|circle| described(circle, &edges)).collect());
        for (folder, _) in ENGINE_CORES {
            let cores =
                circles.iter().filter(|circle| circle.iter().all(|file| file.starts_with(folder)));
            assert!(cores.count() <= 1, "{folder} has more than one core");
        }
    }
}

#[test]
fn circles_are_found_through_re_exports_and_relative_paths() {
    let text_of = |file: &str| {
        let text = match file {
            "src/lib.rs" => "mod a; mod b; #[cfg(test)] mod tests { use crate::b::deep::Z; }",
            "src/a.rs" => "use crate::b::Y; pub struct X(Y);",
            "src/b/mod.rs" => "mod deep; mod flat; pub use deep::{Y, Z as W};",
            "src/b/deep.rs" => "pub struct Y; pub struct Z; fn f() { super::flat::g() }",
            "src/b/flat.rs" => "use crate::a; pub fn g(_: a::X) {}",
            _ => return None,
        };
        Some(text.to_owned())
    };
    let example = Crate::read("src".to_owned(), &text_of);
    let found = circles(&example.edges());
    assert_eq!(found, [["src/a.rs", "src/b/deep.rs", "src/b/flat.rs"]]);
}
