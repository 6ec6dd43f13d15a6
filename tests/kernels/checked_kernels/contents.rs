//! Reads of what nothing has written, and writes to inputs.

#[test]
fn every_read_of_what_was_never_written_is_found() {
    crate::check_texts(TEXTS);
}

pub(crate) const TEXTS: &str = r#"
== an_output_that_is_read_first Uninitialised
if (bad) io[i] = out[i]; // here
out[i] = 1;
== an_output_that_is_added_to Uninitialised
if (!bad) out[i] = 0;
out[i] += in[i]; // here
== shared_memory_that_half_the_threads_write Uninitialised
__shared__ float tile[64];
if (!bad || threadIdx.x % 2 == 0) tile[threadIdx.x] = in[i];
__syncthreads();
out[i] = tile[threadIdx.x ^ 1]; // here
== a_copy_of_shared_memory_that_is_written_in_part Uninitialised
__shared__ float tile[64], copy[64];
if (threadIdx.x < 32) tile[threadIdx.x] = in[i];
__syncthreads();
copy[threadIdx.x] = tile[threadIdx.x];
__syncthreads();
if (bad || threadIdx.x < 32) out[i] = copy[threadIdx.x ^ 1]; // here
== a_copy_of_shared_memory_that_is_written_too_late Race
__shared__ float tile[64], copy[64];
tile[threadIdx.x] = in[i];
if (!bad) __syncthreads();
copy[threadIdx.x] = tile[63 - threadIdx.x]; // here
__syncthreads();
out[i] = copy[threadIdx.x];
== shared_memory_that_is_copied_to_an_output Uninitialised
__shared__ float tile[64];
if (!bad || threadIdx.x < 32) tile[threadIdx.x] = in[i];
__syncthreads();
out[i] = tile[threadIdx.x]; // here
== dynamic_shared_memory_beyond_what_is_written <<<4, 64, 256>>> Uninitialised
extern __shared__ float part[];
if (threadIdx.x < 64 - bad) part[threadIdx.x] = in[i];
__syncthreads();
out[i] = part[63 - threadIdx.x]; // here
== shared_memory_of_an_earlier_block Uninitialised
__shared__ float tile[64];
if (!bad || blockIdx.x == 0) tile[threadIdx.x] = in[i];
__syncthreads();
out[i] = tile[63 - threadIdx.x]; // here
== an_output_that_atomics_add_to Uninitialised
if (!bad) atomicExch(&out[i], 0.0f);
atomicAdd(&out[i], 1.0f); // here
== a_shared_counter_that_nobody_clears Uninitialised
__shared__ int counter;
if (!bad && threadIdx.x == 0) counter = 0;
__syncthreads();
atomicAdd(&counter, 1); // here
== a_vector_of_which_one_part_is_written Uninitialised
__shared__ float4 tile[16];
float *parts = reinterpret_cast<float *>(tile);
if (threadIdx.x < 64 - bad) parts[threadIdx.x] = in[i];
__syncthreads();
float4 all = tile[threadIdx.x / 4]; // here
out[i] = all.x + all.y + all.z + all.w;
== an_output_that_is_copied Uninitialised
if (!bad) out[i] = 1;
__syncthreads();
if (threadIdx.x == 0) memcpy(io + i, out + i, 256); // here
__syncthreads();
out[i] = 1;
== a_histogram_that_is_not_cleared Uninitialised
__shared__ unsigned int bins[16];
if (threadIdx.x < 16 - bad) bins[threadIdx.x] = 0;
__syncthreads();
atomicAdd(&bins[threadIdx.x % 16], 1u); // here
== an_input_that_is_written WriteToInput
float *input = const_cast<float *>(in);
if (bad) input[i] = 1; // here
== an_input_that_atomics_change WriteToInput
float *target = bad ? const_cast<float *>(in) : io;
atomicAdd(&target[0], 1.0f); // here
== an_input_that_is_filled WriteToInput
float *target = bad ? const_cast<float *>(in) : io;
if (i == 0) memset(target, 0, 64); // here
== an_input_that_is_swapped WriteToInput
$before{
__device__ void swap(float &a, float &b) {
    float c = a;
    a = b; // here
    b = c;
}
}
float *target = bad ? const_cast<float *>(in) : io;
if (i % 2 == 0) swap(target[i], target[i + 1]);
== out_is_read(in out) float|byte|half <<<4, 64>>> Uninitialised
$1{}{out[i] = T(0);}
out[i] = out[i] + in[i];
== out_is_updated(in out) int <<<4, 64>>> Uninitialised, Uninitialised
$1{}{atomicExch(&out[i], 0);}
atomicAdd(&out[$2{i ^ 1}{i}], in[i]);
== out_of_a_neighbour(in out) short <<<1, 32>>> Uninitialised, Unwritten
if ($1{t != 5}2{t != 31}{true}) out[t] = in[t];
__syncthreads();
if (t == 0) out[$1{4}{0}] = out[$1{5}{4}];
== left_out(in out) int64_t|byte <<<4, 64>>> Unwritten, Unwritten, Unwritten
if ($1{i < n - 1}2{t % 2 == 0}3{b != 2}{i < n}) out[i] = in[i];
== shared_half(in out) float|half <<<4, 64>>> Uninitialised, Uninitialised
__shared__ T tile[64];
if ($1{t < 32}2{t != 63}{t < 64}) tile[t] = in[i];
__syncthreads();
out[i] = tile[63 - t];
== shared_sum(in out) float <<<2, 64>>> Uninitialised
__shared__ T sum;
if ($1{t == 64}{t == 0}) sum = T(0);
__syncthreads();
atomicAdd(&sum, in[i]);
__syncthreads();
out[i] = sum;
== shared_bins(in io) unsigned <<<4, 32>>> Uninitialised, Uninitialised
__shared__ unsigned bins[48];
for (int k = t; k < $1{32}{48}; k += $2{64}{32}) bins[k] = 0;
__syncthreads();
atomicAdd(&bins[in[i] % 48], 1u);
__syncthreads();
for (int k = t; k < 48; k += 32) atomicAdd(&io[k], bins[k]);
== only_the_first_block(in out) double <<<4, 32>>> Uninitialised
__shared__ T factor;
if (t == 0 $1{&& b == 0}{}) factor = in[0] + T(2);
__syncthreads();
out[i] = in[i] * factor;
== part_of_a_vector(in out) float <<<2, 32>>> Uninitialised, Uninitialised
__shared__ float4 tile[8];
float *parts = reinterpret_cast<float *>(tile);
if ($1{t % 4 != 3}2{t >= 4}{true}) parts[t] = in[i];
__syncthreads();
float4 four = tile[t / 4];
out[i] = four.x + four.y + four.z + four.w;
== bytes_of_a_word(in out) int <<<2, 16>>> Uninitialised, Uninitialised
__shared__ unsigned words[4];
unsigned char *bytes = reinterpret_cast<unsigned char *>(words);
if ($1{t != 7}2{t < 15}{true}) bytes[t] = in[i];
__syncthreads();
out[i] = words[t / 4];
== dynamic_tail(in out) double <<<2, 32, 520>>> Uninitialised, Uninitialised
extern __shared__ T @part[];
@part[t] = in[i];
$1{}{@part[t + 32] = T(0);}
__syncthreads();
out[i] = @part[t] + @part[$2{t + 33}{t + 32}];
== halo_is_missing(in out) short <<<4, 32>>> Uninitialised, Uninitialised
__shared__ T tile[34];
tile[t + 1] = in[i];
if ($1{t == 1 && i > 1}{t == 0}) tile[0] = T(0);
if ($2{i == n - 1}{t == 31}) tile[33] = T(0);
__syncthreads();
out[i] = tile[t] + tile[t + 2];
== corner_of_a_tile(in out) int <<<2, 6x6>>> Uninitialised, Uninitialised
__shared__ T tile[8][8];
int x = threadIdx.x, y = threadIdx.y, k = b * 36 + y * 6 + x;
tile[y + 1][x + 1] = in[k];
if (x == 0) tile[y + 1][0] = tile[y + 1][7] = 0;
if (y == 0) tile[0][x + 1] = tile[7][x + 1] = 0;
if (x < 2 && y < 2 && $1{(x | y) < 1}2{x + y < 2}{true}) tile[7 * y][7 * x] = 0;
__syncthreads();
out[k] = tile[y][x] + tile[y][x + 2] + tile[y + 2][x] + tile[y + 2][x + 2];
== list_of_what_fits(in out) int <<<1, 64>>> Uninitialised
__shared__ int count;
__shared__ T chosen[64];
if (t == 0) count = 0;
__syncthreads();
if (in[i] % 3 == 0) chosen[atomicAdd(&count, 1)] = in[i];
__syncthreads();
out[t] = t < $1{count + 1}{count} ? chosen[t] : -1;
== copied_before_written(in out) float <<<1, 32>>> Uninitialised
__shared__ T from[32], to[32];
if ($1{t < 16}{true}) from[t] = in[t];
__syncthreads();
if (t == 0) memcpy(to, from, sizeof to);
__syncthreads();
out[t] = to[t];
== written_in_a_branch(in out) half <<<2, 32>>> Uninitialised
__shared__ T tile[32];
if (t % 4 < 2) tile[t] = in[i];
else if ($1{t % 4 == 2}{true}) tile[t] = in[i] + T(1);
__syncthreads();
out[i] = tile[t ^ 3];
== padded_rows(in out) float <<<2, 8x8>>> Uninitialised
__shared__ T tile[8][9];
int x = threadIdx.x, y = threadIdx.y, k = b * 64 + y * 8 + x;
tile[y][x] = in[k];
__syncthreads();
out[k] = tile[x][$1{y + 1}{y}];
== two_passes(in out) int <<<1, 32>>> Uninitialised
for (int k = t; k < n; k += 32) if ($1{k % 5}{true}) out[k] = in[k];
__syncthreads();
for (int k = t; k < n; k += 32) out[k] = out[k] * 2;
== maximum_of_all(in io) int <<<4, 32>>> Uninitialised
__shared__ int largest;
$1{}{if (t == 0) largest = -1; __syncthreads();}
atomicMax(&largest, in[i]);
__syncthreads();
if (t == 0) atomicMax(&io[0], largest);
== row_is_left_out(view in out) int <<<4, 64>>> Unwritten, Unwritten, Uninitialised
int row = i / 16, column = i % 16;
T before = $3{out(row, column)}{T(1)};
if ($1{row != 3}2{column < 15}{true}) out(row, column) = in(row, column) + before;
== sum_that_starts_from_nothing(in out) float <<<2, 32>>> UninitialisedLocal
T sum$1{}{ = T(0)};
for (int k = 0; k < 4; ++k) sum += in[(i + k) % n];
out[i] = sum;
== field_that_is_not_set(in out) int <<<2, 32>>> UninitialisedLocal
$before{
struct @pair { int a, b; };
__device__ int @sum(@pair x) { return x.a + x.b; }
}
@pair x;
x.a = in[i];
$1{}{x.b = 1;}
out[i] = @sum(x);
== local_copy_that_nobody_uses(in out) float <<<2, 32>>> Uninitialised
__shared__ T tile[64];
tile[t] = in[i];
__syncthreads();
T own[2] = {tile[t], tile[$1{t + 32}{t}]};
out[i] = own[s.zero];
== local_copy_of_a_record(in out) float <<<2, 32>>> Uninitialised
$before{struct @three { float a[3]; };}
__shared__ @three tile[32];
tile[t].a[0] = in[i];
__syncthreads();
@three own = tile[t];
out[i] = own.a[s.zero] + $1{tile[t].a[1]}{0};
== part_is_left_out(part in out) double <<<2, 64>>> Unwritten, Uninitialised
if ($1{i % 16 != 15}{true}) out.at(i) = $2{out.at(i)}{in.at(i)};
"#;
