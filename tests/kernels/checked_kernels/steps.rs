//! Races between the steps of a loop of one block.

#[test]
fn every_race_between_steps_is_found() {
    crate::check_texts(TEXTS);
}

pub(crate) const TEXTS: &str = r#"
== tree_sum(in out) float|int64_t <<<2, 64>>> Race, Race
__shared__ T part[64];
part[t] = in[i];
$1{}{__syncthreads();}
for (int half = 32; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    $2{}{__syncthreads();}
}
out[i] = part[0];
== interleaved_sum(in out) float <<<2, 64>>> Race
__shared__ T part[64];
part[t] = in[i];
for (int by = 1; by < 64; by *= 2) {
    $1{}{__syncthreads();}
    if (t % (2 * by) == 0) part[t] += part[t + by];
}
__syncthreads();
out[i] = part[0];
== barriers_for_large_steps_only(in out) int <<<2, 64>>> Race, Race
__shared__ T part[64];
part[t] = in[i];
__syncthreads();
for (int half = 32; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    if (half > $1{1}2{16}{0}) __syncthreads();
}
out[i] = part[0];
== inclusive_scan(in out) int <<<2, 64>>> Race, Race
__shared__ T part[64];
part[t] = in[i];
__syncthreads();
for (int by = 1; by < 64; by *= 2) {
    T left = t >= by ? part[t - by] : T(0);
    $1{}{__syncthreads();}
    part[t] += left;
    $2{}{__syncthreads();}
}
out[i] = part[63 - t];
== double_buffered_scan(in out) double <<<2, 64>>> Race, Race
__shared__ T part[2][64];
int now = 0;
part[0][t] = in[i];
__syncthreads();
for (int by = 1; by < 64; by *= 2) {
    int next = $1{now}{1 - now};
    part[next][t] = part[now][t] + (t >= by ? part[now][t - by] : T(0));
    $2{}{__syncthreads();}
    now = next;
}
out[i] = part[now][t];
== sweep_up_and_down(in out) int <<<1, 32>>> Race, Race, Race
__shared__ T part[32];
part[t] = in[t];
for (int by = 1; by < 32; by *= 2) {
    $1{}{__syncthreads();}
    int at = (t + 1) * 2 * by - 1;
    if (at < 32) part[at] += part[at - by];
}
$2{}{__syncthreads();}
if (t == 31) part[31] = 0;
for (int by = 16; by > 0; by /= 2) {
    $3{}{__syncthreads();}
    int at = (t + 1) * 2 * by - 1;
    if (at < 32) { T left = part[at - by]; part[at - by] = part[at]; part[at] += left; }
}
__syncthreads();
out[t] = part[31 - t];
== tile_matmul(in out) float|half <<<2x2, 8x8>>> Race, Race
__shared__ T left[8][8], right[8][8];
int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 8 + y, column = blockIdx.x * 8 + x;
T sum = T(0);
for (int step = 0; step < 2; ++step) {
    left[y][x] = in[row * 16 + step * 8 + x];
    right[y][x] = in[(step * 8 + y) * 16 + column];
    $1{}{__syncthreads();}
    for (int k = 0; k < 8; ++k) sum += left[y][k] * right[k][x];
    $2{}{__syncthreads();}
}
out[row * 16 + column] = sum;
== double_buffered_tiles(in out) float <<<1, 32>>> Race, Race, Race
__shared__ T buffer[2][32];
T sum = in[t];
buffer[0][t] = sum;
$1{}{__syncthreads();}
for (int step = 0; step < 4; ++step) {
    buffer[$2{0}{1 - step % 2}][t] = sum + step;
    sum += buffer[step % 2][31 - t];
    $3{}{__syncthreads();}
}
out[t] = sum;
== three_buffers(in out) int <<<1, 32>>> Race
__shared__ T buffer[3][32];
T sum = in[t];
for (int step = 0; step < 6; ++step) {
    buffer[step % $1{1}{3}][t] = sum;
    __syncthreads();
    sum += buffer[step % $1{1}{3}][31 - t];
}
out[t] = sum;
== heat_in_shared_memory(in out) double <<<1, 64>>> Race, Race
__shared__ T rod[64];
rod[t] = in[t];
__syncthreads();
for (int step = 0; step < 3; ++step) {
    T left = t > 0 ? rod[t - 1] : T(0), right = t < 63 ? rod[t + 1] : T(0);
    $1{}{__syncthreads();}
    rod[t] = rod[t] + (left + right) / 2;
    $2{}{__syncthreads();}
}
out[t] = rod[t];
== heat_in_global_memory(in io) float <<<1, 64>>> Race, Race
for (int step = 0; step < 3; ++step) {
    T left = t > 0 ? io[t - 1] : in[t], right = t < 63 ? io[t + 1] : in[t];
    $1{}{__syncthreads();}
    io[t] = io[t] + (left + right) / 2;
    $2{}{__syncthreads();}
}
== odd_even_sort(in out) short <<<1, 32>>> Race, Race
__shared__ T keys[64];
keys[t] = in[t];
keys[t + 32] = 31 - in[t];
$2{}{__syncthreads();}
for (int step = 0; step < 64; ++step) {
    int at = 2 * t + step % 2;
    if (at + 1 < 64 && keys[at] > keys[at + 1]) {
        T key = keys[at]; keys[at] = keys[at + 1]; keys[at + 1] = key;
    }
    $1{}{__syncthreads();}
}
out[t] = keys[t];
== bitonic_sort(in out) unsigned <<<1, 64>>> Race, Race
__shared__ T keys[64];
keys[t] = in[t] * 37 % 64;
__syncthreads();
for (int size = 2; size <= 64; size *= 2)
    for (int by = size / 2; by > 0; by /= 2) {
        int other = t ^ by;
        if (other > t && (keys[t] > keys[other]) == ((t & size) == 0)) {
            T key = keys[t]; keys[t] = keys[other]; keys[other] = key;
        }
        $1{}2{if (by > 1) __syncthreads();}{__syncthreads();}
    }
