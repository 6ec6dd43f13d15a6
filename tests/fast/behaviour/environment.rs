//! Environment variables: which are set, and what is said of unknown ones.

use support::prelude::*;

/// What programs say that set a variable and open devices.
fn said(variable: &str, value: &str) -> String {
    let test = test_name!(opens_devices);
    let output = own_process::run(test, &[(variable, value)]);
    assert_success(&output, test);
    String::from_utf8(output.stderr).expect("text")
}

#[test]
#[ignore = "run in processes of its own by the tests below"]
fn opens_devices() {
    for device in [Device::current().expect("the variables are right"), Device::cpu()] {
        device.stream().synchronize().expect("it works");
    }
}

/// Written apart, so that no test of names finds it.
const MISSPELT: &str = concat!("RESIDENT_", "SANITISE");

#[test]
fn an_unknown_variable_is_told_once_and_has_no_effect() {
    let told = said(MISSPELT, "1");
    let complaint = format!("resident: {MISSPELT} is set, which is no variable of this library");
    assert_eq!(told.matches(&complaint).count(), 1, "{told}");
    assert!(told.contains("did you mean RESIDENT_SANITIZE?"), "{told}");
    assert!(!said("RESIDENT_SANITIZE", "off").contains("resident: "), "it is known");
}

#[test]
fn a_variable_that_is_empty_is_not_set() {
    for variable in ["RESIDENT_DEVICE", "RESIDENT_SANITIZE", "RESIDENT_AUDIT"] {
        assert!(!said(variable, "").contains(variable), "{variable}");
    }
}

#[test]
fn spaces_around_the_words_of_a_list_do_not_matter() {
    for value in [" summary , no-arguments ", " Summary ", "SUMMARY,No-Arguments"] {
        assert!(!said("RESIDENT_AUDIT", value).contains("is ignored"), "{value}");
    }
}
