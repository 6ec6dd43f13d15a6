//! Programs that must not compile. Each case is a program that compiles and runs, with the edits
//! that make it wrong, so that it cannot fail for another reason: a line `//~ THIS => THAT` of the
//! case puts `THAT` in the place of `THIS`, which occurs once; `\n` stands for the end of a line.
//! [`mistakes`] has a table of short statements.
//!
//! The expected messages are rustc's, which gets the library that cargo has built for these tests,
//! so that nothing is built a second time. This rewrites them:
//! `RESIDENT_TEST_OVERWRITE=1 cargo test -p resident-compile-fail`.

mod message;
mod mistakes;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::{env, fs};

#[path = "cases"]
mod valid {
    pub(super) mod a_body_for_each_element_that_counts;
    pub(super) mod a_body_for_each_element_without_outputs;
    pub(super) mod a_budget_for_a_task;
    pub(super) mod a_budget_for_nothing;
    pub(super) mod a_chain_that_writes_an_input;
    pub(super) mod a_chain_with_another_intent;
    pub(super) mod a_derived_enum;
    pub(super) mod a_derived_generic_record;
    pub(super) mod a_derived_record_with_a_bool;
    pub(super) mod a_derived_record_with_a_bound;
    pub(super) mod a_derived_record_with_padding;
    pub(super) mod a_derived_record_with_padding_behind;
    pub(super) mod a_derived_record_without_repr;
    pub(super) mod a_field_of_a_packed_record;
    pub(super) mod a_field_of_another_record;
    pub(super) mod a_field_of_another_type;
    pub(super) mod a_field_that_is_not_there;
    pub(super) mod a_field_whose_size_does_not_divide_the_record;
    pub(super) mod a_mapped_array_leaving_its_loan;
    pub(super) mod a_symbol_of_another_recording;
    pub(super) mod an_entered_device_sent_to_another_thread;
    pub(super) mod an_item_beyond_a_field;
    pub(super) mod another_array_in_a_pinned_arrays_place;
    pub(super) mod device_view_outliving_its_array;
    pub(super) mod guard_outliving_its_array;
    pub(super) mod overlapping_device_views;
    pub(super) mod pending_copy_used_early;
    pub(super) mod record_with_padding;
    pub(super) mod two_elements_in_one_operator;
    pub(super) mod two_fields_that_overlap;
}

/// Two tests for each case: as it is, and with its edits.
macro_rules! cases {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        mod runs {
            use std::process::{ExitCode, Termination};

            $(#[test]
            fn $name() {
                assert_eq!(super::valid::$name::main().report(), ExitCode::SUCCESS);
            })*
        }

        mod does_not_compile {
            $(#[test]
            fn $name() {
                super::assert_does_not_compile(stringify!($name));
            })*
        }
    };
}

cases! {
    a_body_for_each_element_that_counts a_body_for_each_element_without_outputs
    a_budget_for_a_task a_budget_for_nothing a_chain_that_writes_an_input
    a_chain_with_another_intent a_derived_enum a_derived_generic_record
    a_derived_record_with_a_bool a_derived_record_with_a_bound a_derived_record_with_padding
    a_derived_record_with_padding_behind a_derived_record_without_repr a_field_of_a_packed_record
    a_field_of_another_record a_field_of_another_type a_field_that_is_not_there
    a_field_whose_size_does_not_divide_the_record a_mapped_array_leaving_its_loan
    a_symbol_of_another_recording an_entered_device_sent_to_another_thread an_item_beyond_a_field
    another_array_in_a_pinned_arrays_place device_view_outliving_its_array
    guard_outliving_its_array overlapping_device_views pending_copy_used_early record_with_padding
    two_elements_in_one_operator two_fields_that_overlap
}

#[test]
fn every_case_is_listed() {
    let files = fs::read_dir(folder()).expect("it is part of the sources");
    let files = files.map(|file| file.expect("readable").path());
    let sources = files.filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    let name = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let mut names: Vec<String> = sources.map(name).collect();
    names.sort();
    assert_eq!(names, NAMES);
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// The program of a case after its edits.
fn edited(name: &str) -> String {
    let case = fs::read_to_string(folder().join(format!("{name}.rs"))).expect("a case");
    let (edits, program): (Vec<&str>, Vec<&str>) =
        case.lines().partition(|line| line.starts_with("//~ "));
    edits.into_iter().fold(program.join("\n") + "\n", |program, edit| {
        let edit = edit["//~ ".len()..].replace("\\n", "\n");
        let (this, that) = edit.split_once(" =>").expect("an edit is `THIS => THAT`");
        assert_eq!(program.matches(this).count(), 1, "{name}: {this:?} in\n{program}");
        program.replace(this, that.strip_prefix(' ').unwrap_or(that))
    })
}

fn assert_does_not_compile(name: &str) {
    let output = compiled(name, &edited(name), libraries());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{name}: rustc accepts it\n{errors}");
    compared(name, &message::portable(&errors), &format!("cases/{name}.stderr"));
}

/// Compares what rustc says with a file of this folder.
fn compared(name: &str, seen: &str, file: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if env::var_os("RESIDENT_TEST_OVERWRITE").is_some() {
        fs::write(&file, seen).expect("it is part of the sources");
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert!(seen == expected, "{name}: rustc says\n{seen}\ninstead of\n{expected}");
}

/// What rustc says of a program: as far as an object file, since constants are evaluated no sooner.
/// From the root of the repository it finds the library's sources, of which messages show lines.
fn compiled(name: &str, program: &str, libraries: &[String]) -> Output {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join(format!("{name}.rs"));
    fs::write(&source, program).expect("cargo made the folder");
    let mut command = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.."))
        .args(["--edition=2024", "--emit=obj", "--diagnostic-width=140"])
        .arg(source)
        .arg(format!("--remap-path-prefix={}=cases", folder.display()))
        .arg("--out-dir")
        .arg(folder)
        .arg(format!("-Ldependency={}", built().display()))
        .args(libraries);
    command.output().expect("rustc runs")
}

/// The folder into which cargo has built this program, and the library.
fn built() -> PathBuf {
    let program = env::current_exe().expect("it has a path");
    program.parent().expect("it is in a folder").to_owned()
}

/// The library, and the `bytemuck` that it was built with: the derives of its traits name it.
/// Others may be beside them, with other features. The library that is linked with this program is
/// the one that cargo has built last.
fn libraries() -> &'static [String] {
    static LIBRARIES: OnceLock<Vec<String>> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let case = fs::read_to_string(folder().join("record_with_padding.rs")).expect("a case");
        let library = newest_first("resident").swap_remove(0);
        let pairs = newest_first("bytemuck").into_iter().map(|other| vec![library.clone(), other]);
        let mut compiling =
            pairs.filter(|pair| compiled("libraries", &case, pair).status.success());
        compiling.next().expect("the library was built with one of them")
    })
}

/// The libraries of this name, as arguments of rustc.
fn newest_first(name: &str) -> Vec<String> {
    let files = fs::read_dir(built()).expect("this program is there");
    let mut files: Vec<fs::DirEntry> = files.map(|file| file.expect("readable")).collect();
    let start = format!("lib{name}-");
    files.retain(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        name.starts_with(&start) && name.ends_with(".rlib")
    });
    let changed = |file: &fs::DirEntry| file.metadata().and_then(|file| file.modified()).ok();
    files.sort_by_key(|file| std::cmp::Reverse(changed(file)));
    files.iter().map(|file| format!("--extern={name}={}", file.path().display())).collect()
}
