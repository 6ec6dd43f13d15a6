//! Races between the lanes of a warp, and wrong masks.

#[test]
fn every_defect_in_a_warp_is_found() {
    crate::check_texts(TEXTS);
}

pub(crate) const TEXTS: &str = r#"
== lanes(in out) float|half <<<2, 64>>> Race, Race
__shared__ T tile[64];
tile[t] = in[i];
$1{}2{__syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);}{__syncwarp();}
out[i] = tile[t ^ 17];
== volatile_reduction(in out) float|double <<<2, 64>>> Race, Race
__shared__ T part[64];
part[t] = in[i];
__syncthreads();
if (t < 32) {
    volatile T *v = part;
    for (int by = 32; by > 0; by /= 2) {
        T other = v[t + by];
        $1{}{__syncwarp();}
        v[t] = v[t] + other;
        $2{}{__syncwarp();}
    }
}
__syncthreads();
out[i] = part[0];
== unrolled_volatile_reduction(in out) int <<<2, 64>>> Race
$before{
__device__ void @step(volatile int *v, int t, int by) {
    int sum = v[t] + v[t + by];
    $1{}{__syncwarp();}
    v[t] = sum;
    $1{}{__syncwarp();}
}
}
__shared__ T part[64];
part[t] = in[i];
__syncthreads();
if (t < 32) {
    @step(part, t, 32); @step(part, t, 16); @step(part, t, 8);
    @step(part, t, 4); @step(part, t, 2); @step(part, t, 1);
}
__syncthreads();
out[i] = part[0];
== warp_scan(in out) float <<<2, 32>>> Race, Race
__shared__ T part[32];
part[t] = in[i];
__syncwarp();
for (int by = 1; by < 32; by *= 2) {
    T left = t >= by ? part[t - by] : T(0);
    $1{}{__syncwarp();}
    part[t] += left;
    $2{}{__syncwarp();}
}
out[i] = part[31 - t];
== shuffle_is_no_barrier(in out) int <<<2, 32>>> Race
__shared__ T tile[32];
tile[t] = in[i];
T other = __shfl_xor_sync(0xffffffffu, in[i], 1);
$1{}{__syncwarp();}
out[i] = other + tile[t ^ 1];
== vote_is_no_barrier(in out) unsigned <<<2, 32>>> Race
__shared__ T tile[32];
tile[t] = in[i];
unsigned odd = __ballot_sync(0xffffffffu, in[i] % 2);
$1{}{__syncwarp();}
out[i] = odd + tile[31 - t];
== sums_of_warps(in out) int <<<2, 64>>> Race, MissedBarrier, Race
__shared__ T sums[2];
T sum = in[i];
for (int by = 16; by > 0; by /= 2)
    if ($2{t % 32 < 2 * by}{true}) sum += __shfl_down_sync(0xffffffffu, sum, by);
