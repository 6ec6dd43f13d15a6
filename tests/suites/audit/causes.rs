//! Findings that programs must not get, each beside a twin that must, and one finding for each
//! cause.

use std::sync::mpsc;

use resident::audit::{self, DocumentFinding, Report};
use resident::ndarray::{Array1, Ix1};
use resident::{Device, DeviceArray, Grid, In, InOut, Kernel, Out, Result, SmartArray};
use support::lab::lab;
use tracing_subscriber::layer::SubscriberExt;

use crate::{copy, double, grid};

fn report(work: impl FnOnce() -> Result<()>) -> Result<Report> {
    let (outcome, report) = audit::capture(work);
    outcome.map(|()| report)
}

fn of_kind(report: &Report, kind: &str) -> Vec<DocumentFinding> {
    let mut findings = report.findings();
    findings.retain(|finding| finding.kind == kind);
    findings
}

#[track_caller]
fn only(report: &Report, kind: &str) -> DocumentFinding {
    let found = of_kind(report, kind);
    let [finding] = &found[..] else { panic!("one {kind}: {:?}", report.findings()) };
    finding.clone()
}

/// Forty rounds: a launch if the rounds have one, and a read of what it made.
fn converge(device: &Device, launches: bool) -> Result<()> {
    let stream = device.stream();
    let mut residual = SmartArray::from(vec![1.0_f32; 64]).named("residual");
    double().launch_on(&stream, grid(), (&mut residual,))?;
    for index in 0..40 {
        if launches {
            double().launch_on(&stream, grid(), (&mut residual,))?;
        }
        residual.get(index)?;
    }
    Ok(())
}

#[test]
fn copies_between_launches_cannot_be_one_and_copies_without_can() -> Result<()> {
    // Subscribers of single threads miss events that other threads were first to meet.
    support::own_process!();
    let device = lab();
    assert_eq!(of_kind(&report(|| converge(&device, true))?, "small_copies"), []);
    assert_eq!(only(&report(|| converge(&device, false))?, "small_copies").count, 39);
    // A ledger with a layer sees no launches: it says nothing.
    let ledger = audit::Ledger::new();
    let subscriber = tracing_subscriber::registry().with(ledger.layer());
    tracing::subscriber::with_default(subscriber, || converge(&device, true))?;
    assert!(ledger.report().traffic().to_host.count >= 40);
    assert_eq!(ledger.report().findings(), []);
    Ok(())
}

/// Forty reads by this thread; between them another thread launches, or does something else.
fn read_by_turns(launches: bool) -> Result<Report> {
    let device = lab();
    let mut shared = SmartArray::from(vec![1.0_f32; 64]).named("shared");
    double().launch_on(&device.stream(), grid(), (&mut shared,))?;
    let shared = std::sync::Mutex::new(shared);
    let (go, on_go) = mpsc::channel::<()>();
    let (done, on_done) = mpsc::channel::<()>();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let done = done;
            for () in on_go {
                if launches {
                    let mut array = shared.lock().expect("no panic");
                    double().launch_on(&device.stream(), grid(), (&mut *array,)).expect("it can");
                }
                done.send(()).expect("somebody waits");
            }
        });
        let go = go;
        report(|| {
            (0..40).try_for_each(|index| {
                go.send(()).expect("somebody waits");
                on_done.recv().expect("the other thread lives");
                shared.lock().expect("no panic").get(index).map(drop)
            })
        })
    })
}

#[test]
fn copies_between_launches_of_another_thread_cannot_be_one() -> Result<()> {
    assert_eq!(of_kind(&read_by_turns(true)?, "small_copies"), []);
    assert_eq!(only(&read_by_turns(false)?, "small_copies").count, 39);
    Ok(())
}

/// From outside nobody can see whether the host needs all that comes down, so the finding is about
/// a condition; with an array for each direction there is none.
#[test]
fn frames_in_place_are_told_of_under_a_condition_and_frames_in_two_arrays_are_not() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let fill = |frame: &mut [f32], round: usize| {
        frame.iter_mut().enumerate().for_each(|(at, x)| *x = (round * at % 7) as f32);
    };
    let mut saved = 0.0;
    let in_place = report(|| {
        let mut frame = SmartArray::<f32, Ix1>::zeros(1000).named("frame");
        for round in 0..20 {
            let mut on_host = frame.host_mut()?;
            saved += on_host.sum();
            fill(on_host.as_slice_mut().expect("one run"), round);
            drop(on_host);
            double().launch_on(&stream, grid(), (&mut frame,))?;
        }
        Ok(())
    })?;
    let change = only(&in_place, "bounce").change;
    assert!(change.starts_with("If the host's work between the launches can be done"), "{change}");
    let in_two = report(|| {
        let (mut frame, mut result) =
            (SmartArray::<f32, Ix1>::zeros(1000), SmartArray::<f32, Ix1>::zeros(1000));
        for round in 0..20 {
            fill(frame.host_overwrite()?.as_slice_mut().expect("one run"), round);
            copy().launch_on(&stream, grid(), (&frame, &mut result))?;
            saved += result.host()?.sum();
        }
        Ok(())
    })?;
    assert_eq!(in_two.findings(), []);
    Ok(())
}

