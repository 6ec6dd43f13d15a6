//! Cooperative groups: of a block, of tiles of a warp, of the lanes that come together.

use resident::emulation::FindingKind;
use resident::{Grid, In, InOut, Result, SmartArray};

use crate::{checking, device, kernel, one_of, refused};

/// The kernels of the first two tests.
const SOURCE: &str = r#"
    #include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    #include <cooperative_groups/scan.h>
    namespace cg = cooperative_groups;

    template <typename Group> __device__ int sum(Group group, int value) {
        for (int by = group.size() / 2; by > 0; by /= 2) value += group.shfl_down(value, by);
        return group.shfl(value, 0);
    }

    extern "C" __global__ void groups(int *x) {
        cg::thread_block block = cg::this_thread_block();
        __shared__ int part[64];
        int t = block.thread_rank();
        part[t] = t;
        block.sync();
        int *y = x + 16 * t;
        y[0] = part[block.size() - 1 - t];
        auto eight = cg::tiled_partition<8>(block);
        y[1] = sum(eight, t);
        y[2] = eight.thread_rank() + 100 * eight.meta_group_rank()
               + 10000 * eight.meta_group_size();
        y[3] = eight.ballot(t % 2);
        y[4] = cg::reduce(eight, t, cg::plus<int>());
        y[5] = cg::inclusive_scan(eight, 1);
        y[6] = cg::exclusive_scan(eight, t, cg::plus<int>());
        auto two = cg::tiled_partition<2>(eight);
        y[7] = two.any(t == 5) + 2 * two.all(t >= 4) + 100 * two.meta_group_rank();
        y[8] = two.shfl_xor(t, 1);
        if (t % 3 == 0) {
            cg::coalesced_group active = cg::coalesced_threads();
            y[9] = active.thread_rank() + 100 * active.size();
            y[10] = active.shfl(t, 1);
        }
        cg::sync(eight);
        cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
        y[11] = warp.shfl_up(t, 1);
        y[12] = cg::reduce(warp, t, cg::greater<int>());
    }

    __device__ int sum(cg::thread_group group, int *part, int value) {
        for (int by = group.size() / 2; by > 0; by /= 2) {
            part[group.thread_rank()] = value;
            group.sync();
            if (group.thread_rank() < by) value += part[group.thread_rank() + by];
            group.sync();
        }
        return value;
    }

    extern "C" __global__ void parts(const int *in, int *x) {
        cg::thread_block block = cg::this_thread_block();
        __shared__ int part[64];
        int t = block.thread_rank(), value = in[t], *y = x + 8 * t;
        auto warp = cg::tiled_partition<32>(block);
        auto odd = cg::binary_partition(warp, value % 2 == 1);
        y[0] = odd.size() + 100 * odd.thread_rank() + 10000 * odd.meta_group_rank();
        y[1] = cg::reduce(odd, value, cg::plus<int>());
        auto alike = cg::labeled_partition(warp, value % 5);
        y[2] = alike.size() + 100 * alike.thread_rank() + 10000 * alike.meta_group_size();
        y[3] = alike.meta_group_rank();
        y[4] = alike.shfl(t, 0);
        int of_block = sum(block, part, value);
        y[5] = t == 0 ? of_block : 0;
        cg::thread_group eight = cg::tiled_partition(block, 8);
        y[6] = eight.size() + 100 * eight.thread_rank();
        int of_eight = sum(eight, part + t / 8 * 8, value);
        y[7] = t % 8 == 0 ? of_eight : 0;
    }
"#;

#[test]
fn groups_know_and_combine_their_threads() -> Result<()> {
    let groups = one_of::<(InOut<i32>,)>(SOURCE, "groups");
    for device in [device(), checking()] {
        let mut x = SmartArray::<i32, _>::zeros(64 * 16);
        groups.launch_on(&device.stream(), Grid::new(1, 64), (&mut x,))?;
        for (index, y) in x.to_vec()?.chunks(16).enumerate() {
            let t = index as i32;
            let first = t / 8 * 8;
            let sum = 8 * first + 28;
            let before: i32 = (first..t).sum();
            let pair = t / 2 * 2;
            let of_pair = i32::from(pair == 4) + 2 * i32::from(pair >= 4) + 100 * (t % 8 / 2);
            let lane = t % 32;
            let warp = t / 32 * 32;
            let expected = [
                63 - t,
                sum,
                t % 8 + 100 * (t / 8) + 80_000,
                0b1010_1010,
                sum,
                t % 8 + 1,
                before,
                of_pair,
                t ^ 1,
            ];
            assert_eq!(y[..9], expected, "thread {t}");
            let multiples: Vec<i32> = (warp..warp + 32).filter(|other| other % 3 == 0).collect();
            if let Some(rank) = multiples.iter().position(|other| *other == t) {
                assert_eq!(y[9], rank as i32 + 100 * multiples.len() as i32, "thread {t}");
                assert_eq!(y[10], multiples[1]);
            }
            assert_eq!(y[11..13], [if lane == 0 { t } else { t - 1 }, warp + 31], "thread {t}");
        }
    }
    Ok(())
}

