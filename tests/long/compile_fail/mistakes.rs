//! Mistakes of newcomers that rustc reports. Each is a statement in place of the last of one
//! program, which compiles. All messages are in `mistakes.stderr`.

use crate::{compared, compiled, libraries, message};

/// The first lines of the message of an error: those before the changes that rustc proposes.
const LINES_MAX: usize = 15;

/// Errors whose message is longer: rustc adds which types `SmartArray` can be made from, and shows
/// two places of functions and methods that macros declare.
const LONGER: [(&str, usize); 3] = [
    ("an element that is no `Pod`", 18),
    ("an ndarray in ops", 17),
    ("an ndarray is assigned", 20),
];

const RIGHT: &str = "k.launch(8, (&x, &mut y))?;";

fn program(statement: &str) -> String {
    format!(
        "#![allow(unused)]
use resident::ndarray::{{Array1, Ix2, s}};
use resident::{{Device, Grid, In, InOut, Kernel, Out, Result, SmartArray, ops}};

fn main() -> Result<()> {{
    let (mut x, mut y) = (SmartArray::<f32, _>::ones(8), SmartArray::<f32, _>::ones(8));
    let (wide, array) = (SmartArray::<f64, _>::ones(8), Array1::<f32>::ones(8));
    let k = Kernel::<(In<f32>, InOut<f32>)>::new(\"k\").host(|_grid, _arguments| ());
    let scale = Kernel::<(f32, InOut<f32>)>::new(\"scale\").host(|_grid, _arguments| ());
    let sized = Kernel::<(In<f32, Ix2>,)>::new(\"sized\").host(|_grid, _arguments| ());

    {statement}
    Ok(())
}}
"
    )
}

const MISTAKES: &[(&str, &str)] = &[
    ("an `InOut` by `&`", "k.launch(8, (&x, &y))?;"),
    ("another element", "k.launch(8, (&wide, &mut y))?;"),
    ("an ndarray", "k.launch(8, (&array, &mut y))?;"),
    ("no grid", "k.launch((&x, &mut y))?;"),
    ("the arguments before the grid", "k.launch((&x, &mut y), Grid::cover(8))?;"),
    ("a grid of text", "k.launch(\"8\", (&x, &mut y))?;"),
    ("no stream", "k.launch_on(Grid::cover(8), (&x, &mut y))?;"),
    ("an argument too many", "k.launch(8, (&x, &mut y, 3))?;"),
    ("an argument too few", "k.launch(8, (&mut y,))?;"),
    ("one argument without a comma", "scale.launch(8, (&mut x))?;"),
    ("an integer for a float", "scale.launch(8, (1, &mut x))?;"),
    ("another number of axes", "sized.launch(8, (&x,))?;"),
    ("one parameter without a comma", "let k = Kernel::<(InOut<f32>)>::new(\"k\");"),
    ("a `bool` parameter", "let k = Kernel::<(bool, InOut<f32>)>::new(\"k\");"),
    ("a `Vec` parameter", "let k = Kernel::<(Vec<f32>, InOut<f32>)>::new(\"k\");"),
    ("a kernel of unknown parameters", "let k = Kernel::new(\"k\").host(|_grid, _arguments| ());"),
    (
        "an output that is not `mut`",
        "let k = Kernel::<(Out<f32, Ix2>,)>::new(\"k\").host(|_grid, (x,)| x.fill(0.0));",
    ),
    (
        "a body that borrows",
        "let factor = 2.0; let k = scale.clone().host(|_grid, (_, x)| x[0] = factor);",
    ),
    ("CUDA C without `unsafe`", "let k = k.clone().cuda(\"..\");"),
    ("an ndarray in ops", "ops::add(&array, &x, &mut y)?;"),
    ("another element in ops", "ops::add(&x, &wide, &mut y)?;"),
    ("an operand that is written", "ops::add(&x, &y, &mut y)?;"),
    ("an ndarray is assigned", "x.assign(&array)?;"),
    ("an element that is no `Pod`", "let z = SmartArray::from(vec![(1.0_f32, 2.0_f32); 8]);"),
    ("an element that is `bool`", "let z = SmartArray::<bool, _>::zeros(8);"),
    ("an unknown element", "let z = SmartArray::uninit(8);"),
    (
        "two exclusive slices",
        "let (mut p, mut q) = (x.slice_mut(s![..4]), x.slice_mut(s![4..])); p.fill(0.0)?; drop(q);",
    ),
    (
        "a guard over a launch",
        "let seen = y.host()?; k.launch(8, (&x, &mut y))?; println!(\"{}\", seen[0]);",
    ),
    ("an index", "let z = x[3];"),
    ("an iteration", "for v in &x { println!(\"{v}\"); }"),
];

#[test]
fn mistakes_have_short_messages() {
    let right = compiled("mistakes", &program(RIGHT), libraries());
    assert!(right.status.success(), "{}", String::from_utf8_lossy(&right.stderr));
    let mut all = String::new();
    for (name, statement) in MISTAKES {
        let output = compiled("mistakes", &program(statement), libraries());
        assert!(!output.status.success(), "{name}: rustc accepts it");
        let message = message::portable(&String::from_utf8_lossy(&output.stderr));
        let longer = LONGER.iter().find(|(longer, _)| longer == name);
        let lines_max = longer.map_or(LINES_MAX, |(_, lines_max)| *lines_max);
        for error in message.split("\nerror") {
            let own = error.trim().lines().take_while(|line| !line.starts_with("help: "));
            let lines = own.count();
            assert!(lines <= lines_max, "{name}: {lines} lines\n{error}");
        }
        all += &format!("## {name}\n\n{message}\n");
    }
    compared("mistakes", &all, "mistakes.stderr");
}