#[test]
fn arrays_of_one_line_are_one_finding() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let seen = report(|| {
        for _ in 0..300 {
            let mut array = SmartArray::from(vec![1.0_f32; 100]);
            for _ in 0..4 {
                double().launch_on(&stream, grid(), (&mut array,))?;
                array.host_mut()?[0] += 1.0;
            }
        }
        Ok(())
    })?;
    let finding = only(&seen, "bounce");
    assert_eq!(seen.findings().len(), 1);
    assert_eq!((finding.count, finding.bytes), (300 * 6, 300 * 6 * 400));
    assert!(finding.message.starts_with("300 arrays \"f32"), "{}", finding.message);
    assert!(finding.message.contains("900 times"), "{}", finding.message);
    // Two arrays of two names are two.
    let two = report(|| {
        for name in ["one", "two"] {
            let mut array = SmartArray::from(vec![1.0_f32; 100]).named(name);
            for _ in 0..4 {
                double().launch_on(&stream, grid(), (&mut array,))?;
                array.host_mut()?[0] += 1.0;
            }
        }
        Ok(())
    })?;
    assert_eq!(of_kind(&two, "bounce").len(), 2);
    Ok(())
}

#[test]
fn uploads_of_arrays_that_are_dropped_unused() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let prefetched = |uses: bool| {
        report(|| {
            for _ in 0..50 {
                let mut array = SmartArray::from(vec![1.0_f32; 100]).named("unused");
                array.prefetch(&stream)?;
                if uses {
                    double().launch_on(&stream, grid(), (&mut array,))?;
                }
            }
            Ok(())
        })
    };
    let finding = only(&prefetched(false)?, "unused_upload");
    assert_eq!((finding.count, finding.bytes), (50, 50 * 400));
    assert!(finding.message.starts_with("50 arrays \"unused\" are copied to"), "{finding:?}");
    assert_eq!(prefetched(true)?.findings(), []);
    // Explicit arrays, of which one is used by a launch, and one is copied elsewhere.
    let here = Array1::<f32>::ones(100);
    let explicit =
        report(|| (0..50).try_for_each(|_| DeviceArray::from_host_on(&stream, &here).map(drop)))?;
    assert_eq!(only(&explicit, "unused_upload").count, 50);
    let used = report(|| {
        let mut there = DeviceArray::from_host_on(&stream, &here)?;
        double().launch_on(&stream, grid(), (&mut there,))?;
        DeviceArray::from_host_on(&stream, &here)?.copy_to_host().map(drop)
    })?;
    assert_eq!(used.findings(), []);
    // What still lives may be used later, and what another thread has used was.
    let alive = SmartArray::from(vec![1.0_f32; 100]);
    assert_eq!(report(|| alive.prefetch(&stream))?.findings(), []);
    let elsewhere = report(|| {
        let array = SmartArray::from(vec![1.0_f32; 100]);
        array.prefetch(&stream)?;
        std::thread::scope(|threads| {
            let used = threads.spawn(|| array.gpu_on(&stream).map(drop));
            used.join().expect("no panic")
        })
    })?;
    assert_eq!(elsewhere.findings(), []);
    Ok(())
}

#[test]
fn downloads_of_arrays_that_are_dropped_unread() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let program = |reads: bool| {
        report(|| {
            let mut array = SmartArray::from(vec![1.0_f32; 100]).named("unread");
            double().launch_on(&stream, grid(), (&mut array,))?;
            array.prefetch_host()?;
            if reads { array.into_array().map(drop) } else { Ok(()) }
        })
    };
    assert_eq!(only(&program(false)?, "unread_download").bytes, 400);
    assert_eq!(program(true)?.findings(), []);
    Ok(())
}

/// Rounds that make their weights anew, of equal or of different contents.
fn weights(compares: bool, step: f32) -> Result<Report> {
    let device = lab();
    let stream = device.stream();
    let mut result = SmartArray::<f32, Ix1>::zeros(2000);
    report(|| {
        let _guard = compares.then(audit::compare_contents);
        for round in 0..10 {
            let weights = SmartArray::from(vec![step * round as f32; 2000]).named("weights");
            copy().launch_on(&stream, grid(), (&weights, &mut result))?;
        }
        Ok(())
    })
}