/// What `parts` makes of its numbers for a thread.
fn expected_of_parts(values: &[i32], t: usize) -> [i32; 8] {
    let warp = t / 32 * 32..t / 32 * 32 + 32;
    let alike = |same: &dyn Fn(i32) -> bool| -> Vec<usize> {
        warp.clone().filter(|other| same(values[*other])).collect()
    };
    let sum = |threads: &[usize]| threads.iter().map(|other| values[*other]).sum::<i32>();
    let rank = |threads: &[usize]| threads.iter().filter(|other| **other < t).count() as i32;
    let odd = alike(&|value| value % 2 == values[t] % 2);
    let rest = alike(&|value| value % 5 == values[t] % 5);
    let firsts: Vec<usize> =
        (0..5).filter_map(|rest| warp.clone().find(|other| values[*other] % 5 == rest)).collect();
    let eight: Vec<usize> = (t / 8 * 8..t / 8 * 8 + 8).collect();
    let block: Vec<usize> = (0..64).collect();
    // Only the first thread of a group has the whole sum.
    let of_first = |threads: &[usize]| if t == threads[0] { sum(threads) } else { 0 };
    [
        odd.len() as i32 + 100 * rank(&odd) + 10_000 * (values[t] % 2),
        sum(&odd),
        rest.len() as i32 + 100 * rank(&rest) + 10_000 * firsts.len() as i32,
        firsts.iter().filter(|first| **first < rest[0]).count() as i32,
        rest[0] as i32,
        of_first(&block),
        8 + 100 * (t % 8) as i32,
        of_first(&eight),
    ]
}

#[test]
fn groups_have_parts() -> Result<()> {
    let parts = one_of::<(In<i32>, InOut<i32>)>(SOURCE, "parts");
    let values: Vec<i32> = (0..64).map(|i| i * i % 37).collect();
    let numbers = SmartArray::from(values.clone());
    for device in [device(), checking()] {
        let mut x = SmartArray::<i32, _>::zeros(64 * 8);
        parts.launch_on(&device.stream(), Grid::new(1, 64), (&numbers, &mut x))?;
        for (t, y) in x.to_vec()?.chunks(8).enumerate() {
            assert_eq!(y, expected_of_parts(&values, t), "thread {t}");
        }
    }
    Ok(())
}

/// A block reverses 32 numbers in shared memory, into which it copies them together. What executes
/// PTX lacks such copies, so these kernels are a source of their own.
const REVERSALS: &str = r#"
    #include <cooperative_groups.h>
    #include <cooperative_groups/memcpy_async.h>
    namespace cg = cooperative_groups;

    __device__ void reverse(const int *in, int *x, bool waits) {
        __shared__ int copied[32];
        auto block = cg::this_thread_block();
        cg::memcpy_async(block, copied, in, sizeof(copied));
        if (waits) cg::wait(block);
        x[threadIdx.x] = copied[31 - threadIdx.x];
    }

    extern "C" __global__ void reverse_and_wait(const int *in, int *x) { reverse(in, x, true); }
    extern "C" __global__ void reverse_at_once(const int *in, int *x) { reverse(in, x, false); }
"#;

#[test]
fn groups_copy_together_and_wait_for_it() -> Result<()> {
    for (name, is_correct) in [("reverse_and_wait", true), ("reverse_at_once", false)] {
        let reverse = one_of::<(In<i32>, InOut<i32>)>(REVERSALS, name);
        let device = checking();
        let (numbers, mut x) =
            (SmartArray::from((0..32).collect::<Vec<i32>>()), SmartArray::zeros(32));
        reverse.launch_on(&device.stream(), Grid::new(1, 32), (&numbers, &mut x))?;
        assert_eq!(device.synchronize().is_ok(), is_correct);
        let findings = device.emulation().expect("it is emulated").findings();
        let races = findings.iter().filter(|finding| finding.kind == FindingKind::Race).count();
        assert_eq!(races == 0, is_correct, "{findings:?}");
        if is_correct {
            assert_eq!(x.to_vec()?, (0..32).rev().collect::<Vec<i32>>());
        }
    }
    Ok(())
}

#[test]
fn groups_of_the_grid_are_named_as_missing() {
    let source = "#include <cooperative_groups.h>
        extern \"C\" __global__ void all(int *x) {
            cooperative_groups::this_grid().sync(); }
        extern \"C\" __global__ void one(int *x) { x[0] = 1; }";
    let _compiles = kernel::<(InOut<i32>,)>("one", source);
    let log = refused::<(InOut<i32>,)>(&device(), "all", source);
    assert!(log.contains(".cu:3: `this_grid`: the embedded device has no barriers of"), "{log}");
}
