//! Cooperative groups: of a block, of tiles of a warp, of the lanes that come together.

use resident::{Device, Emulation, Error, Grid, InOut, Kernel, Result, SmartArray};

use crate::{device, kernel};

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
"#;

#[test]
fn groups_know_and_combine_their_threads() -> Result<()> {
    let Some(groups) = kernel::<(InOut<i32>,)>("groups", SOURCE) else { return Ok(()) };
    for device in [device(), Device::emulated(Emulation::new().sanitize(true))] {
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

#[test]
fn groups_of_the_grid_are_named_as_missing() {
    let source = "#include <cooperative_groups.h>
        extern \"C\" __global__ void all(int *x) {
            cooperative_groups::this_grid().sync(); }
        extern \"C\" __global__ void one(int *x) { x[0] = 1; }";
    if kernel::<(InOut<i32>,)>("one", source).is_none() {
        return;
    }
    // SAFETY: it does not run.
    let all = unsafe { Kernel::<(InOut<i32>,)>::new("all").cuda(source) };
    let Err(Error::Compile { log, .. }) = all.prepare(&device()) else { panic!("no such group") };
    assert!(log.contains(".cu:3: `this_grid`: the embedded device has no barriers of"), "{log}");
}
