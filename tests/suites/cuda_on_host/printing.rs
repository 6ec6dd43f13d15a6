//! `printf` in kernels: to `tracing` if a subscriber wants it, else to standard output. The tests
//! run in processes of their own, since a subscriber belongs to the process.

use std::sync::{Arc, Mutex};

use resident::{Grid, InOut, Result, SmartArray};
use support::own_process::{self, assert_success};
use support::test_name;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::{device, kernel};

/// Lets a kernel print. `None` if there is no compiler.
fn print() -> Result<Option<()>> {
    let source = r#"
        template <int N, typename T> __global__ void greet(T *x) {
            printf("thread %d has %d\n", threadIdx.x, x[threadIdx.x]);
            if (threadIdx.x == N - 1) printf("%s", "no end of line");
        }
    "#;
    let source = resident::CudaSource::c(source).entry("greet<2, int>");
    let Some(greet) = kernel::<(InOut<i32>,)>("greeting", source) else { return Ok(None) };
    let mut x = SmartArray::from(vec![7, 8]);
    greet.launch_on(&device().stream(), Grid::new(1, 2), (&mut x,))?;
    assert_eq!(x.to_vec()?, [7, 8]);
    Ok(Some(()))
}

#[test]
#[ignore = "prints: run in processes of its own by the test below"]
fn prints() {
    if print().expect("it runs").is_none() {
        println!("thread 0 has 7\nthread 1 has 8\nno end of line");
    }
}

#[test]
fn text_goes_to_standard_output() {
    let output = own_process::run(test_name!(prints), &[]);
    assert_success(&output, "prints");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("thread 0 has 7\nthread 1 has 8\nno end of line"), "{text}");
}

/// Keeps the fields of each event of kernels.
#[derive(Clone, Default)]
struct Keeper(Arc<Mutex<Vec<(String, String)>>>);

impl<S: tracing::Subscriber> Layer<S> for Keeper {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() == "resident::printf" {
            let mut fields = Fields::default();
            event.record(&mut fields);
            self.0.lock().expect("no panic").push((fields.kernel, fields.message));
        }
    }
}

#[derive(Default)]
struct Fields {
    kernel: String,
    message: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "kernel" {
            self.kernel = value.to_owned();
        }
    }
}

#[test]
#[ignore = "sets the process's subscriber: run in processes of its own by the test below"]
fn prints_to_a_subscriber() {
    let keeper = Keeper::default();
    let subscriber = tracing_subscriber::registry().with(keeper.clone());
    tracing::subscriber::set_global_default(subscriber).expect("the first");
    if print().expect("it runs").is_none() {
        return;
    }
    let kept = keeper.0.lock().expect("no panic").clone();
    let kernel = |text: &str| ("greet<2, int>".to_owned(), text.to_owned());
    let expected = ["thread 0 has 7", "thread 1 has 8", "no end of line"].map(kernel);
    assert_eq!(kept, expected);
}

#[test]
fn a_subscriber_gets_the_text_instead() {
    let output = own_process::run(test_name!(prints_to_a_subscriber), &[]);
    assert_success(&output, "prints_to_a_subscriber");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("thread 0"), "{text}");
}
