//! Errors: their variants, messages and source lines.

use support::prelude::*;

#[test]
fn an_error_is_small_cloneable_and_shared() {
    fn shared<T: Clone + Send + Sync + std::error::Error + PartialEq + 'static>() {}
    shared::<Error>();
    assert!(size_of::<Error>() < 128, "{} bytes", size_of::<Error>());
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
    assert!(copy.to_string().contains("\"gone\""));
    assert_eq!(format!("{copy:?}"), copy.to_string());
}

#[test]
fn errors_go_through_the_question_mark_of_others() {
    fn boxed() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Kernel::<(InOut<f32>,)>::new("bare").launch_on(
            &lab().stream(),
            Grid::cover(1),
            (&mut SmartArray::<f32, _>::zeros(1),),
        )?;
        Ok(())
    }
    assert!(boxed().expect_err("no body").to_string().contains("bare"));
    fn ours() -> Result<f32> {
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

#[test]
fn out_of_memory_says_that_a_part_may_take_room_for_its_whole_array() {
    let device = Device::emulated(Emulation::new().memory(1 << 10));
    let array = SmartArray::from(vec![1.0_f64; 1000]);
    let part = array.slice(resident::ndarray::s![..10]);
    let refused = part
        .gpu_on(&device.stream())
        .map(drop)
        .expect_err("the whole array does not fit")
        .to_string();
    assert!(
        refused.contains(
            "use smaller parts, or copies of parts (`part.try_clone()`, `tile.assign(&part)`) of \
             arrays that have memory as a whole"
        ),
        "{refused}"
    );
    let own = part.try_clone().expect("room on the host");
    assert_eq!(own.gpu_on(&device.stream()).map(drop), Ok(()), "as the message advises");
}

#[test]
fn a_lost_update_of_a_constant_is_reported_in_plain_words() {
    let mut array = SmartArray::<f32, _>::ones(3).named("ones");
    let refused = array.host_changed().expect_err("nothing is in memory");
    let Error::LostUpdate { newest, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(newest, "a constant that is not in memory there yet");
    assert!(refused.to_string().contains(
        "its newest contents are a constant that is not in \
        memory there yet, and this call would lose them;"
    ));
    let device = lab();
    drop(array.gpu_mut_on(&device.stream()).expect("enough memory"));
    let refused = array.host_changed().expect_err("the device is newer").to_string();
    assert!(refused.contains(&format!("its newest contents are on {device},")), "{refused}");
    assert_eq!(array.host_overwrite().map(drop), Ok(()));
}

#[test]
fn what_a_kernel_did_not_write_because_a_copy_failed_is_no_fault_of_the_copy() -> Result<()> {
    let copy = Kernel::<(In<u32>, InOut<u32>)>::new("copy")
        .host(|_grid, (from, to)| to.copy_from_slice(from));
    for call in 1..20 {
        let device =
            Device::emulated(Emulation::new().seed(1).poison(false).fail(Fault::nth(call).late()));
        let (from, mut to) = (
            SmartArray::from(vec![1_u32; 4]).named("from"),
            SmartArray::<u32, _>::zeros(4).named("to"),
        );
        copy.launch_on(&device.stream(), Grid::cover(4), (&from, &mut to))?;
        let Err(refused @ Error::Lost { .. }) = to.host().map(drop) else { continue };
        let Error::Lost { operation, .. } = &refused else { unreachable!("it was matched") };
        if &**operation == "upload of \"from\"" {
            let text = refused.to_string();
            assert!(
                text.starts_with(
                    "lost: contents of \"to\" are lost, because upload of \"from\" at "
                ),
                "{text}"
            );
            assert!(
                text.contains(", which was to write them or data they depend on, failed: "),
                "{text}"
            );
            return Ok(());
        }
    }
    panic!("no call was the upload");
}

/// The errors that `synchronize` returns after `work`, on a device on which the work of the call
/// with this number fails late; `None` if there is no such call.
fn reported_late(call: u64, work: impl Fn(&Device) -> Result<()>) -> Option<(String, Vec<Error>)> {
    let device =
        Device::emulated(Emulation::new().seed(1).poison(true).fail(Fault::nth(call).late()));
    let outcome = work(&device);
    let label =
        device.emulation()?.calls().iter().find(|made| made.number == call)?.label.to_string();
    let told = outcome
        .err()
        .into_iter()
        .chain(std::iter::from_fn(|| device.synchronize().err()))
        .collect();
    Some((label, told))
}

#[test]
fn a_failing_poison_is_not_reported() {
    let work = |device: &Device| {
        let mut array = SmartArray::from(vec![1_u32; 4]);
        array.prefetch(&device.stream())?;
        drop(array.host_mut()?);
        device.stream().synchronize()
    };
    let outcomes: Vec<_> = (1..20).map_while(|call| reported_late(call, work)).collect();
    assert!(outcomes.iter().any(|(label, _)| label.starts_with("poison of")), "{outcomes:?}");
    for (label, told) in outcomes {
        let is_told = label.starts_with("upload of");
        assert_eq!(told.len(), usize::from(is_told), "{label}: {told:?}");
    }
}

#[test]
fn a_fill_that_fails_has_words_of_its_own() {
    let work = |device: &Device| {
        let mut array = SmartArray::from(vec![1_u32; 4]);
        array.fill_on(&device.stream(), 7)?;
        drop(array.gpu_on(&device.stream())?);
        let outcome = device.synchronize();
        drop(array.gpu_on(&device.stream())?);
        device.synchronize()?;
        assert_eq!(array.host()?.to_vec(), [7; 4]);
        outcome
    };
    let outcomes: Vec<_> = (1..20)
        .map_while(|call| reported_late(call, work))
        .filter(|(label, _)| label.starts_with("fill of"))
        .collect();
    let Some((_, told)) = outcomes.first() else { panic!("no call was the fill") };
    let text = told.first().expect("the failure is reported").to_string();
    assert!(
        text.contains("the elements still have that constant, and the next use fills them again ("),
        "{text}"
    );
}

/// Asserts that an error names this line of this file, in its `Display` and in its `Debug` format.
#[track_caller]
fn assert_names_line<T>(outcome: Result<T>, line: u32) {
    let Err(error) = outcome else { panic!("the call succeeded") };
    assert_eq!(format!("{error:?}"), error.to_string());
    let place = format!("(called at {}:{line}:", file!());
    assert!(error.to_string().contains(&place), "{error} does not contain {place}");
}

#[test]
fn errors_name_the_line_of_the_call_that_failed() {
    let device = Device::emulated(Emulation::new().memory(16));
    let _here = device.enter();
    let mut array = SmartArray::<f32, _>::uninit(3).named("a");
    assert_names_line(array.host(), line!());
    assert_names_line(array.gpu(), line!());
    assert_names_line(array.get(5), line!());
    assert_names_line(array.assign(&SmartArray::<f32, _>::zeros(4)), line!());
    let scale = Kernel::<(InOut<f32>,)>::new("scale").require("never", |_, _| false);
    assert_names_line(scale.launch(Grid::cover(3), (&mut array,)), line!());
    assert_names_line(scale.prepare(&device), line!());
    assert_names_line(SmartArray::<f64, _>::zeros(3).gpu(), line!());
}

#[test]
fn a_failed_synchronize_names_its_own_line() {
    let stream = Device::emulated(Emulation::new().seed(1)).stream();
    let panics = Kernel::<(InOut<u32>,)>::new("panics").host(|_, _| panic!("a test's panic"));
    let mut array = SmartArray::<u32, _>::zeros(3);
    panics.launch_on(&stream, Grid::cover(3), (&mut array,)).expect("queued");
    assert_names_line(stream.synchronize(), line!());
}
