//! Barriers that some threads of a block miss.

#[test]
fn every_barrier_that_is_missed_is_found() {
    let found = crate::check_texts(TEXTS);
    found.is("barriers_in_two_branches", |found| {
        let lines = [&found.line, &found.other_line].map(|line| line.as_ref().map(|at| at.number));
        lines[0].zip(lines[1]).is_some_and(|(line, other)| other == line + 2)
    });
    found.says("barriers_on_one_line_int_1", "thread (32, 0, 0), which waits at the one in kernel");
}

pub(crate) const TEXTS: &str = r#"
== a_barrier_for_half_of_the_block MissedBarrier
if (!bad || threadIdx.x < 32) __syncthreads(); // here
== barriers_in_loops_of_different_lengths MissedBarrier
int steps = bad ? 2 + threadIdx.x / 32 : 3;
for (int step = 0; step < steps; ++step) __syncthreads(); // here
== barriers_in_two_branches MissedBarrier
if (threadIdx.x < 32 || !bad)
    __syncthreads(); // here
else
    __syncthreads();
== a_counting_barrier_for_half_of_the_block MissedBarrier
int count = 0;
if (!bad || threadIdx.x % 2 == 0) count = __syncthreads_count(1); // here
out[i] = count;
== an_iteration_that_is_skipped MissedBarrier
for (int step = 0; step < 3; ++step) {
    if (bad && step == 1 && threadIdx.x == 9) continue;
    __syncthreads(); // here
}
== a_barrier_in_a_function MissedBarrier
$before{
__device__ void meet() {
    __syncthreads(); // here
}
}
if (!bad || threadIdx.x < 32) meet();
out[i] = 1;
== a_warp_barrier_in_a_branch MissedBarrier
if (threadIdx.x % 2 == 0 || !bad)
    __syncwarp(); // here
io[i] = 1;
== a_warp_barrier_in_a_branch_before_a_barrier_for_all MissedBarrier
if (threadIdx.x % 2 == 0 || !bad)
    __syncwarp(); // here
__syncthreads();
io[i] = 1;
== a_shuffle_in_a_branch_whose_mask_names_all_lanes MissedBarrier
float sum = in[i];
if (threadIdx.x % 32 < 16)
    sum += __shfl_down_sync(bad ? 0xffffffffu : 0xffffu, sum, 8); // here
out[i] = sum;
== lanes_that_have_returned_need_not_come MissedBarrier
if (threadIdx.x >= 40) return;
__syncwarp();
out[i] = __shfl_xor_sync(0xffffffffu, in[i], 1);
if (bad && threadIdx.x % 2 == 0)
    __syncwarp(); // here