if (t % 32 == 0) sums[t / 32] = sum;
$1{}3{__syncwarp();}{__syncthreads();}
out[i] = sums[0] + sums[1];
== vote_in_a_branch(in out) int <<<1, 32>>> MissedBarrier
int count = 0;
if (in[t] % 2) count = __popc(__ballot_sync($1{0xffffffffu}{0xaaaaaaaau}, in[t] % 3 == 0));
out[t] = count;
== barrier_in_a_branch(in out) float <<<1, 32>>> MissedBarrier
__shared__ T tile[16];
if (t < 16) { tile[t] = in[t]; __syncwarp($1{0xffffffffu}{0xffffu}); out[t] = tile[15 - t]; }
else out[t] = in[t];
== shuffle_in_both_branches(in out) int <<<1, 32>>> MissedBarrier
T other;
if (t < 16) other = __shfl_sync($1{0xffffffffu}{0xffffu}, in[t], 3);
else other = in[t];
out[t] = other;
== shuffle_of_half_a_warp(in out) double <<<1, 32>>> MissedBarrier
T sum = in[t];
if (t < $1{24}{32}) sum += __shfl_xor_sync(0xffffffffu, sum, 1);
out[t] = sum;
== shuffle_in_a_loop(in out) int <<<1, 32>>> MissedBarrier
T sum = in[t];
for (int k = 0; k < $1{(t < 20 ? 4 : 3)}{4}; ++k) sum += __shfl_xor_sync(0xffffffffu, sum, 1 << k);
out[t] = sum;
== all_in_a_branch(in out) unsigned <<<1, 64>>> MissedBarrier
bool all = false;
if (t $1{!= 40}{< 64}) all = __all_sync(0xffffffffu, in[t] < 99);
out[t] = all;
== barrier_without_a_lane(in out) int <<<1, 32>>> Race
__shared__ T tile[32];
tile[t] = in[t];
__syncwarp($1{t == 7 ? 0x80u : 0xffffff7fu}{0xffffffffu});
out[t] = tile[(t + 1) % 32];
== match_in_a_branch(in out) int <<<1, 32>>> MissedBarrier
unsigned peers = 0;
if ($1{t > 2}{true}) peers = __match_any_sync(0xffffffffu, in[t] % 4);
out[t] = __popc(peers);
== leader_of_a_warp(in out) int <<<2, 64>>> Race, Race
__shared__ int first[2];
if (t % 32 == 0) first[t / 32] = in[i];
$1{}{__syncwarp();}
out[i] = first[t / 32 $2{^ 1}{}];
== warp_transposition(in out) short <<<1, 32>>> Race
__shared__ T tile[4][8];
tile[t / 8][t % 8] = in[t];
$1{}{__syncwarp();}
out[t] = tile[t % 4][t / 4];
== row_in_shared_memory_of_a_warp(in out) float <<<1, 64>>> Race
__shared__ T rows[2][32];
for (int turn = 0; turn < 2; ++turn) {
    rows[t / 32][t % 32] = in[t] + turn;
    __syncwarp();
    out[t] = rows[t / 32][31 - t % 32];
    $1{}{__syncwarp();}
}
== reduction_of_a_tile(in out) int <<<1, 32>>> Race
__shared__ T part[32];
part[t] = in[t];
$1{__syncwarp(0xffu << t / 8 * 8);}{__syncwarp();}
T sum = 0;
for (int k = 0; k < 32; k += 8) sum += part[(t % 8) + k];
out[t] = sum;
== aggregated_atomics(in io) int <<<1, 32>>> MissedBarrier
if (in[t] % 3 == 0) {
    unsigned active = $1{0xffffffffu}{__activemask()};
    int leader = __ffs(active) - 1, base = 0;
    if (t == leader) base = atomicAdd(&io[0], __popc(active));
    base = __shfl_sync(active, base, leader);
    atomicAdd(&io[t], base);
}
== lane_outside_its_mask(in out) int <<<1, 32>>> InvalidMask, InvalidMask, InvalidMask, InvalidMask
T x = $1{__shfl_sync(0xffffu, in[t], 0)}2{__ballot_sync(0xffu, 1)}
    3{__reduce_add_sync(0xffff0000u, in[t])}{in[t]};
__syncwarp($4{0xfffffffeu}{0xffffffffu});
out[t] = x;
== shuffle_from_a_lane_outside(in out) int <<<1, 32>>> InvalidMask, InvalidMask, InvalidMask
T x = 0;
if (t < 16)
    x = $1{__shfl_sync(0xffffu, in[t], 20)}2{__shfl_xor_sync(0xffffu, in[t], 16)}
        3{__shfl_down_sync(0xffffu, in[t], 16)}{__shfl_sync(0xffffu, in[t], 5)};
out[t] = x;
== shuffle_up_from_a_lane_outside(in out) float <<<1, 32>>> InvalidMask
T x = 0;
if (t >= 16) x = __shfl_up_sync(0xffff0000u, in[t], $1{16}{8});
out[t] = x;
== shuffle_from_a_lane_that_has_returned(in out) double <<<1, 32>>> InvalidMask
out[t] = 0;
if (t >= 24) return;
out[t] = __shfl_sync(0xffffffffu, in[t], $1{30}{3});
"#;
