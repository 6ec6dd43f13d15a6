//! Copies of all sizes, of pageable and of pinned memory.

use super::prelude::*;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Runs of varying bytes, whose length divides no size of a piece. Cheap to compute.
fn noise(len: usize, seed: usize) -> Array1<u8> {
    let mut bytes = vec![0; len];
    let runs = bytes.chunks_mut(509).enumerate();
    runs.for_each(|(number, run)| run.fill((number.wrapping_mul(31) ^ seed) as u8));
    Array1::from(bytes)
}

fn assert_round_trip(lab: &Lab, len: usize) -> Result<()> {
    let contents = noise(len, 1);
    let mut array = SmartArray::from(contents.clone());
    make_newest(&mut array, &lab.stream())?;
    assert!(*array.host()? == contents, "{len} bytes");
    assert_eq!(
        (bytes(array.traffic()), copies(array.traffic())),
        ([len as u64, len as u64, 0], [1, 1, 0]),
        "{len} bytes"
    );
    Ok(())
}

pub(crate) fn sizes_around_those_at_which_the_way_changes(lab: &Lab) -> Result<()> {
    for size in [4 * KIB, 64 * KIB, MIB, 4 * MIB] {
        [size - 1, size, size + 1].into_iter().try_for_each(|len| assert_round_trip(lab, len))?;
    }
    Ok(())
}

pub(crate) fn several_pieces_up_and_down(lab: &Lab) -> Result<()> {
    [8 * MIB, 13 * MIB + 3].into_iter().try_for_each(|len| assert_round_trip(lab, len))
}

pub(crate) fn the_source_may_be_overwritten_right_after_an_upload(lab: &Lab) -> Result<()> {
    for len in [100, 64 * KIB, 5 * MIB] {
        let (first, second) = (noise(len, 1), noise(len, 77));
        let mut array = SmartArray::from(first.clone());
        array.prefetch(&lab.stream())?;
        let seen = array.snapshot_on(&lab.stream())?;
        // The host may write at once, and the copy in flight still transfers the old contents.
        array.host_mut()?.assign(&second);
        make_newest(&mut array, &lab.stream())?;
        assert!(seen.wait()? == first, "{len} bytes");
        assert!(*array.host()? == second, "{len} bytes");
    }
    Ok(())
}

pub(crate) fn pinned_memory_is_overwritten_behind_the_upload(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    for len in [100, 64 * KIB, 5 * MIB] {
        let (first, second) = (noise(len, 1), noise(len, 77));
        let mut array = SmartArray::from(first.clone());
        let mut copy = SmartArray::<u8, _>::uninit(len);
        array.page_lock()?;
        array.prefetch(&lab.stream())?;
        copy.assign_on(&lab.stream(), &array)?;
        array.host_mut()?.assign(&second);
        array.prefetch(&lab.stream())?;
        array.host_overwrite()?.fill(3);
        assert!(*copy.host()? == first, "{len} bytes");
        make_newest(&mut array, &lab.stream())?;
        assert!(array.host()?.iter().all(|byte| *byte == 3), "{len} bytes");
        assert_eq!(bytes(array.traffic())[0], 3 * len as u64);
    }
    Ok(())
}

pub(crate) fn pinned_memory_is_downloaded_and_uploaded(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    for len in [1, 5000, 5 * MIB] {
        let contents = noise(len, 1);
        let mut array = SmartArray::from(contents.clone());
        array.page_lock()?;
        for turn in 0..3 {
            make_newest(&mut array, &lab.stream())?;
            if turn == 1 {
                array.prefetch_host()?;
            }
            assert!(*array.host()? == contents, "{len} bytes");
        }
        assert_eq!(
            (bytes(array.traffic()), copies(array.traffic())),
            ([len as u64, 3 * len as u64, 0], [1, 3, 0])
        );
    }
    Ok(())
}

pub(crate) fn pinned_parts(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let mut expected = numbered::<u32, _>((40, 30, 20), 0);
    let mut array = SmartArray::from(expected.clone());
    array.page_lock()?;
    make_newest(&mut array, &lab.stream())?;
    let part = s![3..;5, ..;2, 4..9];
    let some = 4 * expected.slice(part).len() as u64;
    array.slice_mut(part).host_mut()?.fill(6);
    expected.slice_mut(part).fill(6);
    make_newest(&mut array, &lab.stream())?;
    assert_eq!(*array.slice(s![..;7, 1.., 4]).host()?, expected.slice(s![..;7, 1.., 4]));
    assert_eq!(bytes(array.traffic())[0], 4 * 24_000 + some);
    assert_eq!(*array.host()?, expected);
    Ok(())
}

