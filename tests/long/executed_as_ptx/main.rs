//! The launches of CUDA C that other suites have recorded in the folder `RESIDENT_TEST_PTX`: each
//! is compiled by a real NVRTC, executed as PTX by an interpreter, and compared with what the code
//! compiled for the host computed, all elements by their bits. That needs `RESIDENT_NVRTC` too;
//! without these variables, nothing is done.
//!
//! NVRTC gets `--fmad=false`, since the host's compiler contracts no products and sums either. What
//! differs must be listed in `known.rs`, with the reason.

#![cfg(all(target_os = "linux", feature = "cuda"))]

mod compile;
mod compiled_for_gpus;
mod known;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;

use rayon::prelude::*;
use resident_ptx_interpreter::compare::Difference;
use resident_ptx_interpreter::recorded::{Recorded, Source};
use resident_ptx_interpreter::replay::replay;
use resident_ptx_interpreter::{Order, parse};

use crate::compile::ptx_of;
use crate::known::KNOWN;

/// What became of a launch.
#[derive(Clone, PartialEq, Debug)]
enum Outcome {
    Same,
    NotCompiled(String),
    NotRun(String),
    /// The number of elements that differ, the largest distance, and the first of them.
    Differs(usize, Option<u64>, String),
    /// Equal, but not with blocks and threads in descending order.
    DependsOnOrder(String),
}

#[test]
fn recorded_launches_compute_the_same_as_ptx() {
    let variables = [support::recording::VARIABLE, "RESIDENT_NVRTC"];
    let [Some(folder), Some(_)] = variables.map(std::env::var_os) else {
        eprintln!("skipped: {} are not both set", variables.join(" and "));
        return;
    };
    let launches = recorded(Path::new(&folder), "launch");
    assert!(!launches.is_empty(), "{} has recorded launches", folder.display());
    let outcomes = outcomes(&launches);
    let faults = faults(&launches, &outcomes);
    print_summary(&launches, &outcomes);
    assert!(faults.is_empty(), "{} of them:\n{}", faults.len(), faults.join("\n"));
}

/// What the files with this extension have.
fn recorded(folder: &Path, wanted: &str) -> Vec<Recorded> {
    let files = std::fs::read_dir(folder).expect("the folder can be read");
    let mut paths: Vec<_> = files.map(|file| file.expect("as above").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == wanted));
    paths.sort();
    let read = |path| Recorded::from_bytes(&std::fs::read(path).expect("it can be read"));
    paths.iter().map(|path| read(path).expect("a recorded one")).collect()
}

/// What each launch makes, those of one source with one compilation.
fn outcomes(launches: &[Recorded]) -> Vec<Outcome> {
    let mut by_source: HashMap<&Source, Vec<usize>> = HashMap::new();
    for (index, launch) in launches.iter().enumerate() {
        by_source.entry(&launch.source).or_default().push(index);
    }
    let outcomes = Mutex::new(vec![Outcome::Same; launches.len()]);
    by_source.into_par_iter().for_each(|(_, indices)| {
        let compiled = ptx_of(&launches[indices[0]]);
        let module = compiled.map(|(ptx, entry)| (parse(&ptx), entry));
        for index in indices {
            let outcome = match &module {
                Err(log) => Outcome::NotCompiled(log.clone()),
                Ok((Err(what), _)) => Outcome::NotRun(what.clone()),
                Ok((Ok(module), entry)) => {
                    let run = |order| replay(module, entry, &launches[index], order);
                    outcome(run(Order::Ascending), || run(Order::Descending))
                }
            };
            outcomes.lock().expect("no thread panics with it")[index] = outcome;
        }
    });
    outcomes.into_inner().expect("as above")
}

fn outcome(
    ascending: Result<Vec<Difference>, String>,
    descending: impl FnOnce() -> Result<Vec<Difference>, String>,
) -> Outcome {
    match ascending {
        Err(what) => Outcome::NotRun(what),
        Ok(differences) if !differences.is_empty() => {
            let largest = differences.iter().map(|difference| difference.ulp).max().flatten();
            let is_measured = differences.iter().all(|difference| difference.ulp.is_some());
            let ulp = largest.filter(|_| is_measured);
            Outcome::Differs(differences.len(), ulp, describe(&differences[0]))
        }
        Ok(_) => match descending() {
            Err(what) => Outcome::DependsOnOrder(what),
            Ok(differences) => match differences.first() {
                Some(first) => Outcome::DependsOnOrder(describe(first)),
                None => Outcome::Same,
            },
        },
    }
}

fn describe(difference: &Difference) -> String {
    let hex = |bytes: &[u8]| {
        bytes.iter().rev().take(16).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    let Difference { argument, element, host, ptx, ulp } = difference;
    let distance = ulp.map_or(String::new(), |ulp| format!(" ({ulp} ULP)"));
    let (host, ptx) = (hex(host), hex(ptx));
    format!("argument {argument}, element {element}: host {host}, PTX {ptx}{distance}")
}

/// Each launch that differs and is not listed, and each kernel that is listed and does not differ.
fn faults(launches: &[Recorded], outcomes: &[Outcome]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut faults = BTreeMap::new();
    for (launch, outcome) in launches.iter().zip(outcomes) {
        if *outcome == Outcome::Same {
            continue;
        }
        let kernel = launch.source.kernel.as_str();
        match KNOWN.iter().position(|entry| entry.covers(&launch.source, outcome)) {
            Some(index) => drop(seen.insert(index)),
            None => {
                let text = format!("{kernel}: {outcome:?}");
                faults.entry(kernel).or_insert((text, 0)).1 += 1;
            }
        }
    }
    let faults = faults.into_values().map(|(text, count)| format!("{text} ({count} launches)"));
    let unused = KNOWN.iter().enumerate().filter(|(index, _)| !seen.contains(index));
    let unused = unused.map(|(_, entry)| {
        format!("{entry:?}: listed, but no launch is so; remove it from the list")
    });
    faults.chain(unused).collect()
}

fn print_summary(launches: &[Recorded], outcomes: &[Outcome]) {
    let sources: BTreeSet<&Source> = launches.iter().map(|launch| &launch.source).collect();
    let same = outcomes.iter().filter(|outcome| **outcome == Outcome::Same).count();
    println!("{same} of {} launches of {} kernels are equal", launches.len(), sources.len());
    for (launch, outcome) in launches.iter().zip(outcomes) {
        if *outcome != Outcome::Same {
            let text = format!("{outcome:?}");
            println!("{}: {}", launch.source.kernel, text.chars().take(300).collect::<String>());
        }
    }
}