#[test]
fn equal_contents_that_are_uploaded_again_in_each_round() -> Result<()> {
    let finding = only(&weights(true, 0.0)?, "repeated_upload");
    assert_eq!((finding.count, finding.bytes), (9, 9 * 8000));
    assert_eq!(finding.array.as_deref(), Some("weights"));
    assert_eq!(weights(true, 1.0)?.findings(), [], "each round has other weights");
    let device = lab();
    let explicit = |step: f32| {
        let mut result = SmartArray::<f32, Ix1>::zeros(2000);
        report(|| {
            let _guard = audit::compare_contents();
            for round in 0..10 {
                let here = Array1::from_elem(2000, step * round as f32);
                let weights = DeviceArray::from_host_on(&device.stream(), &here)?;
                copy().launch_on(&device.stream(), grid(), (&weights, &mut result))?;
            }
            Ok(())
        })
    };
    assert_eq!(only(&explicit(0.0)?, "repeated_upload").bytes, 9 * 8000);
    assert_eq!(explicit(1.0)?.findings(), []);
    // Nobody asked: the report says so, and how to ask.
    let not_compared = weights(false, 0.0)?;
    assert_eq!(not_compared.findings(), []);
    let note = "contents were not compared";
    assert!(not_compared.to_string().contains(note), "{not_compared}");
    assert!(!weights(true, 1.0)?.to_string().contains(note));
    assert_eq!(not_compared.to_document().compared_contents, Some(false));
    Ok(())
}

#[test]
fn tiny_arrays_that_could_be_scalars() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let add = Kernel::<(In<f32>, InOut<f32>)>::new("add")
        .host(|_grid, (by, xs)| xs.iter_mut().for_each(|x| *x += by[0]));
    let all = SmartArray::from(vec![1.0_f32; 400]);
    let program = |one_by_one: bool| {
        let mut state = SmartArray::from(vec![1.0_f32; 100]);
        report(|| {
            for round in 0..100 {
                if one_by_one {
                    let by = SmartArray::from(vec![round as f32; 4]).named("parameters");
                    add.launch_on(&stream, Grid::cover(1), (&by, &mut state))?;
                } else {
                    let by = all.slice(resident::ndarray::s![4 * round..4 * round + 4]);
                    all.prefetch(&stream)?;
                    add.launch_on(&stream, Grid::cover(1), (&by, &mut state))?;
                }
            }
            Ok(())
        })
    };
    let finding = only(&program(true)?, "tiny_arguments");
    assert_eq!((finding.count, finding.bytes), (100, 0));
    assert!(finding.change.contains("scalars") && finding.change.contains("slice"), "{finding:?}");
    assert_eq!(of_kind(&program(false)?, "tiny_arguments"), []);
    // A result that goes down each time is no parameter.
    let sum =
        Kernel::<(In<f32>, Out<f32>)>::new("sum").host(|_grid, (xs, sum)| sum[0] = xs.iter().sum());
    let (state, mut total) = (SmartArray::from(vec![1.0_f32; 100]), SmartArray::zeros(1));
    let results = report(|| {
        (0..100).try_for_each(|_| {
            sum.launch_on(&stream, grid(), (&state, &mut total))?;
            total.get(0).map(drop)
        })
    })?;
    assert_eq!(results.findings(), []);
    Ok(())
}

#[test]
fn a_finding_in_the_summary_has_its_bytes_its_change_and_its_lines() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let name = format!("\u{202e}evil\u{1b}[31m{}", "x".repeat(5000));
    let mut array = SmartArray::from(vec![1.0_f32; 1000]).named(&name);
    let seen = report(|| {
        (0..10).try_for_each(|_| {
            double().launch_on(&stream, grid(), (&mut array,))?;
            array.host_mut().map(drop)
        })
    })?;
    let text = seen.to_string();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let finding = only(&seen, "bounce");
    assert!(words.contains("It would save 72_000 bytes, 18 copies"), "{text}");
    assert!(words.contains(&finding.change), "{text}");
    assert!(finding.sites.iter().all(|site| words.contains(&**site)), "{text}");
    assert!(text.contains("\\u{202e}evil\\u{1b}[31m") && !text.contains('\u{202e}'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.len() < 3000, "{} bytes", text.len());
    Ok(())
}

#[test]
fn a_report_of_nothing_is_one_sentence() {
    let ((), nothing) = audit::capture(|| ());
    assert_eq!(nothing.to_string(), "Nothing was copied, launched or waited for.\n");
}