pub(crate) fn an_array_is_pinned_after_it_was_used(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let contents = noise(6 * MIB, 1);
    let mut array = SmartArray::from(contents.clone());
    make_newest(&mut array, &lab.stream())?;
    array.prefetch_host()?;
    array.page_lock()?;
    array.page_lock()?;
    assert!(*array.host()? == contents);
    array.slice_mut(s![MIB..2 * MIB]).host_mut()?.fill(9);
    make_newest(&mut array, &lab.stream())?;
    assert!(array.slice(s![MIB..2 * MIB]).host()?.iter().all(|byte| *byte == 9));
    // Pinning allocates memory if there is none. A constant stays a constant.
    let mut nowhere = SmartArray::<u8, _>::full(5000, 3);
    nowhere.page_lock()?;
    make_newest(&mut nowhere, &lab.stream())?;
    assert_eq!(nowhere.host()?[4999], 3);
    SmartArray::<u8, _>::zeros(0).page_lock()
}

/// Arrays of a few pages each, allocated in sequence, so that most share a page with the next
/// array.
pub(crate) fn pinned_neighbours_come_and_go(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let mut arrays: Vec<_> =
        (0..24).map(|number| Some(SmartArray::from(noise(10_000, number)))).collect();
    arrays.iter().flatten().try_for_each(SmartArray::page_lock)?;
    for modulus in [3, 2, 1] {
        for (number, array) in arrays.iter_mut().enumerate() {
            let Some(whole) = array else { continue };
            make_newest(whole, &lab.stream())?;
            whole.prefetch_host()?;
            assert!(*whole.host()? == noise(10_000, number), "array {number}");
            if number % modulus == 0 {
                // Copies of the neighbouring arrays are in flight.
                *array = None;
            }
        }
    }
    Ok(())
}

pub(crate) fn a_pinned_array_is_taken_back(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let contents = noise(MIB, 1);
    let start = contents.as_ptr();
    let mut array = SmartArray::from(contents);
    array.page_lock()?;
    make_newest(&mut array, &lab.stream())?;
    array.prefetch_host()?;
    let mut taken = array.into_array()?;
    assert_eq!(taken.as_ptr(), start, "the array's own memory is returned");
    assert!(taken == noise(MIB, 1));
    taken.fill(0);
    // The same memory can be pinned again.
    let again = SmartArray::from(taken);
    again.page_lock()?;
    drop(again.gpu()?);
    Ok(())
}

fn large(rows: usize, columns: usize) -> Array2<u32> {
    Array2::from_shape_fn((rows, columns), |(row, column)| (row * 7919 + column) as u32)
}

pub(crate) fn rows_of_a_large_array_in_several_pieces(lab: &Lab) -> Result<()> {
    let mut expected = large(1500, 1000);
    let mut array = SmartArray::from(expected.clone());
    make_newest(&mut array, &lab.stream())?;
    let part = s![10..1490, ..900];
    array.slice_mut(part).host_mut()?.mapv_inplace(|x| !x);
    expected.slice_mut(part).mapv_inplace(|x| !x);
    make_newest(&mut array, &lab.stream())?;
    assert!(*array.host()? == expected);
    assert_eq!(
        bytes(array.traffic()),
        [4 * (1500 * 1000 + 1480 * 900), 4 * (1500 * 1000 + 1480 * 900), 0]
    );
    Ok(())
}

/// The snapshot is taken while the array is being rewritten: each chunk has the contents at the
/// time of the call, and the chunks count as one copy.
pub(crate) fn a_snapshot_of_a_large_array_in_several_pieces(lab: &Lab) -> Result<()> {
    let contents = large(1500, 1500);
    let mut array = SmartArray::from(contents.clone());
    make_newest(&mut array, &lab.stream())?;
    let before = array.traffic().to_host;
    let whole = array.snapshot_on(&lab.new_stream()?)?;
    let part = array.slice(s![..;-1, 200..1400]).snapshot_on(&lab.stream())?;
    array.fill_on(&lab.stream(), 5)?;
    assert!(part.wait()? == contents.slice(s![..;-1, 200..1400]));
    assert!(whole.wait()? == contents);
    let moved = array.traffic().to_host;
    assert_eq!(
        (moved.count - before.count, moved.bytes - before.bytes),
        (2, 4 * 1500 * (1500 + 1200))
    );
    assert_eq!(array.get((0, 0))?, 5);
    Ok(())
}

