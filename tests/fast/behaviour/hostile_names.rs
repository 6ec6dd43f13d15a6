//! Names that a terminal would obey: messages escape them, whatever they name.

use std::fmt::{Debug, Display};

use resident::ops::{Elementwise, Reduction};
use resident::{Device, Emulation, Grid, In, InOut, Kernel, Out, SmartArray, audit};

/// A name with an escape sequence, a line break, and a mark that turns the direction of writing.
const NAME: &str = "k\u{1b}[31m\n\u{202e}";

const ESCAPED: &str = "k\\u{1b}[31m\\n\\u{202e}";

/// What an error, and those behind it, say in both forms.
fn said(error: &(impl std::error::Error + 'static)) -> Vec<String> {
    let mut texts = vec![error.to_string(), format!("{error:?}")];
    let mut next = error.source();
    while let Some(cause) = next {
        texts.extend([cause.to_string(), format!("{cause:?}")]);
        next = cause.source();
    }
    texts
}

fn judge(what: &str, texts: &[String]) {
    for text in texts {
        assert!(text.contains(ESCAPED), "{what}: {text:?}");
        let is_harmful =
            |letter: char| letter == '\u{202e}' || letter.is_control() && letter != '\n';
        assert!(!text.contains(is_harmful) && !text.contains("31m\n"), "{what}: {text:?}");
    }
}

fn refused<T: Debug>(what: &str, outcome: resident::Result<T>) {
    judge(what, &said(&outcome.expect_err(what)));
}

fn shown(what: &str, value: &(impl Display + Debug)) {
    judge(what, &[value.to_string(), format!("{value:?}")]);
}

#[test]
fn names_of_kernels_are_escaped_in_errors() {
    let device = Device::emulated(Emulation::new().seed(1));
    let _here = device.enter();
    let kernel = || Kernel::<(InOut<i32>,)>::new(NAME);
    assert_eq!(kernel().name(), NAME);
    let mut x = SmartArray::<i32, _>::zeros(8);
    refused("no body", kernel().launch(8, (&mut x,)));
    let demands = kernel().require(NAME, |_, _| false).host(|_, _| ());
    refused("a requirement", demands.launch(8, (&mut x,)));
    judge("debug", &[format!("{demands:?}")]);
    refused("a grid", kernel().host(|_, _| ()).launch(Grid::new(1, 1 << 20), (&mut x,)));
    let mut table = SmartArray::<i32, _>::zeros((4, 4));
    let mut part = table.slice_mut(resident::ndarray::s![.., 1]);
    refused("gaps", kernel().host(|_, _| ()).launch(4, (&mut part,)));
    // SAFETY: it does not run.
    let of_gpu = unsafe { kernel().cuda(resident::CudaSource::ptx(".version 8.0")) };
    refused("code of a GPU", of_gpu.prepare(&device));
    kernel().host(|_, _| panic!("no")).launch(8, (&mut x,)).expect("it is queued");
    refused("lost contents", x.host().map(drop));
    refused("a failed device", device.synchronize());
}

#[test]
fn names_of_operations_are_escaped_in_errors() {
    let device = Device::emulated(Emulation::new());
    let _here = device.enter();
    let (x, mut y) = (SmartArray::<i32, _>::zeros(8), SmartArray::<i32, _>::zeros(9));
    type Map = Elementwise<(In<i32>, Out<i32>)>;
    refused("a text", Map::new(NAME, "y = \u{1b}", ["x", "y"]).apply((&x, &mut y)));
    let map = Map::new(NAME, "y = x", ["x", "y"]).host(|(x, y)| *y = x);
    refused("shapes", map.apply((&x, &mut y)));
    let sum =
        |text: &str| Reduction::<(In<i32>, In<i32>), i32>::new(NAME, ["x", "y"], text, "a + b", 0);
    refused("texts", sum("x *").apply((&x, &y)).map(drop));
    refused("shapes to reduce", sum("x * y").apply((&x, &y)).map(drop));
}

#[test]
fn names_of_arrays_are_escaped_in_errors_and_reports() {
    let device = Device::emulated(Emulation::new());
    let _here = device.enter();
    let array = SmartArray::<i32, _>::uninit(4).named(NAME);
    refused("no contents", array.host().map(drop));
    refused("an index", array.get(9));
    judge("a view", &[format!("{:?}", array.slice(resident::ndarray::s![..2]))]);
    let mut array = SmartArray::<i32, _>::zeros(4);
    array.set_name(NAME);
    let write = Kernel::<(InOut<i32>,)>::new(NAME).host(|_, (x,)| x.fill(1));
    let (_, report) = audit::capture(|| {
        write.launch(4, (&mut array,)).expect("it is queued");
        array.to_vec().expect("contents")
    });
    shown("a report", &report);
    judge("an inventory", &[audit::inventory().iter().map(ToString::to_string).collect()]);
}