out[t] = keys[t];
== radix_pass(in out) unsigned <<<1, 64>>> Race, Race, Race
__shared__ T keys[64], ones[64];
keys[t] = in[t] * 29 % 64;
for (int bit = 0; bit < 3; ++bit) {
    $2{}{__syncthreads();}
    T key = keys[t];
    ones[t] = key >> bit & 1;
    $1{}{__syncthreads();}
    int before = 0, zeros = 0;
    for (int k = 0; k < 64; ++k) { zeros += ones[k] == 0; before += k < t && ones[k] == ones[t]; }
    keys[$3{before}{ones[t] ? zeros + before : before}] = key;
}
__syncthreads();
out[t] = keys[t];
== sum_of_chunks(in out) int <<<1, 32>>> Race, Race
__shared__ T chunk[32];
T sum = 0;
for (int first = 0; first < 3; ++first) {
    chunk[t] = in[(t + first) % n];
    $1{}{__syncthreads();}
    if (t == 0) for (int k = 0; k < 32; ++k) sum += chunk[k];
    $2{}{__syncthreads();}
}
out[t] = sum + in[t];
== queue_of_work(in out) int <<<1, 32>>> Race, Race
__shared__ int next;
T sum = 0;
for (int step = 0; step < 3; ++step) {
    if (t == 0) next = step * 8;
    $1{}{__syncthreads();}
    sum += in[(next + t) % n];
    $2{}{__syncthreads();}
}
out[t] = sum;
== two_sums_with_one_buffer(in out) int <<<2, 64>>> Race
__shared__ T part[64];
T sums[2];
for (int turn = 0; turn < 2; ++turn) {
    part[t] = in[i] * T(turn + 1);
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    sums[turn] = part[0];
    $1{}{__syncthreads();}
}
out[i] = sums[0] + sums[1];
== while_anything_changes(in out) int <<<1, 32>>> Race, Race
__shared__ int changed;
__shared__ T labels[32];
labels[t] = in[t];
do {
    $1{}{__syncthreads();}
    if (t == 0) changed = 0;
    __syncthreads();
    T left = t > 0 ? labels[t - 1] : 0;
    __syncthreads();
    if (left < labels[t]) { labels[t] = left; changed = 1; }
    $2{}{__syncthreads();}
} while (changed);
out[t] = labels[t];
== histogram_of_chunks(in io) unsigned <<<1, 64>>> Race, Race
__shared__ unsigned bins[8];
for (int turn = 0; turn < 2; ++turn) {
    if (t < 8) bins[t] = 0;
    $1{}{__syncthreads();}
    atomicAdd(&bins[(in[t] + turn) % 8], 1u);
    __syncthreads();
    if (t < 8) io[turn * 8 + t] += bins[7 - t];
    $2{}{__syncthreads();}
}
"#;
