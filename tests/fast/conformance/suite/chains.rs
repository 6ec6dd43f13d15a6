//! Chains: launches, copies and fills that are queued as one operation.

use super::prelude::*;
use resident::ndarray::s;
use resident::{Chain, Described, Error, In, InOut, Out, Result, SmartArray, Temp};

const LEN: usize = 1000;

type Numbers = SmartArray<u32, Ix1>;
/// `k`, the length, input, output and a temporary.
type Mixed = Chain<(u32, u64, In<u32, Ix1>, Out<u32, Ix1>, Temp<u32, Ix1>)>;

/// `b = 2 a + 2 k + 5`, by way of two arrays.
fn mixed(lab: &Lab) -> Result<Mixed> {
    let kernels = lab.kernels();
    Mixed::record("mixed", |r, (k, len, a, b, tmp)| {
        let grid = |(_, len, ..): (u32, u64, Described, Described, Described)| over(len as usize);
        r.launch(&kernels.plus, grid, (k, a.read(), tmp.write(), len))?;
        r.fill(b.write(), k)?;
        r.launch(&kernels.accumulate, grid, (tmp.read(), b.read_write(), len))?;
        r.copy(a.read(), tmp.write())?;
        r.launch(&kernels.add, grid, (5, tmp.read_write(), len))?;
        r.launch(&kernels.accumulate, grid, (tmp.read(), b.read_write(), len))
    })
}

pub(crate) fn chains_compute_what_their_steps_compute(lab: &Lab) -> Result<()> {
    let (mixed, streams) = (mixed(lab)?, lab.two_streams()?);
    for (round, len) in [LEN, LEN, 3, 70_000, LEN, 1].into_iter().enumerate() {
        let (a, mut b, k) = (numbers(len), Numbers::uninit(len), round as u32);
        let scratch = Temp::like(&a);
        for _ in 0..3 {
            let arguments = (k, len as u64, &a, &mut b, scratch);
            mixed.launch_on(&streams[round % 2], arguments)?;
        }
        assert_eq!(*b.host()?, counting(len).mapv(|x| 2 * x + 2 * k + 5));
    }
    Ok(())
}

pub(crate) fn replays_upload_once_what_they_read(lab: &Lab) -> Result<()> {
    let (mixed, [stream, _]) = (mixed(lab)?, lab.two_streams()?);
    let (a, mut b) = (numbers(LEN), Numbers::uninit(LEN));
    for k in 0..3 {
        mixed.launch_on(&stream, (k, LEN as u64, &a, &mut b, Temp::like(&a)))?;
    }
    assert_eq!(bytes(a.traffic())[0], 4 * LEN as u64, "uploaded once");
    assert_eq!(bytes(b.traffic())[0], 0, "it is overwritten");
    Ok(())
}

pub(crate) fn chains_come_before_and_after_work_of_other_streams(lab: &Lab) -> Result<()> {
    let (mixed, [one, other]) = (mixed(lab)?, lab.two_streams()?);
    let (mut a, mut b, mut sum) = (numbers(LEN), Numbers::uninit(LEN), Numbers::zeros(LEN));
    let scratch = Temp::like(&a);
    let mut expected = counting(LEN).mapv(|_| 0);
    for turn in 0..30 {
        lab.add(&other, 1, &mut a)?;
        mixed.launch_on(&one, (turn, LEN as u64, &a, &mut b, scratch))?;
        lab.accumulate(&other, &b, &mut sum)?;
        expected = expected + counting(LEN).mapv(|x| 2 * (x + turn + 1) + 2 * turn + 5);
    }
    assert_eq!(*sum.host()?, expected);
    Ok(())
}

pub(crate) fn chains_repeat(lab: &Lab) -> Result<()> {
    let kernels = lab.kernels();
    let chain =
        Chain::<(u32, InOut<u32, Ix1>, InOut<u32, Ix1>)>::record("sums", |r, (k, a, b)| {
            let len = LEN as u64;
            r.launch(&kernels.add, over(LEN), (k, a.read_write(), len))?;
            r.launch(&kernels.accumulate, over(LEN), (a.read(), b.read_write(), len))?;
            r.launch(&kernels.add, over(LEN), (1, b.read_write(), len))
        })?;
    let (stream, mut a, mut b) = (lab.new_stream()?, Numbers::zeros(LEN), Numbers::zeros(LEN));
    let (mut in_a, mut in_b) = (0_u32, 0_u32);
    for (count, k) in [(1, 3), (0, 9), (100, 2), (5, 2)] {
        chain.repeat_on(&stream, count, (k, &mut a, &mut b))?;
        for _ in 0..count {
            in_a += k;
            in_b += in_a + 1;
        }
    }
    assert_eq!((a.get(LEN - 1)?, b.get(0)?), (in_a, in_b));
    Ok(())
}

pub(crate) fn chains_take_parts_of_any_layout(lab: &Lab) -> Result<()> {
    let kernels = lab.kernels();
    type Shift = Chain<(u32, In<u32, Ix2>, Out<u32, Ix2>, Temp<u32, Ix2>)>;
    let shift = Shift::record("shift", |r, (k, a, b, tmp)| {
        let grid = |(_, a, ..): (u32, Described, Described, Described)| {
            over_2d(a.shape()[0], a.shape()[1])
        };
        r.launch(&kernels.copy_sized, grid, (a.read(), tmp.write()))?;
        r.launch(&kernels.add_sized, grid, (k, tmp.read_write()))?;
        r.copy(tmp.read(), b.write())
    })?;
    let stream = lab.new_stream()?;
    let mut expected = numbered::<u32, _>((40, 60), 0);
    let mut table = SmartArray::from(expected.clone());
    let parts = [
        (s![..20, ..], s![20.., ..]),
        (s![5..15, 2..9], s![15..25, 40..47]),
        (s![..;2, ..;3], s![1..;2, 1..;3]),
        (s![..;2, ..;-3], s![1..;2, 1..;3]),
        (s![6..16, 3..10], s![16..26, 41..48]),
    ];
    for (k, (from, to)) in (1..).zip(parts) {
        let moved = expected.slice(from).mapv(|x| x + k);
        expected.slice_mut(to).assign(&moved);
        let (from, mut to) = table.multi_slice_mut((from, to));
        shift.launch_on(&stream, (k, &from, &mut to, Temp::like(&from)))?;
    }
    assert_eq!(*table.host()?, expected);
    Ok(())
}

pub(crate) fn chains_are_refused_before_anything_moves(lab: &Lab) -> Result<()> {
    let (mixed, stream) = (mixed(lab)?, lab.new_stream()?);
    let (a, mut b) = (numbers(LEN), Numbers::uninit(LEN));
    let scratch = Temp::like(&a);
    let refused = mixed.launch_on(&stream, (1, 5, &a, &mut b, scratch));
    assert!(matches!(refused, Err(Error::Requirement { .. })), "{refused:?}");
    assert_eq!(bytes(a.traffic()), [0; 3]);
    mixed.launch_on(&stream, (1, LEN as u64, &a, &mut b, scratch))?;
    assert_eq!(b.get(1)?, 9);
    Ok(())
}
