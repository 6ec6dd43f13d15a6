//! Threads of rayon pools that wait for bodies and host functions, which use rayon themselves.

use std::sync::{Arc, Barrier, Mutex, mpsc};

use rayon::prelude::*;
use support::prelude::*;
use support::{own_process, test_name};

const LEN: usize = 1 << 12;

/// Adds 1 to each element, by threads of rayon.
fn add_one() -> Kernel<(InOut<f32>,)> {
    Kernel::<(InOut<f32>,)>::new("add_one")
        .host(|_grid, (x,)| x.par_iter_mut().for_each(|x| *x += 1.0))
}

fn zeros() -> SmartArray<f32, Ix1> {
    SmartArray::zeros(LEN)
}

fn add_on(stream: &Stream) {
    let mut x = zeros();
    add_one().launch_on(stream, Grid::new(1, 1), (&mut x,)).unwrap();
    assert!(x.host().unwrap().iter().all(|x| *x == 1.0));
}

fn devices() -> [Device; 2] {
    [Device::cpu(), Device::emulated(Emulation::new().seed(5))]
}

/// Runs a test in processes whose pools have one thread, and two. They end, or are killed.
macro_rules! with_pools {
    () => {
        if !own_process::is_own() {
            for threads in ["1", "2"] {
                let test = test_name!();
                let output = own_process::run_within(
                    std::time::Duration::from_secs(120),
                    test,
                    &[("RAYON_NUM_THREADS", threads)],
                );
                own_process::assert_success(&output, &format!("{test}, {threads} threads"));
            }
            return;
        }
    };
}

#[test]
fn tasks_launch_bodies_and_wait_for_them() {
    with_pools!();
    for device in devices() {
        let stream = device.stream();
        (0..64).into_par_iter().for_each(|_| add_on(&stream));
        rayon::join(|| add_on(&stream), || add_on(&device.new_stream().unwrap()));
    }
}

#[test]
fn tasks_launch_bodies_whose_elements_use_rayon() {
    with_pools!();
    let each = Kernel::<(InOut<f32>,)>::new("each").host_each(|_, (x,)| {
        let (one, two) = rayon::join(|| 1.0, || 2.0);
        *x += one + two;
    });
    for device in devices() {
        let stream = device.stream();
        (0..16).into_par_iter().for_each(|_| {
            let mut x = zeros();
            each.launch_on(&stream, 1, (&mut x,)).unwrap();
            each.call(1, (&mut x,)).unwrap();
            assert!(x.host().unwrap().iter().all(|x| *x == 6.0));
        });
    }
}

/// So many that they would not fit the stack of one thread, each within the wait of another.
#[test]
fn thousands_of_spawned_tasks_wait() {
    with_pools!();
    let stream = Device::cpu().stream();
    rayon::scope(|scope| (0..3000).for_each(|_| scope.spawn(|_| add_on(&stream))));
}

/// The body runs before the library knows that pools wait for it.
#[test]
fn a_pool_waits_for_what_the_program_launched_before() {
    with_pools!();
    for device in devices() {
        let (stream, mut x) = (device.stream(), zeros());
        let slow = Kernel::<(InOut<f32>,)>::new("slow").host(|_grid, (x,)| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            x.par_iter_mut().for_each(|x| *x += 1.0);
        });
        slow.launch_on(&stream, Grid::new(1, 1), (&mut x,)).unwrap();
        (0..64).into_par_iter().for_each(|_| assert_eq!(x.host().unwrap()[LEN - 1], 1.0));
        slow.launch_on(&stream, Grid::new(1, 1), (&mut x,)).unwrap();
        let event = stream.record().unwrap();
        (0..8).into_par_iter().for_each(|at| match at % 3 {
            0 => event.synchronize().unwrap(),
            1 => stream.synchronize().unwrap(),
            _ => device.synchronize().unwrap(),
        });
        assert_eq!(x.get(0).unwrap(), 2.0);
    }
}

