//! Functions of the host behind a stream's work.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use super::prelude::*;
use resident::HostFunction;

const LEN: usize = 64;

/// A function that sends when it starts and then waits.
fn blocked(stream: &Stream) -> Result<(HostFunction<()>, mpsc::Receiver<()>, mpsc::Sender<()>)> {
    let ((started, has_started), (end, may_end)) = (mpsc::channel(), mpsc::channel());
    let function = stream.launch_host_function(move || {
        started.send(()).expect("the test waits");
        may_end.recv().expect("the test lets it end");
    })?;
    Ok((function, has_started, end))
}

pub(crate) fn a_host_function_runs_after_the_work_before_it(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.new_stream()?);
    let array = lab.gated_numbers(&stream, &gate, LEN)?;
    let function = stream.launch_host_function(move || array.host().map(|view| view.to_owned()))?;
    if lab.has_gates() {
        thread::sleep(std::time::Duration::from_millis(5));
        assert!(!function.is_complete(), "the work waits at the gate");
    }
    gate.open();
    assert_eq!(function.wait()??, counting(LEN) + 1);
    Ok(())
}

pub(crate) fn no_work_waits_for_a_host_function(lab: &Lab) -> Result<()> {
    let stream = lab.new_stream()?;
    let (function, has_started, end) = blocked(&stream)?;
    has_started.recv().expect("it starts");
    let mut array = numbers(LEN);
    lab.add(&stream, 1, &mut array)?;
    stream.synchronize()?;
    assert_eq!(array.host()?[0], 1);
    assert!(!function.is_complete());
    end.send(()).expect("it waits");
    function.wait()
}

pub(crate) fn host_functions_of_a_stream_run_in_order(lab: &Lab) -> Result<()> {
    let stream = lab.new_stream()?;
    let (seen, mut array) = (Arc::new(Mutex::new(Vec::new())), numbers(LEN));
    for number in 0..50 {
        lab.add(&stream, 1, &mut array)?;
        let seen = Arc::clone(&seen);
        // Dropping the handle does not stop the function.
        drop(stream.launch_host_function(move || seen.lock().expect("no panic").push(number))?);
    }
    stream.launch_host_function(|| ())?.wait()?;
    assert_eq!(*seen.lock().expect("no panic"), Vec::from_iter(0..50));
    Ok(())
}

pub(crate) fn a_host_function_may_call_everything(lab: &Lab) -> Result<()> {
    let stream = lab.new_stream()?;
    let mut array = numbers(LEN);
    lab.add(&stream, 1, &mut array)?;
    let (inner, add) = (stream.clone(), lab.kernels().add.clone());
    let function = stream.launch_host_function(move || {
        assert_eq!(array.host()?[0], 1);
        add.launch_on(&inner, over(LEN), (1, &mut array, LEN as u64))?;
        inner.synchronize()?;
        inner.device().synchronize()?;
        let next = inner.launch_host_function(move || array.host().map(|view| view[0]))?;
        Ok::<_, Error>(next)
    })?;
    assert_eq!(function.wait()??.wait()??, 2);
    Ok(())
}

pub(crate) fn a_host_function_is_awaited(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.new_stream()?);
    let array = lab.gated_numbers(&stream, &gate, LEN)?;
    let mut function = stream.launch_host_function(|| 7)?;
    let waiting = stream.launch_host_function(|| 8)?;
    let waiting = thread::spawn(move || block_on(waiting));
    gate.open();
    assert_eq!(block_on(&mut function)?, 7);
    let again = block_on(&mut function).unwrap_err().to_string();
    assert!(again.contains("its result was taken before"), "{again}");
    assert_eq!(waiting.join().expect("no panic")?, 8);
    assert_eq!(array.host()?[0], 1);
    Ok(())
}

pub(crate) fn host_functions_that_panic_harm_nothing(lab: &Lab) -> Result<()> {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("dropped on purpose");
        }
    }
    let stream = lab.new_stream()?;
    let panics = stream.launch_host_function(|| panic!("on purpose: {}", 7))?;
    let error = panics.wait().unwrap_err().to_string();
    assert!(error.contains("on purpose: 7") && error.contains("host_functions.rs"), "{error}");
    let (function, has_started, end) = blocked(&stream)?;
    let result = stream.launch_host_function(|| PanicsWhenDropped)?;
    drop(result);
    // On a seeded device the function starts although nothing waits, since no work is before it.
    has_started.recv().expect("it starts");
    end.send(()).expect("it waits");
    function.wait()?;
    assert_eq!(stream.launch_host_function(|| 5)?.wait()?, 5);
    Ok(())
}

pub(crate) fn a_host_function_cannot_wait_for_itself(lab: &Lab) -> Result<()> {
    let (stream, other) = (lab.new_stream()?, lab.new_stream()?);
    let inner = stream.clone();
    let function = stream.launch_host_function(move || {
        let error = inner.launch_host_function(|| ())?.wait().unwrap_err();
        other.launch_host_function(|| ())?.wait()?;
        Ok::<_, Error>(error.to_string())
    })?;
    let text = function.wait()??;
    assert!(text.contains("must return before the other one starts"), "{text}");
    // The function that was refused a wait runs now, and lets go of the stream.
    stream.launch_host_function(|| ())?.wait()
}

pub(crate) fn streams_with_host_functions_come_and_go(lab: &Lab) -> Result<()> {
    let functions = (0..40)
        .map(|_| {
            let (stream, mut array) = (lab.new_stream()?, numbers(LEN));
            lab.add(&stream, 1, &mut array)?;
            stream.launch_host_function(move || array.host().map(|view| view[1]))
        })
        .collect::<Result<Vec<_>>>()?;
    for function in functions {
        assert_eq!(function.wait()??, 2);
    }
    Ok(())
}