io[i] = 1;
== the_last_threads_return_before_the_barrier strict MissedBarrier
if (bad && (threadIdx.x >= 50)) return;
io[i] = 0;
__syncthreads(); // here
out[i] = io[i - i % 64 + 6 * (bad || !bad)];
== the_first_threads_return_before_the_barrier strict MissedBarrier
if (bad && (threadIdx.x < 5)) return;
io[i] = 0;
__syncthreads(); // here
out[i] = io[i - i % 64 + 6 * (bad || !bad)];
== every_second_thread_returns_before_the_barrier strict MissedBarrier
if (bad && (i % 2)) return;
io[i] = 0;
__syncthreads(); // here
out[i] = io[i - i % 64 + 6 * (bad || !bad)];
== threads_return_by_a_macro_before_the_barrier strict MissedBarrier
$before{
#define LEAVE_IF(so) \
    if (so) return;
}
LEAVE_IF(bad && threadIdx.x == 9) __syncthreads(); // here
== in_a_branch(in out) int <<<2, 64>>> MissedBarrier, MissedBarrier, MissedBarrier
__shared__ T tile[64];
tile[t] = in[i];
if ($1{t < 32}2{t != 0}3{t < 63 || b == 0}{t < 64}) __syncthreads();
out[i] = tile[$1{t}2{t}3{t}{63 - t}];
== in_both_branches(in out) int <<<1, 64>>> MissedBarrier
__shared__ T tile[64];
tile[t] = in[t];
if (t < 32) {
    tile[t] += 1;
    $1{__syncthreads();}{}
} else {
    tile[t] += 2;
    $1{__syncthreads();}{}
}
__syncthreads();
out[t] = tile[63 - t];
== barriers_on_one_line(in out) int <<<1, 64>>> MissedBarrier
if ($1{t < 32}{true}) __syncthreads(); else __syncthreads();
out[t] = in[t];
== a_function_in_both_branches(in out) int <<<1, 64>>> MissedBarrier
$before{
__device__ void @meet() { __syncthreads(); }
}
if ($1{in[t] % 2}{n}) @meet();
else @meet();
out[t] = in[t];
== different_trip_counts(in out) int <<<1, 64>>> MissedBarrier, MissedBarrier
__shared__ T tile[64];
T sum = 0;
for (int k = 0; k < $1{t % 3 + 1}2{(t < 32 ? 2 : 3)}{3}; ++k) {
    tile[t] = in[t] + k;
    __syncthreads();
    sum += tile[$1{t}2{t}{63 - t}];
    __syncthreads();
}
out[t] = sum;
== while_there_is_work(in out) int <<<1, 32>>> MissedBarrier
__shared__ int left;
int own = in[t] % 4;
do {
    __syncthreads();
    if (t == 0) left = 0;
    __syncthreads();
    if (own > 0 && --own > 0) atomicAdd(&left, 1);
    __syncthreads();
} while ($1{own > 0}{left > 0});
out[t] = own;
== break_out_of_a_loop(in out) float <<<1, 32>>> MissedBarrier
__shared__ T tile[32];
T sum = T(0);
for (int k = 0; k < 4; ++k) {
    $1{if (in[t] > 20 && k == 2) break;}{}
    tile[t] = in[t];
    __syncthreads();
    sum += tile[t];
    __syncthreads();
}
out[t] = sum;
== continue_past_a_barrier(in out) int <<<1, 32>>> MissedBarrier
T sum = 0;
for (int k = 0; k < 3; ++k) {
    if (in[t] % 4 == k) { sum += k; $1{continue;}{} }
    __syncthreads();
}
out[t] = sum;
== count_in_a_branch(in out) int <<<1, 64>>> MissedBarrier
int count = 0;
if ($1{in[t] < 40}{true}) count = __syncthreads_count(in[t] % 2);
out[t] = count;
== any_in_a_branch(in out) unsigned <<<1, 64>>> MissedBarrier, MissedBarrier
int any = 0;
if ($1{t > 10}{true}) any = __syncthreads_or(in[t] == 50);
if ($2{t % 2}{true}) any += __syncthreads_and(in[t] < 99);
out[t] = any;
== short_circuit(in out) int <<<1, 32>>> MissedBarrier
bool odd = $1{in[t] % 2 && __syncthreads_or(in[t] > 30)}{__syncthreads_or(in[t] > 30) && in[t] % 2};
out[t] = odd;
== switch_over_data(in out) int <<<1, 32>>> MissedBarrier
switch ($1{in[t] % 2}{0}) {
    case 0: __syncthreads(); break;
    default: break;
}
out[t] = in[t];
== divergent_function(in out) double <<<1, 32>>> MissedBarrier
$before{
__device__ double @meet(double x, bool waits) {
    if (waits) __syncthreads();
    return x;
}
}
out[t] = @meet(in[t], $1{in[t] < 9}{true});
== stride_loop(in out) float <<<1, 48>>> MissedBarrier
for (int k = t; k < $1{n - 16}{n}; k += 48) {
    out[k] = in[k];
    __syncthreads();
}
if ($1{t >= 32}{false}) out[t] = in[t];
== two_rows_of_threads(in out) int <<<1, 16x4>>> MissedBarrier
int y = threadIdx.y, k = y * 16 + threadIdx.x;
if ($1{y == 0}{y < 4}) __syncthreads();
out[k] = in[k];
"#;