pub(crate) fn columns_of_a_large_array_in_several_pieces(lab: &Lab) -> Result<()> {
    let mut expected = large(1500, 1600);
    let mut array = SmartArray::from(expected.clone());
    make_newest(&mut array, &lab.stream())?;
    let part = s![.., ..;2];
    array.slice_mut(part).host_overwrite()?.fill(4);
    expected.slice_mut(part).fill(4);
    make_newest(&mut array, &lab.stream())?;
    assert!(*array.slice(s![1.., 1..]).host()? == expected.slice(s![1.., 1..]));
    assert_eq!(array.residency().on(&lab.device()), Valid);
    Ok(())
}

pub(crate) fn a_large_array_in_column_order(lab: &Lab) -> Result<()> {
    let mut contents = Array2::<u32>::zeros((1100, 1200).f());
    contents.indexed_iter_mut().for_each(|((row, column), x)| *x = (row * 7919 + column) as u32);
    let mut array = SmartArray::from(contents.clone());
    make_newest(&mut array, &lab.stream())?;
    assert!(*array.slice(s![5..1000, ..]).host()? == contents.slice(s![5..1000, ..]));
    assert!(*array.host()? == contents);
    assert_eq!(bytes(array.traffic()), [4 * 1100 * 1200, 4 * 1100 * 1200, 0]);
    Ok(())
}

/// While a kernel waits on the default stream, a download on another stream completes.
pub(crate) fn a_download_on_a_stream_of_its_own_overtakes_a_kernel(lab: &Lab) -> Result<()> {
    for len in [100, LARGE] {
        let (work, aside) = (lab.stream(), lab.new_stream()?);
        let (gate, mut array, mut other) = (Gate::new(), numbers(len), numbers(100));
        make_newest(&mut array, &work)?;
        work.synchronize()?;
        lab.gated(&work, &gate, &mut other)?;
        array.prefetch_host_on(&aside)?;
        aside.synchronize()?;
        assert!(*array.host()? == counting(len));
        assert!(!lab.has_gates() || !work.is_idle()?, "the copy waited for the kernel");
        gate.open();
        lab.add(&work, 1, &mut array)?;
        assert!(*array.host()? == counting(len) + 1);
        assert_eq!(bytes(array.traffic()), [4 * len as u64, 8 * len as u64, 0]);
    }
    Ok(())
}

/// A download on any stream runs after the work that wrote the part, and before the next work that
/// writes it.
pub(crate) fn a_download_on_a_stream_of_its_own_keeps_order(lab: &Lab) -> Result<()> {
    const LEN: usize = 5000;
    let (work, aside, gate) = (lab.stream(), lab.new_stream()?, Gate::new());
    let mut array = lab.gated_numbers(&work, &gate, LEN)?;
    array.prefetch_host_on(&aside)?;
    assert!(!lab.has_gates() || !aside.is_idle()?, "the copy comes after the kernel");
    lab.add(&work, 10, &mut array)?;
    array.slice(s![..LEN / 2]).prefetch_host_on(&aside)?;
    array.slice(s![LEN / 3..]).prefetch_host_on(&work)?;
    gate.open();
    assert_eq!(*array.host()?, counting(LEN) + 11);
    array.host_mut()?.fill(7);
    make_newest(&mut array, &work)?;
    array.prefetch_host_on(&aside)?;
    assert!(array.into_array()?.iter().all(|x| *x == 7));
    Ok(())
}

/// Copies with lengths and strides that exceed 32 bits. The test needs twelve gigabytes, so it runs
/// only if they are free and `RESIDENT_LARGE` is set.
pub(crate) fn an_array_of_more_than_four_gigabytes(lab: &Lab) -> Result<()> {
    const LEN: usize = (4 << 30) + 4096;
    let has_room = lab.device().capacity()?.free > 2 * LEN as u64;
    if std::env::var_os("RESIDENT_LARGE").is_none() || !has_room {
        println!(
            "not done: RESIDENT_LARGE=1 asks for it, where the device has room for two arrays of \
             four gigabytes"
        );
        return Ok(());
    }
    let mut contents = Array1::<u8>::zeros(LEN);
    contents
        .iter_mut()
        .enumerate()
        .step_by(4093)
        .for_each(|(index, byte)| *byte = (index >> 12) as u8);
    let mut array = SmartArray::from(contents.clone());
    make_newest(&mut array, &lab.stream())?;
    let mut copy = SmartArray::<u8, _>::uninit(LEN);
    copy.assign_on(&lab.stream(), &array)?;
    drop(array);
    copy.slice_mut(s![LEN - 5..]).fill_on(&lab.stream(), 200)?;
    contents.slice_mut(s![LEN - 5..]).fill(200);
    make_newest(&mut copy, &lab.stream())?;
    assert!(*copy.host()? == contents);
    Ok(())
}
