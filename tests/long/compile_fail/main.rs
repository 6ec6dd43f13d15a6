//! Programs that must not compile. Each has a twin: the same program without the error, which
//! compiles and runs.
//!
//! The expected messages are rustc's; `TRYBUILD=overwrite cargo test --test compile_fail` rewrites
//! them. The twins are modules of this test program, so that they need no separate build.

#[path = "pass"]
mod twins {
    #[path = "a_body_that_borrows_from_its_surroundings.rs"]
    pub(super) mod a_body_that_borrows_from_its_surroundings;
    #[path = "a_budget_for_a_task.rs"]
    pub(super) mod a_budget_for_a_task;
    #[path = "a_budget_for_nothing.rs"]
    pub(super) mod a_budget_for_nothing;
    #[path = "a_field_of_a_packed_record.rs"]
    pub(super) mod a_field_of_a_packed_record;
    #[path = "a_field_of_another_record.rs"]
    pub(super) mod a_field_of_another_record;
    #[path = "a_field_of_another_type.rs"]
    pub(super) mod a_field_of_another_type;
    #[path = "a_field_that_is_not_there.rs"]
    pub(super) mod a_field_that_is_not_there;
    #[path = "a_field_whose_size_does_not_divide_the_record.rs"]
    pub(super) mod a_field_whose_size_does_not_divide_the_record;
    #[path = "a_signature_without_its_comma.rs"]
    pub(super) mod a_signature_without_its_comma;
    #[path = "an_argument_too_few.rs"]
    pub(super) mod an_argument_too_few;
    #[path = "an_entered_device_sent_to_another_thread.rs"]
    pub(super) mod an_entered_device_sent_to_another_thread;
    #[path = "an_item_beyond_a_field.rs"]
    pub(super) mod an_item_beyond_a_field;
    #[path = "an_ndarray_array_in_our_place.rs"]
    pub(super) mod an_ndarray_array_in_our_place;
    #[path = "bool_as_an_element.rs"]
    pub(super) mod bool_as_an_element;
    #[path = "device_view_outliving_its_array.rs"]
    pub(super) mod device_view_outliving_its_array;
    #[path = "guard_outliving_its_array.rs"]
    pub(super) mod guard_outliving_its_array;
    #[path = "out_given_a_shared_reference.rs"]
    pub(super) mod out_given_a_shared_reference;
    #[path = "overlapping_device_views.rs"]
    pub(super) mod overlapping_device_views;
    #[path = "pending_copy_used_early.rs"]
    pub(super) mod pending_copy_used_early;
    #[path = "read_guard_over_a_launch_that_writes.rs"]
    pub(super) mod read_guard_over_a_launch_that_writes;
    #[path = "record_with_padding.rs"]
    pub(super) mod record_with_padding;
    #[path = "two_exclusive_slices_at_once.rs"]
    pub(super) mod two_exclusive_slices_at_once;
    #[path = "two_fields_that_overlap.rs"]
    pub(super) mod two_fields_that_overlap;
    #[path = "wrong_dimension.rs"]
    pub(super) mod wrong_dimension;
    #[path = "wrong_element.rs"]
    pub(super) mod wrong_element;
}

#[test]
fn invalid_programs_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("fail/*.rs");
    // With a program that compiles, the others are built, not only checked. The assertions of
    // `field!` are evaluated only in a build.
    cases.pass("pass/wrong_element.rs");
}

#[test]
fn the_valid_versions_compile_and_run() -> resident::Result<()> {
    twins::a_body_that_borrows_from_its_surroundings::main();
    twins::a_budget_for_a_task::main();
    twins::a_budget_for_nothing::main();
    twins::a_field_of_a_packed_record::main()?;
    twins::a_field_of_another_record::main()?;
    twins::a_field_of_another_type::main()?;
    twins::a_field_that_is_not_there::main()?;
    twins::a_field_whose_size_does_not_divide_the_record::main()?;
    twins::a_signature_without_its_comma::main()?;
    twins::an_argument_too_few::main()?;
    twins::an_entered_device_sent_to_another_thread::main();
    twins::an_item_beyond_a_field::main()?;
    twins::an_ndarray_array_in_our_place::main()?;
    twins::bool_as_an_element::main()?;
    twins::device_view_outliving_its_array::main()?;
    twins::guard_outliving_its_array::main()?;
    twins::out_given_a_shared_reference::main()?;
    twins::overlapping_device_views::main()?;
    twins::pending_copy_used_early::main()?;
    twins::read_guard_over_a_launch_that_writes::main()?;
    twins::record_with_padding::main()?;
    twins::two_exclusive_slices_at_once::main()?;
    twins::two_fields_that_overlap::main()?;
    twins::wrong_dimension::main()?;
    twins::wrong_element::main()?;
    Ok(())
}

#[test]
fn every_case_has_a_valid_version() {
    let names = |folder: &str| -> std::collections::BTreeSet<String> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = std::fs::read_dir(root).expect("the folder is part of the sources");
        let names = entries
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(".rs")).collect()
    };
    assert_eq!(names("fail"), names("pass"));
}
