//! Launches that repeat each other on one stream leave their marks and counts in a summary beside
//! the array's state. Whoever uses the array otherwise must find them all the same.

use resident::audit::Flow;
use resident::{Device, Emulation, Error, Grid, In, InOut, Kernel, Out, Result, SmartArray};
use support::bodies::assert_ordered_under;

const LEN: usize = 6;

fn push() -> Kernel<(u32, InOut<u32>)> {
    Kernel::<(u32, InOut<u32>)>::new("push")
        .host(|_grid, (digit, xs)| xs.iter_mut().for_each(|x| *x = *x * 10 + digit))
}

#[test]
fn another_stream_and_the_host_come_after_repeated_writes() -> Result<()> {
    for seed in 0..40 {
        let device = Device::emulated(Emulation::new().seed(seed));
        let (one, two) = (device.new_stream()?, device.new_stream()?);
        let mut array = SmartArray::<u32, _>::zeros(LEN);
        for digit in 1..=4 {
            push().launch_on(&one, Grid::cover(LEN), (digit, &mut array))?;
        }
        push().launch_on(&two, Grid::cover(LEN), (5, &mut array))?;
        for digit in 6..=8 {
            push().launch_on(&one, Grid::cover(LEN), (digit, &mut array))?;
        }
        assert_eq!(array.get(LEN - 1)?, 12_345_678, "seed {seed}");
        array.host_mut()?.fill(1);
        for digit in 2..=4 {
            push().launch_on(&one, Grid::cover(LEN), (digit, &mut array))?;
        }
        assert_eq!(array.host()?.to_vec(), [1234; LEN], "seed {seed}");
        assert_ordered_under(seed, &device);
    }
    Ok(())
}

#[test]
fn a_write_comes_after_repeated_reads() -> Result<()> {
    let add = Kernel::<(In<u32>, InOut<u32>)>::new("add")
        .host(|_grid, (from, to)| to.iter_mut().zip(from).for_each(|(to, from)| *to += from));
    let clear = Kernel::<(Out<u32>,)>::new("clear").host(|_grid, (xs,)| xs.fill(0));
    for seed in 0..40 {
        let device = Device::emulated(Emulation::new().seed(seed));
        let (one, two) = (device.new_stream()?, device.new_stream()?);
        let mut source = SmartArray::<u32, _>::full(LEN, 5);
        let mut sum = SmartArray::<u32, _>::zeros(LEN);
        for _ in 0..5 {
            add.launch_on(&one, Grid::cover(LEN), (&source, &mut sum))?;
        }
        clear.launch_on(&two, Grid::cover(LEN), (&mut source,))?;
        assert_eq!(sum.host()?.to_vec(), [25; LEN], "seed {seed}");
        assert_ordered_under(seed, &device);
    }
    Ok(())
}

#[test]
fn a_late_failure_among_repeated_launches_loses_what_they_wrote() -> Result<()> {
    let push = Kernel::<(u32, InOut<u32>)>::new("push").host(|_grid, (digit, xs)| {
        assert!(digit != 5, "five is refused");
        xs.iter_mut().for_each(|x| *x = *x * 10 + digit);
    });
    // Nothing runs before somebody waits, so all launches are queued before the failure.
    let device = Device::emulated(Emulation::new().seed(7));
    let stream = device.new_stream()?;
    let mut array = SmartArray::<u32, _>::zeros(LEN);
    for digit in 1..=8 {
        push.launch_on(&stream, Grid::cover(LEN), (digit, &mut array))?;
    }
    assert!(matches!(array.get(0), Err(Error::Lost { .. })));
    assert!(stream.synchronize().is_err());
    assert!(matches!(
        push.launch_on(&stream, Grid::cover(LEN), (9, &mut array)),
        Err(Error::Lost { .. })
    ));
    array.fill(0)?;
    for digit in 1..=4 {
        push.launch_on(&stream, Grid::cover(LEN), (digit, &mut array))?;
    }
    assert_eq!(array.host()?.to_vec(), [1234; LEN]);
    Ok(())
}

#[test]
fn the_copies_that_repeated_launches_avoid_are_counted_exactly() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let stream = device.new_stream()?;
    let mut array = SmartArray::from(vec![0_u32; LEN]);
    let len_bytes = 4 * LEN as u64;
    for launches in 1..=20 {
        push().launch_on(&stream, Grid::cover(LEN), (0, &mut array))?;
        // The first launch uploads; a launcher would have copied in and out each time.
        let avoided = Flow { count: 2 * launches - 1, bytes: len_bytes * (2 * launches - 1) };
        if launches % 7 != 3 {
            assert_eq!(device.traffic().avoided, avoided, "after {launches}");
            continue;
        }
        assert_eq!(array.traffic().avoided, avoided, "after {launches}");
    }
    assert_eq!(array.traffic().avoided, device.traffic().avoided);
    Ok(())
}
