//! Races between the threads of a block in one step.

#[test]
fn every_race_in_a_block_is_found() {
    crate::check_texts(TEXTS);
}

pub(crate) const TEXTS: &str = r#"
== reversal(in out) float|byte|int64_t|half <<<4, 64>>> Race
__shared__ T tile[64];
tile[t] = in[i];
$1{}{__syncthreads();}
out[i] = tile[63 - t];
== read_then_write(in out) short <<<4, 64>>> Race
__shared__ T tile[64];
tile[t] = in[i];
__syncthreads();
T other = tile[(t + 1) % 64];
$1{}{__syncthreads();}
tile[t] = other;
__syncthreads();
out[i] = tile[t] + tile[63 - t];
== between_warps_only(in out) int <<<2, 64>>> Race
__shared__ T tile[64];
tile[t] = in[i];
$1{__syncwarp();}{__syncthreads();}
out[i] = tile[t ^ 32];
== one_thread_prepares(in out) unsigned <<<4, 64>>> Race, Race
__shared__ T factor;
if (t == $1{t}{0}) factor = in[b] + T($1{t}{0});
$2{}{__syncthreads();}
out[i] = in[i] * factor;
== last_thread_prepares(in out) float <<<4, 64>>> Race
__shared__ T first;
if (t == 63) first = in[b * 64];
$1{}{__syncthreads();}
out[i] = in[i] - first;
== shared_element_for_two(in out) byte <<<2, 64>>> Race, Race
__shared__ T tile[64];
tile[t] = T(0);
__syncthreads();
tile[$1{t / 2}2{t & ~32}{t}] = in[i];
__syncthreads();
out[i] = tile[t];
== lost_updates(in out) int <<<2, 64>>> Race, Race
__shared__ T sum;
if (t == 0) sum = 0;
$2{}{__syncthreads();}
$1{sum += in[i];}{atomicAdd(&sum, in[i]);}
__syncthreads();
out[i] = sum;
== shared_histogram(in io) unsigned <<<4, 64>>> Race, Race, Race
__shared__ unsigned bins[16];
if (t < 16) bins[t] = 0;
$1{}{__syncthreads();}
$2{bins[in[i] % 16]++;}{atomicAdd(&bins[in[i] % 16], 1u);}
$3{}{__syncthreads();}
if (t < 16) atomicAdd(&io[t], bins[t]);
== tile_transposed(in out) double <<<2x2, 8x8>>> Race
__shared__ T tile[8][9];
int x = threadIdx.x, y = threadIdx.y;
tile[y][x] = in[(blockIdx.y * 8 + y) * 16 + blockIdx.x * 8 + x];
$1{}{__syncthreads();}
out[(blockIdx.x * 8 + y) * 16 + blockIdx.y * 8 + x] = tile[x][y];
== shared_tile_transposed_in_place(in out) int <<<2, 8x8>>> Race, Race
__shared__ T tile[8][8];
int x = threadIdx.x, y = threadIdx.y, k = b * 64 + y * 8 + x;
tile[y][x] = in[k];
__syncthreads();
T other = tile[x][y];
$1{}{__syncthreads();}
tile[y][x] = other;
$2{}{__syncthreads();}
out[k] = tile[y][x] + tile[7 - y][x];
== stencil_with_halo(in out) float <<<4, 64>>> Race
__shared__ T tile[66];
tile[t + 1] = in[i];
if (t == 0) tile[0] = i > 0 ? in[i - 1] : T(0);
if (t == 63) tile[65] = i < n - 1 ? in[i + 1] : T(0);
$1{}{__syncthreads();}
out[i] = tile[t] + tile[t + 1] + tile[t + 2];
== halo_of_both_sides(in out) double <<<4, 32>>> Race, Race
__shared__ T tile[36];
tile[t + 2] = in[i];
if (t < 2) tile[t + $2{1}{0}] = T(1) + in[i];
if (t >= 30) tile[t + $1{1}{4}] = T(2) + in[i];
__syncthreads();
out[i] = tile[t + 2];
== plane_stencil(in out) float <<<2, 8x8>>> Race
__shared__ T tile[8][8];
int x = threadIdx.x, y = threadIdx.y, k = b * 64 + y * 8 + x;
tile[y][x] = in[k];
$1{if (k < 0) __syncthreads();}{__syncthreads();}
T sum = tile[y][x];
if (x > 0 && x < 7 && y > 0 && y < 7)
    sum += tile[y - 1][x] + tile[y + 1][x] + tile[y][x - 1] + tile[y][x + 1];
