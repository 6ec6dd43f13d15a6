//! Several open receives of one sender and tag, which are awaited in any order: the first of them
//! gets what was sent first. A receive that overtakes another one gets the other's elements, which
//! are written beyond its memory if they are longer.

use resident::ndarray::Ix1;
use resident::{Element, SmartArray};
use resident_mpi::{Error, Mpi, Receiving};

use crate::interposed;
use crate::launch::run;

const TAG: i32 = 5;
const GO: i32 = 9;

/// Rank 0 says that it has begun its receives; rank 1 waits for that. So the messages arrive while
/// rank 0 looks for them.
fn go(mpi: &Mpi) {
    if mpi.rank() == 0 {
        mpi.send(&SmartArray::<u8, _>::ones(1), 1, GO).unwrap();
    } else {
        mpi.recv(&mut SmartArray::<u8, _>::zeros(1), 0, GO).unwrap();
    }
}

fn isend<T: Element>(mpi: &Mpi, array: &SmartArray<T, Ix1>) {
    drop(mpi.isend(array, 0, TAG).unwrap());
}

/// Rank 0 awaits the later of two receives first.
fn check_order(mpi: &Mpi, lens: [usize; 2]) {
    interposed::slow_down();
    for round in 0..300_u64 {
        let values = [2 * round, 2 * round + 1];
        if mpi.rank() == 0 {
            let [first, second] = lens.map(|len| mpi.irecv::<u64, Ix1>(len, 1, TAG).unwrap());
            go(mpi);
            let received = [second, first].map(|receiving| receiving.wait().unwrap());
            for (array, (value, len)) in received.iter().rev().zip(values.into_iter().zip(lens)) {
                assert_eq!(array.to_vec().unwrap(), vec![value; len], "round {round}");
            }
        } else {
            let arrays = [0, 1].map(|index| SmartArray::from(vec![values[index]; lens[index]]));
            go(mpi);
            arrays.iter().for_each(|array| isend(mpi, array));
        }
    }
}

#[test]
fn the_later_of_two_is_awaited_first() {
    run(2, |mpi| check_order(mpi, [64, 64]));
}

#[test]
fn the_later_of_two_is_shorter() {
    run(2, |mpi| check_order(mpi, [60_000, 64]));
}

#[test]
fn the_later_of_two_is_longer() {
    run(2, |mpi| check_order(mpi, [64, 60_000]));
}

#[track_caller]
fn expect_mismatch<T: Element>(receiving: Receiving<T, Ix1>, texts: [&str; 2]) {
    let error = receiving.wait().map(drop).unwrap_err();
    let Error::Mismatch { rank: 1, expected, found, .. } = &error else { panic!("{error}") };
    assert_eq!([expected.as_str(), found.as_str()], texts);
}

#[test]
fn the_last_of_three_is_awaited_first_and_only_it_fits() {
    run(2, |mpi| {
        interposed::slow_down();
        for round in 0..300_u64 {
            if mpi.rank() == 0 {
                let short = mpi.irecv::<u32, Ix1>(10, 1, TAG).unwrap();
                let long = mpi.irecv::<u32, Ix1>(100_000, 1, TAG).unwrap();
                let last = mpi.irecv::<u64, Ix1>(3, 1, TAG).unwrap();
                go(mpi);
                assert_eq!(last.wait().unwrap().to_vec().unwrap(), [round; 3]);
                expect_mismatch(short, ["u32 of shape [10]", "u64 of shape [100000]"]);
                expect_mismatch(long, ["u32 of shape [100000]", "u8 of shape [3]"]);
            } else {
                let [long, last] = [100_000, 3].map(|len| SmartArray::from(vec![round; len]));
                let short = SmartArray::from(vec![round as u8; 3]);
                go(mpi);
                isend(mpi, &long);
                isend(mpi, &short);
                isend(mpi, &last);
            }
        }
    });
}
