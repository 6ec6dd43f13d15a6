//! What recording refuses.

use resident::{Chain, Temp};
use support::bodies::{accumulate, one, plus};
use support::prelude::*;

#[track_caller]
fn assert_unwritten<T: std::fmt::Debug>(outcome: Result<T>, text: &str) {
    match outcome {
        Err(error @ Error::Uninitialised { .. }) => {
            let seen = error.to_string();
            assert!(seen.contains(text) && seen.contains("recording.rs:"), "{seen}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_no_step_has_written_is_not_read() {
    let (plus, accumulate) = (plus(), accumulate());
    let temporary = Chain::<(InOut<u32, Ix1>, Temp<u32, Ix1>)>::record("early", |r, (a, tmp)| {
        r.launch(&plus, one(), (1, tmp.read(), a.write()))
    });
    assert_unwritten(
        temporary,
        "kernel \"plus\" of chain \"early\" reads all of parameter 1, a `Temp`",
    );
    let output = Chain::<(Out<u32, Ix1>, In<u32, Ix1>)>::record("sum", |r, (a, b)| {
        r.launch(&accumulate, one(), (b.read(), a.read_write()))
    });
    assert_unwritten(output, "parameter 0, an `Out`");
    let looked_at =
        Chain::<(Temp<u32, Ix1>,)>::record("go on", |r, (tmp,)| r.repeat_while(tmp.read()));
    assert_unwritten(looked_at, "parameter 0, a `Temp`");
    let written = Chain::<(Out<u32, Ix1>, In<u32, Ix1>)>::record("sum", |r, (a, b)| {
        r.fill(a.write(), 0)?;
        r.launch(&accumulate, one(), (b.read(), a.read_write()))
    });
    assert!(written.is_ok());
}

/// An error that the closure drops is returned all the same.
#[test]
fn a_step_that_is_refused_fails_the_recording() {
    let plus = plus();
    let recorded = Chain::<(InOut<u32, Ix1>, Temp<u32, Ix1>)>::record("early", |r, (a, tmp)| {
        let _dropped = r.launch(&plus, one(), (1, tmp.read(), a.write()));
        r.launch(&plus, one(), (1, a.read(), tmp.write()))
    });
    assert_unwritten(recorded, "parameter 1");
}

#[test]
fn what_a_step_writes_is_passed_to_it_once() {
    let (plus, accumulate) = (plus(), accumulate());
    let outcomes = [
        Chain::<(InOut<u32, Ix1>,)>::record("in place", |r, (a,)| {
            r.launch(&plus, one(), (1, a.read(), a.write()))
        }),
        Chain::<(InOut<u32, Ix1>,)>::record("in place", |r, (a,)| {
            r.launch(&accumulate, one(), (a.read(), a.read_write()))
        }),
        Chain::<(InOut<u32, Ix1>,)>::record("in place", |r, (a,)| r.copy(a.read(), a.write())),
    ];
    for outcome in outcomes {
        let text = outcome.unwrap_err().to_string();
        assert!(text.contains("(chain \"in place\")") && text.contains("parameter 0"), "{text}");
    }
    let reads = Kernel::<(In<u32>, In<u32>, Out<u32>)>::new("sum")
        .host(|_, (a, b, sum)| sum[0] = a[0] + b[0]);
    let twice = Chain::<(In<u32, Ix1>, Out<u32, Ix1>)>::record("twice", |r, (a, b)| {
        r.launch(&reads, one(), (a.read(), a.read(), b.write()))
    });
    let mut sum = SmartArray::<u32, Ix1>::uninit(1);
    let one = SmartArray::from([21_u32]);
    twice.unwrap().launch_on(&Device::cpu().stream(), (&one, &mut sum)).unwrap();
    assert_eq!(sum.get(0), Ok(42));
}

#[test]
fn an_error_of_the_closure_is_returned() {
    let refused = Chain::<(InOut<u32, Ix1>,)>::record("none", |_, _| {
        SmartArray::<u32, Ix1>::uninit(1).get(0).map(drop)
    });
    assert!(matches!(refused, Err(Error::Uninitialised { .. })));
}

#[test]
fn a_chain_without_steps_does_nothing() {
    let none = Chain::<(InOut<u32, Ix1>,)>::record("none", |_, _| Ok(())).unwrap();
    let mut array = SmartArray::from([1_u32]);
    none.launch_on(&Device::cpu().stream(), (&mut array,)).unwrap();
    assert_eq!(array.residency().on(&Device::cpu()), Absent);
    assert_eq!((none.name(), array.get(0)), ("none", Ok(1)));
}
