//! Accesses to shared memory, global variables and local arrays beyond their elements.

#[test]
fn every_access_beyond_memory_of_a_block_is_found() {
    crate::check_texts(TEXTS);
}

pub(crate) const TEXTS: &str = r#"
== shared_tile(in out) double|byte|half <<<4, 64>>> OutOfBounds, OutOfBounds
__shared__ T tile[64];
tile[$1{t + 1}{t}] = in[i];
__syncthreads();
out[i] = tile[$2{t - 1}{63 - t}];
== two_tiles(in out) int64_t <<<2, 32>>> OutOfBounds, OutOfBounds
__shared__ T first[32];
__shared__ T second[32];
first[t] = in[i];
second[t] = in[i];
__syncthreads();
out[i] = first[$1{32 - t}{31 - t}] + second[$2{t + s.shift}{t}];
== table_of_two_axes(in out) int <<<4, 8x8>>> OutOfBounds, OutOfBounds
__shared__ T tile[8][8];
int x = threadIdx.x, y = threadIdx.y, k = b * 64 + y * 8 + x;
tile[$1{y + 1}{y}][x] = in[k];
__syncthreads();
out[k] = tile[x][$2{x == 7 ? y + 8 : y}{y}];
== halo(in out) float <<<4, 32>>> OutOfBounds, OutOfBounds, OutOfBounds
__shared__ T tile[$1{33}{34}];
tile[t + 1] = in[i];
if (t == 0) tile[$2{-1}{0}] = i > 0 ? in[i - 1] : T(0);
if (t == 31) tile[$3{34}{33}] = i < n - 1 ? in[i + 1] : T(0);
__syncthreads();
out[i] = tile[t] + tile[t + 2];
== dynamic(in out) float|short <<<4, 32, 128>>> OutOfBounds, OutOfBounds
extern __shared__ T @dynamic[];
int last = 128 / sizeof(T) - 1;
@dynamic[$1{last + 1 - t}{t}] = in[i];
__syncthreads();
out[i] = @dynamic[$2{t == 31 ? last + 1 : t}{t}];
== dynamic_in_parts(in out) double <<<2, 16, 192>>> OutOfBounds, OutOfBounds
extern __shared__ T @memory[];
T *numbers = @memory;
int *flags = reinterpret_cast<int *>(@memory + $1{17}{16});
numbers[t] = in[i];
flags[$2{t + 17}{t}] = t;
__syncthreads();
out[i] = numbers[15 - t] + flags[15 - t];
== bins(in io) int <<<4, 64>>> OutOfBounds, OutOfBounds
__shared__ unsigned bins[16];
if (t < $1{17}{16}) bins[t] = 0;
__syncthreads();
atomicAdd(&bins[in[i] % $2{17}{16}], 1u);
__syncthreads();
if (t < 16) atomicAdd(&io[t], (int)bins[t]);
== scan(in out) int <<<2, 64>>> OutOfBounds
__shared__ T part[64];
part[t] = in[i];
__syncthreads();
for (int by = 1; by < 64; by *= 2) {
    T left = $1{part[t - by]}{t >= by ? part[t - by] : 0};
    __syncthreads();
    part[t] += left;
    __syncthreads();
}
out[i] = part[t];
== reduction(in out) double <<<4, 64>>> OutOfBounds, OutOfBounds
__shared__ T part[64];
part[t] = in[i];
__syncthreads();
for (int half = $1{64}{32}; half > 0; half /= 2) {
    if (t < half) part[t] += part[$2{t + half + 1}{t + half}];
    __syncthreads();
}
out[i] = part[0];
== global_table(in out) float <<<2, 32>>> OutOfBounds, OutOfBounds
$before{__device__ float @table[32]; __constant__ int @order[32] = {3, 1, 2};}
out[i] = in[i] + @table[$1{t - 1}{t}] + @order[$2{t + 1}{t}];
== local_array(in out) int <<<2, 32>>> OutOfBounds
T own[8];
for (int k = 0; k < 8; ++k) own[k] = in[(i + k) % n];
T sum = 0;
for (int k = 0; k < 8; ++k) sum += own[(k + t) % 8];
out[i] = sum + in[$1{i + own[0] + 1}{i}];
== tile_product(in out) half <<<2x2, 8x8>>> OutOfBounds, OutOfBounds, OutOfBounds
__shared__ T left[8][8], right[8][8];
int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 8 + y, column = blockIdx.x * 8 + x;
T sum = T(0);
for (int step = 0; step < $1{3}{2}; ++step) {
    left[y][x] = in[row * 16 + step * 8 + x];
    right[y][x] = in[(step * 8 + $2{y + 1}{y}) * 16 + column];
    __syncthreads();
    for (int k = 0; k < 8; ++k) sum += left[y][k] * right[$3{k + 1}{k}][x];
    __syncthreads();
}
out[row * 16 + column] = sum;
== shared_pairs(in out) float <<<2, 32>>> OutOfBounds
__shared__ float2 pair[16];
if (t < $1{17}{16}) pair[t] = make_float2(in[b * 32 + 2 * t % 32], in[b * 32 + (2 * t + 1) % 32]);
__syncthreads();
out[i] = t % 2 ? pair[t / 2].y : pair[t / 2].x;
== ring(in out) double <<<1, 32>>> OutOfBounds
__shared__ T ring[24];
for (int k = 0; k < 32; ++k) {
    if (t == k) ring[$1{k % 25}{k % 24}] = in[i];
    __syncthreads();
}
out[i] = ring[t % 24];
"#;
