//! Twelve mistakes, and what the library says about each. The arrays keep their contents.

use std::sync::mpsc::channel;

use resident::ndarray::{Array1, Array2, Ix1};
use resident::prelude::*;
use resident::{DeviceArray, Emulation};

fn main() -> Result<()> {
    let device = Device::emulated(Emulation::new().memory(1 << 20));
    let (_here, other) = (device.enter(), Device::emulated(Emulation::new()));
    let (mut x, table) = (numbers(), SmartArray::from(Array2::<f32>::zeros((8, 8))));
    let add = Kernel::<(In<f32>, InOut<f32>)>::new("add")
        .require("both have one length", |_grid, (x, y)| x.len() == y.len())
        .host(|_grid, (x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y += x));
    let unwritten = SmartArray::<f32, _>::uninit(8);
    let mut there = DeviceArray::<f32, _>::zeros(8)?;
    let ((tell, told), waited_for) = (channel(), device.clone());
    let waits = Kernel::<(InOut<f32>,)>::new("waits").host(move |_grid, (_x,)| {
        tell.send(waited_for.synchronize()).expect("the program listens");
    });
    waits.launch(Grid::cover(8), (&mut numbers(),))?;
    let mistakes = [
        ("reading what was never written", unwritten.host().map(drop)),
        ("adding it", add.launch(Grid::cover(8), (&unwritten, &mut x))),
        ("no body", Kernel::<(InOut<f32>,)>::new("bare").launch(Grid::cover(8), (&mut x,))),
        ("a requirement", add.launch(Grid::cover(8), (&SmartArray::<f32, _>::ones(3), &mut x))),
        ("gaps", add.launch(Grid::cover(8), (&table.column(1), &mut x))),
        ("no threads", add.launch(Grid::new(0, 1), (&numbers(), &mut x))),
        ("4,096 threads", add.launch(Grid::new(1, 4_096), (&numbers(), &mut x))),
        ("a full device", SmartArray::<f32, _>::ones(1 << 20).gpu().map(drop)),
        ("a shape", table.reshape((3, 3)).map(drop)),
        ("an index", x.set(8, 1.0)),
        ("another device", there.fill_on(&other.stream(), 1.0)),
        ("waiting inside a body", told.recv().expect("the body ran")),
    ];
    for (mistake, outcome) in mistakes {
        println!("{mistake}:\n    {}", outcome.expect_err("it is a mistake"));
    }
    assert_eq!(x.host()?, Array1::<f32>::ones(8));
    assert_eq!(there.copy_to_host()?, Array1::<f32>::zeros(8));
    Ok(())
}

fn numbers() -> SmartArray<f32, Ix1> {
    SmartArray::ones(8)
}