#[test]
fn tasks_wait_for_host_functions() {
    with_pools!();
    for device in devices() {
        let stream = device.stream();
        let sum = || (0..1000_u64).into_par_iter().sum::<u64>();
        (0..64).into_par_iter().for_each(|_| {
            assert_eq!(stream.launch_host_function(sum).unwrap().wait().unwrap(), 499_500);
        });
        let functions: Vec<_> = (0..8).map(|_| stream.launch_host_function(sum).unwrap()).collect();
        functions.into_par_iter().for_each(|one| assert_eq!(one.wait().unwrap(), 499_500));
    }
}

/// Tasks that hold a lock while they wait: the waiting thread must not run another of them.
#[test]
fn a_task_that_holds_a_lock_waits_for_a_body() {
    with_pools!();
    let (stream, lock) = (Device::cpu().stream(), Mutex::new(0));
    let plain = Kernel::<(InOut<f32>,)>::new("plain").host(|_grid, (x,)| x[0] += 1.0);
    rayon::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|_| {
                let mut x = zeros();
                let mut count = lock.lock().unwrap();
                plain.launch_on(&stream, Grid::new(1, 1), (&mut x,)).unwrap();
                assert_eq!(x.host().unwrap()[0], 1.0);
                *count += 1;
            });
        }
    });
    assert_eq!(lock.into_inner().unwrap(), 32);
}

/// Bodies on streams of their own meet, whichever threads run them.
#[test]
fn bodies_that_tasks_launched_wait_for_each_other() {
    with_pools!();
    let meet = Arc::new(Barrier::new(4));
    let meeting = Kernel::<(InOut<f32>,)>::new("meeting").host(move |_grid, (x,)| {
        meet.wait();
        x.par_iter_mut().for_each(|x| *x += 1.0);
        meet.wait();
    });
    let launch = |_| {
        let (stream, mut x) = (Device::cpu().new_stream().unwrap(), zeros());
        meeting.launch_on(&stream, Grid::new(1, 1), (&mut x,)).unwrap();
        x
    };
    let arrays: Vec<_> = (0..4).into_par_iter().map(launch).collect();
    arrays.into_par_iter().for_each(|x| assert_eq!(x.host().unwrap()[0], 1.0));
}

#[test]
fn panics_and_waits_in_bodies_are_as_elsewhere() {
    with_pools!();
    let stream = Device::cpu().stream();
    let (panics, waits) = (
        Kernel::<(InOut<f32>,)>::new("panics").host(|_grid, _| panic!("in the body")),
        Kernel::<(InOut<f32>,)>::new("waits").host(|_grid, (x,)| {
            let (over, is_over) = mpsc::channel();
            let is_over = Mutex::new(is_over);
            let inner = Kernel::<(InOut<f32>,)>::new("inner")
                .host(move |_grid, _| is_over.lock().unwrap().recv().unwrap());
            let mut y = zeros();
            inner.launch(Grid::new(1, 1), (&mut y,)).unwrap();
            let refused = matches!(y.host().map(drop), Err(Error::InsideKernel { .. }));
            over.send(()).unwrap();
            x[0] = f32::from(refused);
        }),
    );
    (0..8).into_par_iter().for_each(|_| {
        let (mut x, mut y) = (zeros(), zeros());
        panics.launch_on(&stream, Grid::new(1, 1), (&mut x,)).unwrap();
        let error = x.host().map(drop).unwrap_err();
        assert!(error.to_string().contains("in the body"), "{error}");
        let other = Device::cpu().new_stream().unwrap();
        waits.launch_on(&other, Grid::new(1, 1), (&mut y,)).unwrap();
        assert_eq!(y.host().unwrap()[0], 1.0);
    });
}

/// `Kernel::call` runs the body on the thread that calls it, also once pools are used.
#[test]
fn a_call_stays_on_its_thread() {
    with_pools!();
    rayon::join(|| add_on(&Device::cpu().stream()), || ());
    let here = std::thread::current().id();
    let kernel = Kernel::<(InOut<f32>,)>::new("here")
        .host(move |_grid, (x,)| x[0] = f32::from(std::thread::current().id() == here));
    let mut x = zeros();
    kernel.call(Grid::new(1, 1), (&mut x,)).unwrap();
    assert_eq!(x.get(0).unwrap(), 1.0);
}
