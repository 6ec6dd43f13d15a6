//! Section 7: what errors are.

use resident::{Error, Grid, InOut, Kernel, SmartArray};

use crate::lab::lab;

#[test]
fn an_error_is_small_cloneable_and_shared() {
    fn shared<T: Clone + Send + Sync + std::error::Error + PartialEq + 'static>() {}
    shared::<Error>();
    assert!(size_of::<Error>() <= 24, "{} bytes", size_of::<Error>());
    assert!(size_of::<resident::Result<()>>() <= 24);
}

#[test]
fn an_error_prints_its_fields_and_outlives_what_it_is_about() {
    let error = {
        let array = SmartArray::<f32, _>::uninit(3).named("gone");
        array.host().map(drop).expect_err("never written")
    };
    let copy = error.clone();
    assert_eq!(copy, error);
    drop(error);
    let Error::Uninitialised { array, operation, part, .. } = &copy else { panic!("{copy:?}") };
    assert_eq!((&**array, &**operation, &**part), ("\"gone\"", "host", "all"));
    assert!(copy.to_string().contains("\"gone\"") && format!("{copy:?}").contains("Uninitialised"));
}

#[test]
fn errors_go_through_the_question_mark_of_others() {
    fn boxed() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Kernel::<(InOut<f32>,)>::new("bare").launch_on(&lab().stream(), Grid::cover(1), (&mut SmartArray::<f32, _>::zeros(1),))?;
        Ok(())
    }
    assert!(boxed().expect_err("no body").to_string().contains("bare"));
    fn ours() -> resident::Result<f32> {
        Ok(SmartArray::<f32, _>::ones(3).host()?.sum())
    }
    assert_eq!(ours(), Ok(3.0));
}

#[test]
fn all_variants_can_be_matched_without_their_hidden_fields() {
    fn word(error: &Error) -> &'static str {
        match error {
            Error::NoDevice { .. } => "no device",
            Error::OutOfMemory { .. } => "out of memory",
            Error::Uninitialised { .. } => "uninitialised",
            Error::LostUpdate { .. } => "lost update",
            Error::Lost { array: _, operation: _, site: _, cause: _ } => "lost",
            Error::DeviceLost { .. } => "device lost",
            Error::NoKernelBody { .. } => "no kernel body",
            Error::Requirement { .. } => "requirement",
            Error::NotContiguous { .. } => "not contiguous",
            Error::LayoutMismatch { .. } => "layout mismatch",
            Error::Shape { .. } => "shape",
            Error::Grid { .. } => "grid",
            Error::InsideKernel { .. } => "inside kernel",
            Error::Backend { .. } => "backend",
            _ => "another",
        }
    }
    let error = SmartArray::<f32, _>::zeros(3).get(7).expect_err("outside");
    assert_eq!(word(&error), "shape");
}