out[k] = sum;
== cube_stencil(in out) float <<<1, 4x4x4>>> Race
__shared__ T tile[4][4][4];
int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z, k = (z * 4 + y) * 4 + x;
tile[z][y][x] = in[k];
$1{}{__syncthreads();}
out[k] = tile[z][y][x] + tile[z > 0 ? z - 1 : z][y][x] + tile[z < 3 ? z + 1 : z][y][x];
== shared_bit_set(in out) unsigned <<<2, 64>>> Race, Race
__shared__ unsigned bits[2];
if (t < 2) bits[t] = 0;
$2{}{__syncthreads();}
if (in[i] % 3 == 0) $1{bits[t / 32] |= 1u << t % 32;}{atomicOr(&bits[t / 32], 1u << t % 32);}
__syncthreads();
out[i] = bits[t / 32] >> t % 32 & 1;
== flag_of_any(in out) int <<<2, 64>>> Race, Race
__shared__ int any;
if (t == 0) any = 0;
__syncthreads();
if (in[i] % 5 == 0) any = $1{t + 1}{1};
$2{}{__syncthreads();}
out[i] = any;
== compaction(in out) int <<<1, 64>>> Race, Race
__shared__ int count;
__shared__ T kept[64];
if (t == 0) count = 0;
kept[t] = -1;
__syncthreads();
if (in[t] % 2) kept[$1{count++}{atomicAdd(&count, 1)}] = in[t];
$2{}{__syncthreads();}
out[t] = kept[63 - t];
== maximum_without_atomics(in out) int|unsigned <<<2, 64>>> Race
__shared__ T largest;
if (t == 0) largest = 0;
__syncthreads();
$1{if (in[i] > largest) largest = in[i];}{atomicMax(&largest, in[i]);}
__syncthreads();
out[i] = largest;
== dynamic_shared(in out) double <<<2, 64, 512>>> Race
extern __shared__ T @tile[];
@tile[t] = in[i];
$1{}{__syncthreads();}
out[i] = @tile[t ^ 40];
== memory_for_two_purposes(in out) float <<<2, 64, 256>>> Race
extern __shared__ float @memory[];
@memory[t] = in[i];
__syncthreads();
float sum = @memory[(t + 8) % 64];
$1{}{__syncthreads();}
int *counts = reinterpret_cast<int *>(@memory);
counts[t] = t;
__syncthreads();
out[i] = sum + counts[63 - t];
== neighbouring_bytes(in out) byte <<<1, 64>>> Race
__shared__ unsigned words[16];
if (t < 16) words[t] = 0;
__syncthreads();
unsigned char *bytes = reinterpret_cast<unsigned char *>(words);
$1{words[t / 4] = words[t / 4] | (unsigned)in[t] << 8 * (t % 4);}{bytes[t] = in[t];}
__syncthreads();
out[t] = bytes[63 - t];
== copied_by_one_thread(in out) float <<<2, 64>>> Race
__shared__ T tile[64];
if (t == 40) memcpy(tile, in + b * 64, sizeof tile);
$1{}{__syncthreads();}
out[i] = tile[t];
== cleared_by_one_thread(in out) int <<<2, 64>>> Race
__shared__ T tile[64];
if (t == 0) memset(tile, 0, sizeof tile);
$1{}{__syncthreads();}
tile[t] += in[i];
__syncthreads();
out[i] = tile[63 - t];
== volatile_is_no_barrier(in out) float|int <<<2, 64>>> Race
__shared__ volatile T tile[64];
tile[t] = in[i];
$1{}{__syncthreads();}
out[i] = tile[63 - t];
== fence_is_no_barrier(in out) float <<<2, 64>>> Race, Race
__shared__ T tile[64];
tile[t] = in[i];
$1{__threadfence_block();}2{__threadfence();}{__syncthreads();}
out[i] = tile[63 - t];
== column_sums(in out) int <<<2, 8x8>>> Race
__shared__ T sums[8];
int x = threadIdx.x, y = threadIdx.y, k = b * 64 + y * 8 + x;
if (y == 0) sums[x] = 0;
__syncthreads();
$1{sums[x] = sums[x] + in[k];}{atomicAdd(&sums[x], in[k]);}
__syncthreads();
out[k] = sums[x];
"#;
